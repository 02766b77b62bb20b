#include "symbols/unit.h"

#include <dwarf.h>

#include <algorithm>
#include <filesystem>

#include "symbols/demangle.h"
#include "symbols/dies.h"

namespace weir::symbols {

namespace {

// Enough for any code: what has more is broken, or made to keep us busy.
constexpr size_t most_ranges = 1 << 20;

std::string text_of(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  const char* text = dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
  return text ? text : "";
}

// The linkage name says namespaces and parameters as well. C has none, and Go's names are whole as they are.
std::string full_name(Dwarf_Die* die) {
  std::string linkage_name = text_of(die, DW_AT_linkage_name);
  if (linkage_name.empty()) linkage_name = text_of(die, DW_AT_MIPS_linkage_name);
  return linkage_name.empty() ? text_of(die, DW_AT_name) : demangle(linkage_name);
}

struct Interval {
  VRange range;
  uint32_t scope;
};

// Intervals that lie inside one another become stretches that lie side by side. An inner scope has a larger number.
//   f [0,9)  g [2,7) in f  h [3,4) in g   ->   0 f, 2 g, 3 h, 4 g, 7 f, 9 none
std::vector<Unit::Stretch> flatten(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, [](const Interval& a, const Interval& b) {
    return a.range.begin != b.range.begin ? a.range.begin < b.range.begin : a.scope < b.scope;
  });
  std::vector<Unit::Stretch> stretches;
  std::vector<Interval> open;
  auto put = [&](Vaddr begin, uint32_t scope) {
    if (!stretches.empty() && stretches.back().begin == begin) stretches.back().scope = scope;
    else if (stretches.empty() || stretches.back().scope != scope) stretches.push_back({begin, scope});
  };
  auto close_until = [&](Vaddr v) {
    while (!open.empty() && open.back().range.end <= v) {
      Vaddr end = open.back().range.end;
      // One that sticks out of the one around it takes that with it.
      while (!open.empty() && open.back().range.end <= end) open.pop_back();
      put(end, open.empty() ? none : open.back().scope);
    }
  };
  for (const Interval& interval : intervals) {
    close_until(interval.range.begin);
    put(interval.range.begin, interval.scope);
    open.push_back(interval);
  }
  close_until({UINT64_MAX});
  return stretches;
}

}  // namespace

uint32_t Strings::id_of(std::string text) {
  auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  texts_.push_back(std::move(text));
  return ids_[texts_.back()] = static_cast<uint32_t>(texts_.size() - 1);
}

std::optional<uint32_t> Strings::find(std::string_view text) const {
  auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

Unit::Unit(Dwarf_Die unit, Dwarf_Die tree, Strings& files)
    : unit_(unit), tree_(tree), files_(files), directory_(text_of(&unit_, DW_AT_comp_dir)) {}

uint32_t Unit::file_id(Dwarf_Files* files, size_t index) {
  if (index >= file_ids_.size()) file_ids_.resize(index + 1, none);
  uint32_t& id = file_ids_[index];
  const char* path = id == none ? dwarf_filesrc(files, index, nullptr, nullptr) : nullptr;
  if (path && *path) id = files_.id_of((std::filesystem::path(directory_) / path).lexically_normal());
  return id;
}

const std::vector<Unit::LineRow>& Unit::rows() {
  if (!rows_read_) read_rows();
  rows_read_ = true;
  return rows_;
}

void Unit::read_rows() {
  Dwarf_Lines* lines = nullptr;
  size_t count = 0;
  if (dwarf_getsrclines(&unit_, &lines, &count) != 0) return;
  rows_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Dwarf_Line* line = dwarf_onesrcline(lines, i);
    Dwarf_Addr address = 0;
    bool ends = false, is_statement = false;
    int number = 0;
    dwarf_lineaddr(line, &address);
    dwarf_lineendsequence(line, &ends);
    LineRow row{.begin = {address}};
    if (!ends) {
      Dwarf_Files* files = nullptr;
      size_t index = 0;
      dwarf_lineno(line, &number);
      dwarf_linebeginstatement(line, &is_statement);
      if (dwarf_line_file(line, &files, &index) == 0) row.file = file_id(files, index);
      row.line = static_cast<uint32_t>(number) & INT32_MAX;
      row.is_statement = is_statement;
    }
    // Of several rows at an address only the last has code.
    if (!rows_.empty() && rows_.back().begin == row.begin) rows_.back() = row;
    else rows_.push_back(row);
  }
}

const std::vector<Unit::Stretch>& Unit::stretches() {
  if (!scopes_read_) read_scopes();
  scopes_read_ = true;
  return stretches_;
}

void Unit::read_scopes() {
  std::vector<Interval> intervals;
  each_code_die(tree_, [&](const CodeDie& code) {
    auto id = static_cast<uint32_t>(scopes_.size());
    scopes_.push_back({code.is_inlined ? code.parent : none, code.die, code.is_inlined});
    Dwarf_Addr base, begin, end;
    ptrdiff_t offset = 0;
    for (size_t n = 0; n < most_ranges; ++n) {
      offset = dwarf_ranges(&scopes_.back().die, offset, &base, &begin, &end);
      if (offset <= 0) break;
      // A function that the linker has dropped is at 0, 1 or the highest addresses.
      if (begin > 1 && begin < end) intervals.push_back({{{begin}, {end}}, id});
    }
  });
  stretches_ = flatten(std::move(intervals));
}

const std::string& Unit::name_of(uint32_t scope) {
  Dwarf_Die die = scopes_[scope].die, origin;
  Dwarf_Attribute attribute;
  const void* key = die.addr;
  if (dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin, &attribute), &origin)) key = origin.addr;
  auto [entry, fresh] = names_.try_emplace(key);
  if (fresh) entry->second = full_name(&die);
  return entry->second;
}

Place Unit::place(const char* path, uint32_t line) {
  if (!path || !*path) return {};
  return {files_.text(files_.id_of((std::filesystem::path(directory_) / path).lexically_normal())), line};
}

Place Unit::call_place(uint32_t scope) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Die& die = scopes_[scope].die;
  if (dwarf_formudata(dwarf_attr(&die, DW_AT_call_file, &attribute), &file) != 0) return {};
  dwarf_formudata(dwarf_attr(&die, DW_AT_call_line, &attribute), &line);
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_getsrcfiles(&unit_, &files, &count) != 0 || file >= count) return {};
  uint32_t id = file_id(files, file);
  return id == none ? Place{} : Place{files_.text(id), static_cast<uint32_t>(line)};
}

Place Unit::declaration(uint32_t scope) {
  Dwarf_Die& die = scopes_[scope].die;
  int line = 0;
  const char* path = dwarf_decl_file(&die);
  if (dwarf_decl_line(&die, &line) != 0) return {};
  return place(path, static_cast<uint32_t>(line));
}

}  // namespace weir::symbols
