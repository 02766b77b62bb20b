#include "symbols/profile_code.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>

#include "elf/contents.h"
#include "symbols/demangle.h"
#include "symbols/written_names.h"

namespace weir::symbols {

using profile::LinePart;
using profile::none;

namespace {

// The vDSO is the same in all processes, so ours will do.
std::vector<std::byte> own_vdso() {
  auto* head = reinterpret_cast<const Elf64_Ehdr*>(getauxval(AT_SYSINFO_EHDR));
  if (!head) return {};
  auto* begin = reinterpret_cast<const std::byte*>(head);
  return {begin, begin + head->e_shoff + head->e_shnum * sizeof(Elf64_Shdr)};
}

bool is_same(const elf::Image& image, const struct stat& st) {
  timespec modified = image.modified();
  return image.bytes().size() == static_cast<uint64_t>(st.st_size) && modified.tv_sec == st.st_mtim.tv_sec &&
         modified.tv_nsec == st.st_mtim.tv_nsec;
}

}  // namespace

uint32_t ProfileCode::image(const std::string& path, const Writer* writer, std::shared_ptr<const elf::Image> opened) {
  bool is_own = writer && is_written(path);
  std::string key = is_own ? fmt::format("{} of {} at {}", path, writer->pid, writer->started) : path;
  auto [known, is_new] = image_by_path_.try_emplace(std::move(key), static_cast<uint32_t>(p_.images.size()));
  if (is_new) {
    profile::Image image;
    image.path = path == "[anonymous]" ? "[code written at run time]" : path;
    struct stat st{};
    if (stat(path.c_str(), &st) == 0) image.size = static_cast<uint64_t>(st.st_size), image.modified = st.st_mtime;
    ImageState state;
    if (opened && is_same(*opened, st)) {
      state.file = std::move(opened);
    } else {
      auto file = path == "[vdso]"        ? elf::Image::from_memory(own_vdso(), path)
                  : path.starts_with('/') ? elf::Image::open(open_to_read(path), path)
                                          : fail("{}: is no file", path);
      if (file) state.file = std::move(*file);
      else if (path.starts_with('/')) state.symbols = Symbols::open(path);  // it says why not
    }
    if (state.file && path != "[vdso]") image.build_id = state.file->build_id();
    p_.images.push_back(std::move(image));
    images_.push_back(std::move(state));
  }
  if (is_own) images_[known->second].written = writer->code;
  return known->second;
}

Symbols* ProfileCode::symbols(uint32_t image) {
  ImageState& state = images_[image];
  const std::string& path = p_.images[image].path;
  if (!state.symbols && state.file)
    state.symbols = path == "[vdso]" ? Symbols::from_memory(own_vdso(), path) : Symbols::open(path);
  return state.symbols.get();
}

uint32_t ProfileCode::function(uint32_t image, uint64_t offset, uint64_t size) {
  ImageState& state = images_[image];
  Symbols* symbols = this->symbols(image);
  const Function* f = symbols ? symbols->function_at({offset}) : nullptr;
  if (f) offset = f->range.begin.value, size = f->range.size();
  if (state.written)
    if (auto named = state.written->find({offset}); named != state.written->entries().end())
      offset = named->first.value, size = static_cast<uint64_t>(named->second.end - named->first);
  uint32_t& id = (f ? state.functions : state.unlisted_functions).try_emplace(offset, none).first->second;
  if (id != none) return id;
  p_.functions.push_back({image, offset, size, "", "", "", 0});
  return id = static_cast<uint32_t>(p_.functions.size() - 1);
}

uint32_t ProfileCode::function_around(uint32_t image, uint64_t offset) {
  ImageState& state = images_[image];
  uint64_t begin = 0, end = UINT64_MAX;
  if (Symbols* symbols = this->symbols(image)) {
    Symbols::Around around = symbols->around({offset});
    if (around.function) {
      const Function* whole = symbols->whole_of(*around.function);
      return function(image, whole ? whole->range.begin.value : offset, 0);
    }
    begin = around.hole.begin.value, end = around.hole.end.value;
  }
  if (state.written) {
    const auto& all = state.written->entries();
    if (state.written->find({offset}) != all.end()) return function(image, offset, 0);
    auto after = all.upper_bound({offset});
    if (after != all.begin()) begin = std::max(begin, std::prev(after)->second.end.value);
    if (after != all.end()) end = std::min(end, after->first.value);
  }
  uint32_t& id = state.unlisted_functions.try_emplace(begin, none).first->second;
  if (id != none) return id;
  p_.functions.push_back({image, begin, end == UINT64_MAX ? 0 : end - begin, "", "", "", 0});
  return id = static_cast<uint32_t>(p_.functions.size() - 1);
}

std::span<const std::byte> ProfileCode::bytes_at(uint32_t image, Vaddr v) const {
  const elf::Image* file = images_[image].file.get();
  if (!file) return {};
  for (const elf::Segment& s : file->segments())
    if (s.type == PT_LOAD && v >= s.vaddr && v.value - s.vaddr.value < s.file_size) {
      uint64_t at = v.value - s.vaddr.value;
      return elf::slice(file->bytes(), s.offset + at, s.file_size - at);
    }
  return {};
}

namespace {

void declare(profile::Function& f, const Place& place) { f.file = place.file, f.line = place.line; }

// "libc.so.6+0x1234". What lies before all that is known of an image begins nowhere.
std::string unnamed(const std::string& base, uint64_t offset) {
  return offset || base.empty() ? fmt::format("{}+{:#x}", base, offset) : base;
}

}  // namespace

namespace {

const char* word_for(NamedBy by) {
  switch (by) {
    case NamedBy::Start: return "start";
    case NamedBy::Variant: return "variant";
    case NamedBy::Target: return "jump";
    case NamedBy::Users: return "users";
    case NamedBy::Nothing: break;
  }
  return "";
}

void derive_name(Symbols& symbols, const Function& f, profile::Function& out) {
  const DerivedName& derived = symbols.derived_name(f);
  if (derived.text.empty()) return;
  out.name = derived.text;
  out.named_by = word_for(derived.by);
}

}  // namespace

void ProfileCode::name_functions(uint32_t index, const std::vector<bool>& has_run, bool all) {
  ImageState& state = images_[index];
  std::string base = p_.images[index].path.substr(p_.images[index].path.rfind('/') + 1);
  for (const auto& [offset, id] : state.unlisted_functions) {
    p_.functions[id].name = unnamed(base, offset);
    if (!state.written) continue;
    if (auto named = state.written->find({offset}); named != state.written->entries().end())
      p_.functions[id].name = p_.functions[id].linkage_name = named->second.name;
  }
  if (all && symbols(index)) add_all(index);
  auto ran = [&](uint32_t id) { return id < has_run.size() && has_run[id]; };
  // What takes long is found out where somebody will read it.
  bool has_nameless = std::ranges::any_of(
      state.functions, [&](const auto& f) { return ran(f.second) && state.symbols->function_at({f.first})->is_nameless; });
  for (const auto& [offset, id] : state.functions) {
    const Function* f = state.symbols->function_at({offset});
    profile::Function& out = p_.functions[id];
    out.name = f->name();
    out.linkage_name = f->linkage_name;
    out.clone = split_clone(f->linkage_name).clone;
    if (has_nameless && f->is_nameless) derive_name(*state.symbols, *f, out);
    if (ran(id)) declare(out, state.symbols->declaration({offset}));
  }
  // Where the others are declared would take long to find, but for those that stand beside one that ran.
  for (const auto& [offset, id] : state.functions)
    if (!ran(id)) declare(p_.functions[id], state.symbols->known_declaration({offset}));
}

void ProfileCode::add_all(uint32_t index) {
  ImageState& state = images_[index];
  for (const Function& f : state.symbols->functions()) {
    if (f.kind == Kind::PltEntry || (state.symbols->is_part(f) && !state.functions.contains(f.range.begin.value))) continue;
    auto next = static_cast<uint32_t>(p_.functions.size());
    auto added = state.functions.try_emplace(state.functions.end(), f.range.begin.value, next);
    if (added->second == next) p_.functions.push_back({index, f.range.begin.value, f.range.size(), "", "", "", 0});
  }
}

namespace {

// One instruction of a block.
struct Answer {
  uint32_t block, cycles, line;
  std::string_view file, inlined;
  uint32_t scope;
};

// The answers of one block: parts of the same line become one. Returns that of the last.
uint32_t add_parts(std::span<const Answer> answers, std::vector<LinePart>& lines) {
  size_t first = lines.size();
  ptrdiff_t last = 0;
  for (const Answer& a : answers) {
    auto part = std::find_if(lines.begin() + static_cast<ptrdiff_t>(first), lines.end(), [&](const LinePart& l) {
      return l.line == a.line && l.scope == a.scope && l.file == a.file && l.inlined == a.inlined;
    });
    if (part == lines.end())
      part = lines.insert(part, {a.block, std::string(a.file), a.line, std::string(a.inlined), 0, 0, a.scope});
    part->instructions++;
    part->cycles += a.cycles;
    last = part - lines.begin();
  }
  return static_cast<uint32_t>(last);
}

}  // namespace

void ProfileCode::find_lines(uint32_t index, std::vector<Asked> asked) {
  if (asked.empty() || !has_lines(index)) return;
  last_scope_ = {};
  std::ranges::stable_sort(asked, {}, &Asked::address);
  std::vector<Vaddr> addresses;
  for (const Asked& a : asked) addresses.push_back(a.address);

  std::vector<Answer> answers;
  images_[index].symbols->frames(addresses, [&](size_t i, std::span<const Frame> frames) {
    if (frames.empty()) return;
    const Frame& inner = frames.front();
    uint32_t site = asked[i].site, block = asked[i].block;
    uint32_t owner = site != none ? p_.sites[site].function : p_.blocks[block].function;
    uint32_t scope = none;
    if (asked[i].ran && inner.scope) {
      if (last_scope_.number != inner.scope || last_scope_.function != owner)
        last_scope_ = {inner.scope, owner, this->scope(index, inner.scope, owner)};
      scope = last_scope_.scope;
    }
    if (site != none)
      p_.sites[site].file = inner.place.file, p_.sites[site].line = inner.place.line, p_.sites[site].scope = scope;
    else
      answers.push_back({block, asked[i].cycles, inner.place.line, inner.place.file,
                         inner.scope ? inner.function : std::string_view{}, scope});
  });
  std::ranges::stable_sort(answers, {}, &Answer::block);  // (blocks may overlap)
  for (size_t i = 0, end; i < answers.size(); i = end) {
    for (end = i + 1; end < answers.size() && answers[end].block == answers[i].block;) end++;
    uint32_t last = add_parts(std::span(answers).subspan(i, end - i), p_.lines);
    uint32_t block = answers[i].block;
    if (part_at_end_.size() <= block) part_at_end_.resize(p_.blocks.size(), none);
    part_at_end_[block] = last;
  }
}

uint32_t ProfileCode::scope(uint32_t image, uint64_t number, uint32_t function) {
  auto& scopes = images_[image].scopes;
  if (auto known = scopes.find({number, function}); known != scopes.end()) return known->second;
  InlinedCall call = images_[image].symbols->inlined(number);
  profile::Scope made{.function = function, .entry = call.entry.value};
  if (call.parent) made.parent = scope(image, call.parent, function);  // (they are as deep as the compiler went)
  made.inlined = inlined_function(image, call);
  // A part that GCC had split off a function and put back: a "call" of the function in itself, at its head.
  uint32_t around = made.parent == none ? function : p_.scopes[made.parent].inlined;
  if (around == made.inlined && call.call == call.declared) return scopes[{number, function}] = made.parent;
  made.site = static_cast<uint32_t>(p_.sites.size());
  p_.sites.push_back(
      {function, made.entry, profile::SiteKind::Inlined, std::string(call.call.file), call.call.line, made.parent});
  p_.scopes.push_back(made);
  return scopes[{number, function}] = static_cast<uint32_t>(p_.scopes.size() - 1);
}

namespace {

// "f(int) [clone .isra.0]" is what the compiler made of f(int); of a C function, "f.isra.0".
std::string without_clone(const std::string& name) {
  std::string base = name.substr(0, name.find(" [clone "));
  for (const char* suffix : {".isra.", ".constprop.", ".part.", ".lto_priv.", ".cold"})
    if (size_t at = base.find(suffix); at != std::string::npos && at > 0) base.resize(at);
  return base;
}

}  // namespace

// A function that has code of its own besides is one function with it: it has the same name, and is declared at the same place. (What
// never ran may not say where it is declared.)
uint32_t ProfileCode::inlined_function(uint32_t image, const InlinedCall& call) {
  ImageState& state = images_[image];
  auto [known, is_new] = state.functions_by_origin.try_emplace(call.origin, none);
  if (!is_new) return known->second;
  auto& all = state.functions_by_declaration;
  if (all.empty())
    for (const auto& [offset, id] : state.functions) {
      const profile::Function& f = p_.functions[id];
      std::string base = without_clone(f.name);
      auto [first, fresh] = all.try_emplace({base, f.file, f.line}, id);
      if (!fresh && f.name == base) first->second = id;  // rather the function than a clone
    }
  std::string name(call.function), file(call.declared.file);
  auto found = all.find({name, file, call.declared.line});
  if (found == all.end()) found = all.find({name, "", 0});
  // (Without a linkage name its parameters are not known.)
  if (auto next = all.lower_bound({name + "(", "", 0}); found == all.end() && next != all.end())
    if (auto& [known_name, known_file, line] = next->first;
        known_name.starts_with(name + "(") && known_file == file && line == call.declared.line)
      found = next;
  if (found == all.end()) {
    found = all.emplace(std::tuple(name, file, call.declared.line), static_cast<uint32_t>(p_.functions.size())).first;
    p_.functions.push_back({image, 0, 0, "", name, file, call.declared.line, {}, {}, false});
  } else if (profile::Function& f = p_.functions[found->second]; f.file.empty()) {
    f.file = file, f.line = call.declared.line;
  }
  return known->second = found->second;
}

std::span<const std::string> ProfileCode::notes(uint32_t image) const {
  if (!images_[image].symbols) return {};
  return images_[image].symbols->notes();
}

}  // namespace weir::symbols
