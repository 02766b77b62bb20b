// The image, its separate debug file and the units of its DWARF, each opened when first needed.
#include "symbols/symbols.h"

#include <dwarf.h>

#include <algorithm>
#include <map>

#include "symbols/debug_file.h"
#include "symbols/functions.h"
#include "symbols/truncation.h"
#include "symbols/unit.h"

namespace weir::symbols {

namespace {

struct EndDwarf {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};
using DwarfHandle = std::unique_ptr<Dwarf, EndDwarf>;

struct UnitRange {
  VRange range;
  uint32_t unit;
};

// A section of DWARF as libdw left it: decompressed. `name` is without its dot.
Reader section_data(const Object& object, std::string_view name) {
  size_t names = 0;
  if (elf_getshdrstrndx(object.elf.get(), &names) != 0) return {};
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(object.elf.get(), section));) {
    Elf64_Shdr* header = elf64_getshdr(section);
    const char* text = header ? elf_strptr(object.elf.get(), names, header->sh_name) : nullptr;
    if (!text || (text != fmt::format(".{}", name) && text != fmt::format(".z{}", name))) continue;
    Elf_Data* data = header->sh_type == SHT_NOBITS ? nullptr : elf_rawdata(section, nullptr);
    if (!data || !data->d_buf) continue;
    auto begin = static_cast<const uint8_t*>(data->d_buf);
    return {begin, begin + data->d_size};
  }
  return {};
}

// The element whose stretch has `v`: the last that does not begin behind it, or the end.
template <class Elements>
auto last_at(const Elements& elements, Vaddr v) {
  auto after = std::ranges::upper_bound(elements, v, {}, [](const auto& e) { return e.begin; });
  return after == elements.begin() ? elements.end() : std::prev(after);
}

// The same for addresses that only grow: `i` is the answer for an earlier one.
template <class Elements>
size_t advance(const Elements& elements, size_t i, Vaddr v) {
  while (i + 1 < elements.size() && elements[i + 1].begin <= v) ++i;
  return i;
}

}  // namespace

struct Symbols::Parts {
  Options options;
  std::unique_ptr<Object> image;  // without bytes where the file could not be read
  std::vector<std::string> notes;

  bool debug_searched = false;
  std::unique_ptr<Object> debug, mini, alternate;

  bool functions_listed = false;
  std::vector<Function> functions;

  bool dwarf_opened = false;
  DwarfHandle alternate_dwarf, dwarf;  // closed before what they read
  UnitContext context;
  std::vector<std::unique_ptr<Unit>> units;
  std::vector<UnitRange> ranges;  // sorted
  bool lines_indexed = false;
  std::map<uint32_t, std::vector<uint32_t>> lines_by_file;

  void search_debug() {
    if (debug_searched || !image->elf) return;
    debug_searched = true;
    if (!image->has_dwarf()) debug = find_debug_file(*image, options);
    bool has_symbols = std::ranges::any_of(image->sections, [](auto& s) { return s.header.sh_type == SHT_SYMTAB; });
    if (!debug && !has_symbols) mini = mini_debug_file(*image);
  }

  void open_dwarf() {
    if (dwarf_opened || !image->elf) return;
    dwarf_opened = true;
    search_debug();
    const Object& object = debug ? *debug : *image;
    if (!object.has_dwarf()) return;
    dwarf.reset(dwarf_begin_elf(object.elf.get(), DWARF_C_READ, nullptr));
    if (!dwarf) {
      notes.push_back(fmt::format("{}: no lines: {}", object.path, dwarf_errmsg(-1)));
      return;
    }
    if ((alternate = find_alternate_file(object, dwarf.get(), options))) {
      alternate_dwarf.reset(dwarf_begin_elf(alternate->elf.get(), DWARF_C_READ, nullptr));
      dwarf_setalt(dwarf.get(), alternate_dwarf.get());
    }
    context.is_code = [this](Vaddr v) { return image->contents.code_at(v).has_value(); };
    context.sections = {section_data(object, "debug_line"), section_data(object, "debug_line_str"),
                        section_data(object, "debug_str")};
    list_units();
  }

  void list_units() {
    Dwarf_CU* cu = nullptr;
    Dwarf_Die unit, tree;
    uint8_t type;
    int more;
    while ((more = dwarf_get_units(dwarf.get(), cu, &cu, nullptr, &type, &unit, &tree)) == 0) {
      if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
      if (type == DW_UT_skeleton && !tree.addr)
        notes.push_back(fmt::format("{}: no .dwo file for a unit: its inlined calls are not known", image->path));
      units.push_back(std::make_unique<Unit>(unit, tree.addr ? tree : unit, context));
      add_ranges(unit, static_cast<uint32_t>(units.size() - 1));
    }
    if (more < 0) notes.push_back(fmt::format("{}: lines end early: {}", image->path, dwarf_errmsg(-1)));
    std::ranges::sort(ranges, {}, &UnitRange::range);
  }

  void add_ranges(Dwarf_Die unit, uint32_t id) {
    Dwarf_Addr base, begin, end;
    ptrdiff_t offset = 0;
    while ((offset = dwarf_ranges(&unit, offset, &base, &begin, &end)) > 0) {
      // What the linker has dropped is at 0 or at the highest addresses: not where code is.
      if (begin < end && context.is_code({begin})) ranges.push_back({{{begin}, {end}}, id});
    }
  }

  // The unit that has `v`, from ranges[hint] on where addresses only grow.
  Unit* unit_at(Vaddr v, VRange* range = nullptr) {
    open_dwarf();
    auto after = std::ranges::upper_bound(ranges, v, {}, [](const UnitRange& r) { return r.range.begin; });
    if (after == ranges.begin() || !std::prev(after)->range.contains(v)) return nullptr;
    if (range) *range = {std::prev(after)->range.begin, std::prev(after)->range.end};
    if (range && after != ranges.end()) range->end = std::min(range->end, after->range.begin);
    return units[std::prev(after)->unit].get();
  }

  // The outermost scope at `v`, none where there is none.
  uint32_t function_scope(Unit& unit, Vaddr v) const {
    auto stretch = last_at(unit.stretches(), v);
    uint32_t scope = stretch == unit.stretches().end() ? none : stretch->scope;
    while (scope != none && unit.scope(scope).parent != none) scope = unit.scope(scope).parent;
    return scope;
  }

  void index_lines() {
    if (lines_indexed) return;
    lines_indexed = true;
    open_dwarf();
    for (auto& unit : units)
      for (const LineRow& row : unit->rows())
        if (uint32_t file = row.line != 0 ? unit->file_id(row.file) : none; file != none)
          lines_by_file[file].push_back(row.line);
    for (auto& [file, lines] : lines_by_file) {
      std::ranges::sort(lines);
      lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    }
  }
};

Symbols::Symbols(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Symbols::~Symbols() = default;

std::unique_ptr<Symbols> Symbols::open(const std::string& path, const Options& options) {
  TruncationGuard guard;
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  auto image = open_object(path);
  if (image && !options.build_id.empty() && (*image)->build_id != options.build_id)
    image = fail("{}: is not the file that ran: build-id {}, not {}", path, (*image)->build_id, options.build_id);
  if (!image) parts->notes.push_back(image.error().what);
  parts->image = image ? std::move(*image) : std::make_unique<Object>();
  parts->image->path = path;
  return std::unique_ptr<Symbols>(new Symbols(std::move(parts)));
}

std::unique_ptr<Symbols> Symbols::from_memory(std::vector<std::byte> bytes, const std::string& path,
                                              const Options& options) {
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  auto image = object_from_memory(std::move(bytes), path);
  if (!image) parts->notes.push_back(image.error().what);
  parts->image = image ? std::move(*image) : std::make_unique<Object>();
  parts->image->path = path;
  return std::unique_ptr<Symbols>(new Symbols(std::move(parts)));
}

const std::vector<Function>& Symbols::functions() {
  if (parts_->functions_listed || !parts_->image->elf) return parts_->functions;
  TruncationGuard guard;
  parts_->functions_listed = true;
  parts_->search_debug();
  std::vector<const Object*> tables{parts_->image.get()};
  for (const Object* more : {parts_->debug.get(), parts_->mini.get()})
    if (more) tables.push_back(more);
  return parts_->functions = list_functions(*parts_->image, tables);
}

const Function* Symbols::function_at(Vaddr v) {
  const std::vector<Function>& all = functions();
  auto after = std::ranges::upper_bound(all, v, {}, [](const Function& f) { return f.range.begin; });
  return after == all.begin() || !std::prev(after)->range.contains(v) ? nullptr : &*std::prev(after);
}

std::string Symbols::name_at(Vaddr v) {
  const Function* function = function_at(v);
  return function ? function->name : unnamed(*parts_->image, v);
}

Place Symbols::declaration(Vaddr v) {
  TruncationGuard guard;
  Unit* unit = parts_->unit_at(v);
  uint32_t scope = unit ? parts_->function_scope(*unit, v) : none;
  return scope == none ? Place{} : unit->declaration(scope);
}

std::vector<Row> Symbols::rows(VRange range) {
  TruncationGuard guard;
  parts_->open_dwarf();
  std::vector<Row> found;
  auto first = std::ranges::upper_bound(parts_->ranges, range.begin, {}, [](const UnitRange& r) { return r.range.begin; });
  if (first != parts_->ranges.begin()) --first;
  for (; first != parts_->ranges.end() && first->range.begin < range.end; ++first) {
    Unit& unit = *parts_->units[first->unit];
    const std::vector<LineRow>& rows = unit.rows();
    VRange part{std::max(range.begin, first->range.begin), std::min(range.end, first->range.end)};
    if (!found.empty()) part.begin = std::max(part.begin, found.back().range.end);
    auto row = last_at(rows, part.begin);
    if (row == rows.end()) row = rows.begin();
    for (; row != rows.end() && row->begin < part.end; ++row) {
      Vaddr end = std::next(row) == rows.end() ? part.end : std::min(part.end, std::next(row)->begin);
      VRange covered{std::max(row->begin, part.begin), end};
      if (row->file == none || covered.begin >= covered.end) continue;
      found.push_back({covered, unit.place_of(*row), row->is_statement != 0});
    }
  }
  return found;
}

void Symbols::frames(std::span<const Vaddr> addresses, const TakeFrames& take) {
  TruncationGuard guard;
  const std::vector<Function>& all = functions();
  parts_->open_dwarf();
  std::vector<Frame> chain;
  std::string name;  // of code that has none
  // Where the last address was; an address in the same row, scope and function has the same frames.
  size_t function = 0, row = 0, stretch = 0;
  Unit* unit = nullptr;
  VRange in_unit{}, same{};
  for (size_t i = 0; i < addresses.size(); ++i) {
    Vaddr v = addresses[i];
    CHECK(i == 0 || addresses[i - 1] <= v);
    if (same.contains(v)) {
      take(i, chain);
      continue;
    }
    chain.clear();
    same = {v, {UINT64_MAX}};
    auto until = [&](Vaddr end) { same.end = std::min(same.end, end); };

    while (function < all.size() && all[function].range.end <= v) ++function;
    bool named = function < all.size() && all[function].range.contains(v);
    until(named ? all[function].range.end : v + 1);

    if (!in_unit.contains(v)) {
      unit = parts_->unit_at(v, &in_unit);
      if (!unit) in_unit = {};
      row = stretch = 0;
      if (unit) {
        if (auto found = last_at(unit->rows(), v); found != unit->rows().end()) row = found - unit->rows().begin();
        if (auto found = last_at(unit->stretches(), v); found != unit->stretches().end())
          stretch = found - unit->stretches().begin();
      }
    }
    Place place;
    uint32_t scope = none;
    if (unit) {
      until(in_unit.end);
      const auto& rows = unit->rows();
      row = advance(rows, row, v);
      if (row < rows.size() && rows[row].begin <= v) place = unit->place_of(rows[row]);
      if (row + 1 < rows.size()) until(rows[row + 1].begin > v ? rows[row + 1].begin : v + 1);
      const auto& stretches = unit->stretches();
      stretch = advance(stretches, stretch, v);
      if (stretch < stretches.size() && stretches[stretch].begin <= v) scope = stretches[stretch].scope;
      if (stretch + 1 < stretches.size()) until(stretches[stretch + 1].begin);
    } else {
      until(v + 1);
    }
    for (; scope != none && unit->scope(scope).is_inlined; scope = unit->scope(scope).parent) {
      chain.push_back({unit->name_of(scope), place});
      place = unit->call_place(scope);
    }
    if (named) chain.push_back({all[function].name, place});
    else if (scope != none) chain.push_back({unit->name_of(scope), place});
    else chain.push_back({name = unnamed(*parts_->image, v), place});
    take(i, chain);
  }
}

std::vector<uint32_t> Symbols::source_lines_of(std::string_view file) {
  TruncationGuard guard;
  parts_->index_lines();
  auto id = parts_->context.files.find(file);
  if (!id) return {};
  auto found = parts_->lines_by_file.find(*id);
  return found == parts_->lines_by_file.end() ? std::vector<uint32_t>() : found->second;
}

bool Symbols::has_lines() {
  TruncationGuard guard;
  parts_->open_dwarf();
  return !parts_->ranges.empty();
}

const std::string& Symbols::debug_path() {
  TruncationGuard guard;
  static const std::string no_path;
  parts_->search_debug();
  return parts_->debug ? parts_->debug->path : no_path;
}

const std::vector<std::string>& Symbols::notes() const { return parts_->notes; }

}  // namespace weir::symbols
