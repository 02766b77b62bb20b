#include "tools/count/assemble.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>

namespace weir::count {

using profile::none;
using profile::SiteKind;

namespace {

// The vDSO is the same in all processes, so ours will do.
std::vector<std::byte> own_vdso() {
  auto* head = reinterpret_cast<const Elf64_Ehdr*>(getauxval(AT_SYSINFO_EHDR));
  if (!head) return {};
  auto* begin = reinterpret_cast<const std::byte*>(head);
  return {begin, begin + head->e_shoff + head->e_shnum * sizeof(Elf64_Shdr)};
}

}  // namespace

uint32_t Assembler::image(const std::string& path) {
  auto [known, is_new] = image_by_path_.try_emplace(path, static_cast<uint32_t>(p_.images.size()));
  if (!is_new) return known->second;
  profile::Image image;
  image.path = path == "[anonymous]" ? "[code written at run time]" : path;
  struct stat st{};
  if (stat(path.c_str(), &st) == 0) image.size = static_cast<uint64_t>(st.st_size), image.modified = st.st_mtime;
  ImageState state;
  if (path == "[vdso]") state.symbols = symbols::Symbols::from_memory(own_vdso(), path);
  else if (path.starts_with('/')) state.symbols = symbols::Symbols::open(path);
  if (path.starts_with('/'))
    if (auto file = elf::Image::open(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path))
      image.build_id = (*file)->build_id();
  p_.images.push_back(std::move(image));
  images_.push_back(std::move(state));
  return known->second;
}

uint32_t Assembler::function(uint32_t image, uint64_t offset, uint64_t size) {
  ImageState& state = images_[image];
  if (state.symbols)
    if (const symbols::Function* f = state.symbols->function_at({offset}))
      offset = f->range.begin.value, size = f->range.size();
  auto [known, is_new] = state.functions.try_emplace(offset, static_cast<uint32_t>(p_.functions.size()));
  if (is_new) p_.functions.push_back({image, offset, size, "", "", "", 0});
  return known->second;
}

void Assembler::add(Count& tool, const Program& program) {
  auto process = static_cast<uint32_t>(p_.processes.size());
  p_.processes.push_back({program.pid, none, program.command, program.started, program.ended, program.exit_status, {}});
  parents_.push_back(program.parent);

  std::vector<uint32_t> functions, blocks, sites;
  for (const Function& f : tool.functions()) {
    bool known = &f != tool.functions().data();
    uint32_t where = image(known && f.image < program.images.size() ? program.images[f.image] : "[anonymous]");
    functions.push_back(function(where, f.begin.value - f.bias, static_cast<uint64_t>(f.end - f.begin)));
  }
  for (const Block& b : tool.blocks()) {
    uint64_t offset = b.begin.value - tool.functions()[b.function].bias;
    uint32_t owner = functions[b.function];
    auto [known, is_new] = blocks_.try_emplace({owner, offset, b.bytes.size()}, static_cast<uint32_t>(p_.blocks.size()));
    blocks.push_back(known->second);
    if (!is_new) continue;
    auto* bytes = reinterpret_cast<const uint8_t*>(b.bytes.data());
    p_.blocks.push_back({owner, offset, {bytes, bytes + b.bytes.size()}, b.instructions, b.cycles, {}});
    lengths_.push_back(b.lengths);
    so_far_.push_back(b.so_far);
  }
  for (uint32_t i = 0; i < tool.sites().size(); i++) {
    const Site& s = tool.sites()[i];
    SiteKind kind = i == Count::start ? SiteKind::Start : i == Count::signal ? SiteKind::Signal : s.kind;
    bool is_code = i > Count::signal;
    uint32_t owner = is_code ? functions[s.function] : none;
    uint64_t offset = is_code ? s.pc.value - tool.functions()[s.function].bias : 0;
    auto [known, is_new] = sites_.try_emplace({owner, offset, kind}, static_cast<uint32_t>(p_.sites.size()));
    if (is_new) p_.sites.push_back({owner, offset, kind, "", 0});
    sites.push_back(known->second);
  }
  for (const Thread& t : tool.take(program.pid)) add_thread(tool, t, process, functions, blocks, sites);
}

void Assembler::add_thread(Count& tool, const Thread& t, uint32_t process, std::span<const uint32_t> functions,
                           std::span<const uint32_t> blocks, std::span<const uint32_t> sites) {
  profile::Thread out;
  out.process = process;
  out.tid = t.tid;
  out.os_time = t.os_time;
  std::map<uint32_t, profile::BlockCount> block_counts;
  std::map<uint32_t, profile::FunctionCount> function_counts;
  std::map<std::pair<uint32_t, uint32_t>, profile::CallCount> calls;
  std::map<std::pair<uint32_t, uint32_t>, profile::OsCount> os_calls;
  auto of = [&](uint32_t function) -> profile::FunctionCount& {
    auto& f = function_counts[functions[function]];
    f.function = functions[function];
    return f;
  };
  for (size_t i = 0; i < t.blocks.size(); i++) {
    if (!t.blocks[i]) continue;
    const Block& b = tool.blocks()[i];
    auto& count = block_counts[blocks[i]];
    count.block = blocks[i];
    count.count += t.blocks[i];
    count.extra += t.extras[i];
    uint64_t cycles = t.blocks[i] * b.cycles + t.extras[i];
    of(b.function).self += cycles;
    out.cycles += cycles;
    out.instructions += t.blocks[i] * b.instructions;
  }
  for (const auto& [key, c] : t.calls) {
    auto [site, callee] = key;
    auto& f = of(callee);
    auto& call = calls[{sites[site], functions[callee]}];
    call.site = sites[site], call.callee = functions[callee];
    call.calls += c.calls, call.total += c.total, call.os_time_total += c.os;
    f.calls += c.calls, f.total += c.total, f.os_time_total += c.os;
    for (profile::Range* range : {&call.self_range, &f.self_range})
      range->min = std::min(range->min, c.min), range->max = std::max(range->max, c.max);
  }
  for (const rt::OsRecord& r : t.os_calls) {
    auto& f = of(r.function);
    f.os_calls += r.calls, f.os_time += r.time;
    auto& o = os_calls[{functions[r.function], r.number}];
    o.function = functions[r.function], o.number = r.number;
    o.calls += r.calls, o.errors += r.errors, o.uncharged += r.uncharged, o.time += r.time;
    o.os_class = static_cast<profile::OsClass>(os_class(r.number));
  }
  for (size_t i = 1; i < t.contexts.size(); i++) {
    const rt::Context& c = t.contexts[i];
    out.contexts.push_back(
        {c.parent && c.parent < i ? c.parent - 1 : none, sites[c.site], functions[c.callee], c.calls, c.self, c.os});
  }
  for (auto& [key, c] : block_counts) out.blocks.push_back(c);
  ran_.resize(p_.functions.size());
  for (auto& [key, f] : function_counts) out.functions.push_back(f), ran_[key] = true;
  for (auto& [key, c] : calls) out.calls.push_back(c);
  for (auto& [key, o] : os_calls) out.os_calls.push_back(o);
  if (t.lost)
    p_.processes[process].notes.push_back(fmt::format("thread {}: {} calls did not fit into a table", t.tid, t.lost));
  p_.threads.push_back(std::move(out));
}

// Most children end before their parents. A process that executed others is several programs: the one that ran then.
void Assembler::find_parents() {
  for (size_t i = 0; i < p_.processes.size(); i++)
    for (uint32_t k = 0; parents_[i] && k < p_.processes.size(); k++) {
      const profile::Process& parent = p_.processes[k];
      bool ran = parent.started <= p_.processes[i].started && p_.processes[i].started <= parent.ended;
      if (k != i && parent.pid == parents_[i] && (ran || p_.processes[i].parent == none)) p_.processes[i].parent = k;
    }
}

void Assembler::finish() {
  find_parents();
  cut_blocks();
  ran_.resize(p_.functions.size());
  for (uint32_t i = 0; i < p_.images.size(); i++) {
    name_functions(i);
    find_lines(i);
    if (images_[i].symbols)
      for (const std::string& note : images_[i].symbols->notes())
        if (!p_.processes.empty()) p_.processes[0].notes.push_back(note);
  }
}

// Those that never ran are known too (A8).
void Assembler::name_functions(uint32_t index) {
  ImageState& state = images_[index];
  if (state.symbols)
    for (const symbols::Function& f : state.symbols->functions())
      if (f.kind != symbols::Kind::PltEntry) function(index, f.range.begin.value, f.range.size());
  std::string base = p_.images[index].path.substr(p_.images[index].path.rfind('/') + 1);
  for (const auto& [offset, id] : state.functions) {
    profile::Function& out = p_.functions[id];
    const symbols::Function* f = state.symbols ? state.symbols->function_at({offset}) : nullptr;
    out.name = f && !f->name.empty() ? f->name : fmt::format("{}+{:#x}", base, offset);
    if (!f) continue;
    out.linkage_name = f->linkage_name;
    if (id >= ran_.size() || !ran_[id]) continue;  // (where the others are declared would take long to find)
    symbols::Place place = state.symbols->declaration({offset});
    out.file = place.file, out.line = place.line;
  }
}

void Assembler::find_lines(uint32_t index) {
  ImageState& state = images_[index];
  if (!state.symbols || !state.symbols->has_lines()) return;
  // Every instruction once, in order: (address, block, cycles), and the sites.
  struct Asked {
    elf::Vaddr address;
    uint32_t block, cycles, site;
  };
  std::vector<Asked> asked;
  for (uint32_t b = 0; b < p_.blocks.size(); b++) {
    const profile::Block& block = p_.blocks[b];
    if (p_.functions[block.function].image != index || !ran_[block.function]) continue;
    uint64_t address = block.offset;
    uint32_t before = 0;
    for (size_t i = 0; i < lengths_[b].size(); i++) {
      uint32_t so_far = i < so_far_[b].size() ? so_far_[b][i] : before;
      asked.push_back({{address}, b, so_far - before, none});
      before = so_far;
      address += lengths_[b][i];
    }
  }
  for (uint32_t s = 0; s < p_.sites.size(); s++)
    if (p_.sites[s].function != none && p_.functions[p_.sites[s].function].image == index && ran_[p_.sites[s].function])
      asked.push_back({{p_.sites[s].offset}, none, 0, s});
  std::stable_sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) { return a.address < b.address; });
  std::vector<elf::Vaddr> addresses;
  for (const Asked& a : asked) addresses.push_back(a.address);
  state.symbols->frames(addresses, [&](size_t i, std::span<const symbols::Frame> frames) {
    if (frames.empty()) return;
    const Asked& a = asked[i];
    const symbols::Frame& inner = frames.front();
    if (a.site != none) {
      p_.sites[a.site].file = inner.place.file, p_.sites[a.site].line = inner.place.line;
      return;
    }
    std::string_view inlined = frames.size() > 1 ? inner.function : std::string_view{};
    auto& lines = p_.blocks[a.block].lines;
    auto part = std::find_if(lines.begin(), lines.end(), [&](const profile::LinePart& l) {
      return l.line == inner.place.line && l.file == inner.place.file && l.inlined == inlined;
    });
    if (part == lines.end())
      part = lines.insert(part, {std::string(inner.place.file), inner.place.line, std::string(inlined), 0, 0});
    part->instructions++;
    part->cycles += a.cycles;
  });
}

}  // namespace weir::count
