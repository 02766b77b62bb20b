#include "symbols/debug_info.h"

#include <dwarf.h>

#include <algorithm>

#include "base/text.h"
#include "symbols/debug_file.h"

namespace weir::symbols {

namespace {

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

}  // namespace

DebugInfo::DebugInfo(const Object& image, const Object& file, const Options& options, std::vector<std::string>& notes) {
  if (!file.has_dwarf()) return;
  dwarf_.reset(dwarf_begin_elf(file.elf.get(), DWARF_C_READ, nullptr));
  if (!dwarf_) {
    notes.push_back(fmt::format("{}: no lines: {}", file.path, dwarf_errmsg(-1)));
    return;
  }
  alternate_ = find_alternate_file(file, dwarf_.get(), options);
  if (alternate_) {
    alternate_dwarf_.reset(dwarf_begin_elf(alternate_->elf.get(), DWARF_C_READ, nullptr));
    dwarf_setalt(dwarf_.get(), alternate_dwarf_.get());
  }
  context_.is_code = [code = image.code()](Vaddr v) {
    auto after = std::ranges::upper_bound(code, v, {}, &VRange::begin);
    return after != code.begin() && std::prev(after)->contains(v);
  };
  context_.sections = {section_data(file, "debug_line"), section_data(file, "debug_line_str"),
                       section_data(file, "debug_str")};
  list_units(image, notes);
}

void DebugInfo::list_units(const Object& image, std::vector<std::string>& notes) {
  Dwarf_CU* cu = nullptr;
  Dwarf_Die unit, tree;
  uint8_t type;
  int status;
  size_t without_tree = 0;
  while ((status = dwarf_get_units(dwarf_.get(), cu, &cu, nullptr, &type, &unit, &tree)) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    without_tree += type == DW_UT_skeleton && !tree.addr;
    units_.push_back(std::make_unique<Unit>(unit, tree.addr ? tree : unit, context_));
    add_ranges(unit, static_cast<uint32_t>(units_.size() - 1));
  }
  if (status < 0) notes.push_back(fmt::format("{}: lines end early: {}", image.path, dwarf_errmsg(-1)));
  if (without_tree > 0)
    notes.push_back(fmt::format("{}: {} without their .dwo file: their inlined calls are not known", image.path,
                                counted(without_tree, "unit")));
  std::ranges::sort(ranges_, {}, &UnitRange::range);
}

void DebugInfo::add_ranges(Dwarf_Die unit, uint32_t id) {
  Dwarf_Addr base, begin, end;
  ptrdiff_t offset = 0;
  while ((offset = dwarf_ranges(&unit, offset, &base, &begin, &end)) > 0) {
    // What the linker has dropped is at 0 or at the highest addresses: not where code is.
    if (begin < end && context_.is_code({begin})) ranges_.push_back({{{begin}, {end}}, id});
  }
}

DebugInfo::Found DebugInfo::unit_at(Vaddr v) {
  auto after = std::ranges::upper_bound(ranges_, v, {}, [](const UnitRange& r) { return r.range.begin; });
  if (after == ranges_.begin() || !std::prev(after)->range.contains(v)) return {};
  VRange range = std::prev(after)->range;
  if (after != ranges_.end()) range.end = std::min(range.end, after->range.begin);
  return {units_[std::prev(after)->unit].get(), range, std::prev(after)->unit};
}

InlinedCall DebugInfo::inlined(uint64_t number) {
  uint64_t id = (number >> 32) - 1;
  auto scope = static_cast<uint32_t>(number);
  CHECK(id < units_.size());
  Unit& unit = *units_[id];
  uint32_t parent = unit.scope(scope).parent;
  bool is_inside = parent != none && unit.scope(parent).is_inlined;
  return {is_inside ? (number & ~uint64_t{UINT32_MAX}) | parent : 0,
          unit.entry(scope),
          unit.name_of(scope),
          unit.origin_of(scope),
          unit.declaration(scope),
          unit.call_place(scope)};
}

Place DebugInfo::declaration(Vaddr v) {
  Unit* unit = unit_at(v).unit;
  const Unit::Stretch* stretch = unit ? last_at(unit->stretches(), v) : nullptr;
  uint32_t scope = stretch ? stretch->scope : none;
  while (scope != none && unit->scope(scope).parent != none) scope = unit->scope(scope).parent;
  return scope == none ? Place{} : unit->declaration(scope);
}

Place DebugInfo::known_declaration(Vaddr v) {
  Unit* unit = unit_at(v).unit;
  return unit && unit->is_read() ? declaration(v) : Place{};
}

std::vector<Row> DebugInfo::rows(VRange range) {
  std::vector<Row> found;
  auto unit = std::ranges::upper_bound(ranges_, range.begin, {}, [](const UnitRange& r) { return r.range.begin; });
  if (unit != ranges_.begin()) --unit;
  for (; unit != ranges_.end() && unit->range.begin < range.end; ++unit) {
    VRange part = elf::intersect(range, unit->range);
    if (!found.empty()) part.begin = std::max(part.begin, found.back().range.end);
    if (part.begin < part.end) add_rows(*units_[unit->unit], part, found);
  }
  return found;
}

void DebugInfo::add_rows(Unit& unit, VRange range, std::vector<Row>& found) {
  const std::vector<LineRow>& rows = unit.rows();
  const LineRow* first = last_at(rows, range.begin);
  for (size_t i = first ? static_cast<size_t>(first - rows.data()) : 0; i < rows.size(); ++i) {
    if (rows[i].begin >= range.end) break;
    VRange covered = elf::intersect(range, {rows[i].begin, i + 1 < rows.size() ? rows[i + 1].begin : range.end});
    if (rows[i].file != none) found.push_back({covered, unit.place_of(rows[i]), rows[i].is_statement != 0});
  }
}

void DebugInfo::index_lines() {
  if (lines_indexed_) return;
  lines_indexed_ = true;
  for (auto& unit : units_)
    for (const LineRow& row : unit->rows())
      if (uint32_t file = row.line != 0 ? unit->file_id(row.file) : none; file != none)
        lines_by_file_[file].push_back(row.line);
  for (auto& [file, lines] : lines_by_file_) {
    std::ranges::sort(lines);
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  }
}

std::vector<uint32_t> DebugInfo::source_lines_of(std::string_view file) {
  index_lines();
  std::optional<uint32_t> id = context_.files.find(file);
  return id && lines_by_file_.contains(*id) ? lines_by_file_[*id] : std::vector<uint32_t>();
}

}  // namespace weir::symbols
