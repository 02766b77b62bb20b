#include "sample/assemble.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "profile/processes.h"
#include "profile/sums.h"
#include "sample/context_tree.h"
#include "symbols/written_names.h"
#include "x86/insn.h"

namespace weir::sample {

using profile::SiteKind;

namespace {

const char* reason(rt::Stop stop) {
  switch (stop) {
    case rt::Stop::NoCode: return "address in no known code";
    case rt::Stop::NoRule: return "no unwind rule";
    case rt::Stop::Unsupported: return "unwind rule not supported";
    case rt::Stop::Unreadable: return "stack cannot be read";
    case rt::Stop::OutsideStack: return "frame outside the stack";
    case rt::Stop::NotOutward: return "frame not further out";
    case rt::Stop::TooDeep: return "too deep";
    case rt::Stop::Loop: return "stacks in a loop";
    default: return "unknown reason";
  }
}

const char* name_of(rt::Difference difference) {
  switch (difference) {
    case rt::Difference::End: return "end";
    case rt::Difference::Depth: return "depth";
    case rt::Difference::Address: return "address";
    case rt::Difference::Slot: return "slot";
    case rt::Difference::Registers: return "registers";
    default: return "unknown";
  }
}

std::vector<profile::Sampling::Reason> listed(const std::map<std::string, uint64_t>& counts) {
  std::vector<profile::Sampling::Reason> reasons;
  for (const auto& [name, samples] : counts) reasons.push_back({name, samples});
  return reasons;
}

uint64_t word(std::span<const std::byte> bytes) {
  uint64_t word = 0;
  memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
  return word;
}

}  // namespace

Assembler::Assembler(profile::Profile& profile, const profile::SampledBy& by) : p_(profile), code_(profile) {
  profile::Sampling& out = p_.run.sampling.emplace();
  static_cast<profile::SampledBy&>(out) = by;
  if (!std::isfinite(out.rate) || out.rate < 0) out.rate = 0;
  p_.run.clock = "samples";
  p_.run.full_paths = true;
  p_.run.cycles_per_second = static_cast<uint64_t>(std::min(std::round(out.rate), 1e15));
}

void Assembler::add_up(const Thread& t) {
  profile::Sampling& s = *p_.run.sampling;
  s.frames += t.counts.frames;
  s.frames_unwound += t.counts.unwound;
  s.frames_heuristic += t.counts.guessed;
  s.frames_by_frame_pointer += t.counts.by_frame_pointer;
  s.distrusted += t.counts.distrusted;
  s.new_maps += t.counts.new_maps;
  s.lost += t.lost;
  s.late += t.late;
  for (size_t i = 0; i < std::size(t.counts.ended); i++) {
    auto stop = static_cast<rt::Stop>(i);
    if (stop == rt::Stop::Complete || !t.counts.ended[i]) continue;
    s.truncated += t.counts.ended[i];
    truncated_by_[reason(stop)] += t.counts.ended[i];
  }
  for (size_t i = 1; i < std::size(t.differences); i++) {
    if (!t.differences[i]) continue;
    s.verify_differences += t.differences[i];
    differences_by_[name_of(static_cast<rt::Difference>(i))] += t.differences[i];
  }
}

// From the nodes of one thread to its contexts and blocks.
class Assembler::ThreadTree {
 public:
  ThreadTree(Assembler& a, std::span<const Node> nodes, std::span<const uint32_t> images)
      : a_(a), nodes_(nodes), images_(images), above_(nodes.size()) {
    nobody_.site = a.site(none, 0, SiteKind::Start);
  }

  void give(profile::Thread& out) {
    for (uint32_t i = 0; i < nodes_.size(); i++) {
      const Node& node = nodes_[i];
      if (is_root(node)) {
        if (node.samples) count_root(node, i);
      } else {
        Above parent = node.parent < i ? above(node.parent) : below("[cut off: damaged call path]");
        add(node, parent, above_[i], out);
      }
      out.cycles += node.samples;
    }
    tree_.give(out, a_.p_.functions.size());
    profile::add_up(out.blocks, &profile::BlockCount::block, [](auto& sum, const auto& c) { sum.count += c.count; });
    auto key = [](const profile::LeafCount& c) { return uint64_t{c.context} << 32 | c.block; };
    profile::add_up(out.leaves, key, [](auto& sum, const auto& c) { sum.samples += c.samples; });
  }

 private:
  // What the children of a node hang below. The site is found when there are any.
  struct Above {
    uint32_t context = none;  // none: nobody
    uint32_t site = none;
    uint32_t place = none;
  };

  static bool is_root(const Node& node) { return node.kind == Node::Root || node.kind == Node::Full; }
  static bool is_whole(const Node& root) { return root.kind == Node::Root && root.end == rt::Stop::Complete; }
  static std::string name_of(const Node& root) {
    if (root.kind == Node::Full) return "[no room for call paths]";
    return is_whole(root) ? "[unknown code]" : fmt::format("[cut off: {}]", reason(root.end));
  }

  // A function that is no code, and what it stands above.
  Above below(const std::string& name) {
    uint32_t function = a_.nameless(name);
    return {tree_.child(none, nobody_.site, function), a_.site(function, 0, SiteKind::Start), none};
  }

  const Above& above(uint32_t i) {
    Above& own = above_[i];
    if (own.site != none) return own;
    if (is_root(nodes_[i])) return own = is_whole(nodes_[i]) ? nobody_ : below(name_of(nodes_[i]));
    const Place& place = a_.places_[own.place];
    own.site = a_.site(place.function, place.call, place.kind);
    return own;
  }

  // Samples without any frame: the tree was full. (No walk ends so otherwise, but the program could write to the tree.)
  void count_root(const Node& root, uint32_t i) {
    Above own = below(name_of(root));
    if (!is_whole(root)) above_[i] = own;
    tree_.count(own.context, root.samples);
    if (root.kind == Node::Full) a_.p_.run.sampling->no_room += root.samples;
  }

  void add(const Node& node, const Above& parent, Above& own, profile::Thread& out) {
    uint32_t id = a_.place(images_, node);
    const Place place = a_.places_[id];
    if (place.is_restorer && !place.is_leaf && !node.samples) {
      own = parent;
      if (parent.place == none) return;
      const Place& interrupted = a_.places_[parent.place];
      own.site = a_.site(interrupted.function, interrupted.offset, SiteKind::Signal);
      return;
    }
    own = {tree_.child(parent.context, parent.site, place.function), none, id};
    tree_.count(own.context, node.samples);
    if (!place.is_leaf || !node.samples) return;
    uint32_t block = a_.block(place);
    out.blocks.push_back({block, node.samples, 0});
    out.leaves.push_back({own.context, block, node.samples});
  }

  Assembler& a_;
  std::span<const Node> nodes_;
  std::span<const uint32_t> images_;
  std::vector<Above> above_;  // by node
  Above nobody_;
  ContextTree tree_;
};

void Assembler::add(const Program& program) {
  symbols::WrittenNames names;
  names.read(program.perf_map, program.jit_dump);
  symbols::Writer writer{program.pid, program.started, names.code()};
  std::vector<uint32_t> images;
  for (size_t i = 0; i < program.images.size(); i++)
    images.push_back(code_.image(program.images[i], &writer, i < program.files.size() ? program.files[i] : nullptr));

  auto process = static_cast<uint32_t>(p_.processes.size());
  p_.processes.push_back({program});
  parents_.push_back(program.parent_pid);
  for (const Thread& t : program.threads) {
    profile::Thread out;
    out.process = process;
    out.tid = t.tid;
    out.name = t.name;
    ThreadTree(*this, t.nodes, images).give(out);
    p_.run.sampling->samples += out.cycles;
    p_.threads.push_back(std::move(out));
    add_up(t);
  }
}

// ---- addresses ----

uint32_t Assembler::place(std::span<const uint32_t> images, const Node& node) {
  Place asked{.image = node.image < images.size() ? images[node.image] : none,
              .offset = node.offset,
              .is_leaf = node.kind == Node::Leaf};
  auto next = static_cast<uint32_t>(places_.size());
  uint32_t id = known_places_.find_or_add(hash_of(asked.image, asked.offset << 1 | asked.is_leaf), next, [&](uint32_t i) {
    const Place& known = places_[i];
    return known.image == asked.image && known.offset == asked.offset && known.is_leaf == asked.is_leaf;
  });
  if (id == next) look_at(places_.emplace_back(asked));
  return id;
}

// A frame that goes on behind a call is in the function that holds the call: its last instruction may be one that never returns.
// Where there is no call before it, a signal has interrupted it there, or a new stack begins there.
void Assembler::look_at(Place& place) {
  place.call = place.offset;
  if (place.image == none) {
    place.function = nameless("[unknown code]");
    return;
  }
  auto before = code_.bytes_at(place.image, {place.offset - 8}), here = code_.bytes_at(place.image, {place.offset});
  place.is_restorer = here.size() > 8 && rt::is_restorer(word(here), static_cast<uint8_t>(here[8]));
  if (!place.is_leaf && place.offset) {
    unsigned length = before.size() < 8 ? 1 : rt::call_before(word(before));
    place.call -= length;
    if (length && before.size() >= 8)
      place.kind = before[8 - length] == std::byte{0xe8} ? SiteKind::Call : SiteKind::IndirectCall;
  }
  place.function = code_.function_around(place.image, place.call);
}

uint32_t Assembler::site(uint32_t function, uint64_t offset, SiteKind kind) {
  auto next = static_cast<uint32_t>(p_.sites.size());
  uint32_t id = known_sites_.find_or_add(hash_of(function, offset), next, [&](uint32_t i) {
    const profile::CallSite& known = p_.sites[i];
    return known.function == function && known.offset == offset && known.kind == kind;
  });
  if (id == next) p_.sites.push_back({function, offset, kind, "", 0});
  return id;
}

uint32_t Assembler::block(const Place& place) {
  auto next = static_cast<uint32_t>(p_.blocks.size());
  uint32_t id = known_blocks_.find_or_add(hash_of(place.function, place.offset), next, [&](uint32_t i) {
    return p_.blocks[i].function == place.function && p_.blocks[i].offset == place.offset;
  });
  if (id != next) return id;
  std::span<const std::byte> code;
  if (place.image != none) code = code_.bytes_at(place.image, {place.offset});
  code = code.first(std::min<size_t>(code.size(), x86::decode(code, {place.offset}).shape->length));
  p_.blocks.push_back(
      {place.function, place.offset, static_cast<uint32_t>(p_.code.size()), static_cast<uint32_t>(code.size()), 1, 1});
  p_.code.insert(p_.code.end(), code.begin(), code.end());
  return id;
}

uint32_t Assembler::nameless(const std::string& name) {
  auto [known, is_new] = nameless_.try_emplace(name, static_cast<uint32_t>(p_.functions.size()));
  if (is_new) p_.functions.push_back({none, 0, 0, "", name, "", 0});
  return known->second;
}

// ---- names ----

void Assembler::finish() {
  profile::find_parents(p_.processes, parents_);
  p_.run.sampling->truncated_by = listed(truncated_by_);
  p_.run.sampling->differences_by = listed(differences_by_);
  std::vector<bool> all(p_.functions.size(), true);  // functions are known by samples alone
  for (uint32_t i = 0; i < p_.images.size(); i++) {
    code_.name_functions(i, all, false);
    find_lines(i);
    for (const std::string& note : code_.notes(i))
      if (!p_.processes.empty()) p_.processes[0].notes.push_back(note);
  }
}

void Assembler::find_lines(uint32_t image) {
  auto is_here = [&](uint32_t function) { return function != none && p_.functions[function].image == image; };
  std::vector<symbols::ProfileCode::Asked> asked;
  for (uint32_t b = 0; b < p_.blocks.size(); b++)
    if (is_here(p_.blocks[b].function)) asked.push_back({{p_.blocks[b].offset}, b, 1, none, true});
  for (uint32_t s = 0; s < p_.sites.size(); s++)
    if (is_here(p_.sites[s].function)) asked.push_back({{p_.sites[s].offset}, none, 0, s, true});
  code_.find_lines(image, std::move(asked));
}

profile::Profile assemble(const profile::SampledBy& by, std::span<const Program> programs) {
  profile::Profile profile;
  Assembler assembler(profile, by);
  for (const Program& program : programs) assembler.add(program);
  assembler.finish();
  return profile;
}

}  // namespace weir::sample
