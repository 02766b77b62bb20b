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

const LineTable& Unit::lines() {
  if (lines_read_) return lines_;
  lines_read_ = true;
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  directory_ = text_of(&unit_, DW_AT_comp_dir);
  if (dwarf_formudata(dwarf_attr(&unit_, DW_AT_stmt_list, &attribute), &offset) == 0)
    lines_ = read_line_table(context_.sections, offset, context_.is_code);
  file_ids_.resize(lines_.files.size());
  return lines_;
}

uint32_t Unit::file_id(uint64_t file) {
  if (file >= lines().files.size()) return none;
  std::optional<uint32_t>& id = file_ids_[file];
  if (!id) {
    std::string path = lines_.path_of(file, directory_);
    id = path.empty() ? none : context_.files.id_of(std::move(path));
  }
  return *id;
}

Place Unit::place(uint64_t file, uint64_t line) {
  uint32_t id = file_id(file);
  return id == none ? Place{} : Place{context_.files.text(id), static_cast<uint32_t>(line)};
}

Place Unit::place_of(const LineRow& row) { return place(row.file, row.line); }

const std::vector<Unit::Stretch>& Unit::stretches() {
  if (!scopes_read_) read_scopes();
  scopes_read_ = true;
  return stretches_;
}

void Unit::read_scopes() {
  std::vector<Interval> intervals;
  each_code_die(tree_, [&](const CodeDie& code) {
    auto id = static_cast<uint32_t>(scopes_.size());
    scopes_.push_back({.parent = code.is_inlined ? code.parent : none, .die = code.die, .is_inlined = code.is_inlined});
    if (code.range.size() > 0) {
      if (context_.is_code(code.range.begin)) intervals.push_back({code.range, id});
      return;
    }
    Dwarf_Addr base, begin, end;
    ptrdiff_t offset = 0;
    for (size_t n = 0; n < most_ranges; ++n) {
      offset = dwarf_ranges(&scopes_.back().die, offset, &base, &begin, &end);
      if (offset <= 0) break;
      if (begin < end && context_.is_code({begin})) intervals.push_back({{{begin}, {end}}, id});
    }
  });
  stretches_ = flatten(std::move(intervals));
}

const std::string& Unit::name_of(uint32_t scope) {
  if (scopes_[scope].name) return *scopes_[scope].name;
  Dwarf_Die die = scopes_[scope].die, origin;
  Dwarf_Attribute attribute;
  const void* key = die.addr;
  if (dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin, &attribute), &origin)) key = origin.addr;
  auto [entry, fresh] = names_.try_emplace(key);
  if (fresh) entry->second = full_name(&die);
  return *(scopes_[scope].name = &entry->second);
}

Place Unit::call_place(uint32_t scope) {
  std::optional<Place>& call = scopes_[scope].call;
  if (call) return *call;
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Die& die = scopes_[scope].die;
  dwarf_formudata(dwarf_attr(&die, DW_AT_call_line, &attribute), &line);
  bool known = dwarf_formudata(dwarf_attr(&die, DW_AT_call_file, &attribute), &file) == 0;
  call = known ? place(file, line) : Place{};
  return *call;
}

Place Unit::declaration(uint32_t scope) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Die& die = scopes_[scope].die;
  if (dwarf_formudata(dwarf_attr_integrate(&die, DW_AT_decl_line, &attribute), &line) != 0) return {};
  if (dwarf_formudata(dwarf_attr_integrate(&die, DW_AT_decl_file, &attribute), &file) != 0) return {};
  if (attribute.cu == unit_.cu || attribute.cu == tree_.cu) return place(file, line);
  // Declared in another unit (link-time optimisation, dwz), so the number is one of that unit's.
  const char* path = dwarf_decl_file(&die);
  if (!path) return {};
  uint32_t id = context_.files.id_of((std::filesystem::path(directory_) / path).lexically_normal());
  return {context_.files.text(id), static_cast<uint32_t>(line)};
}

}  // namespace weir::symbols
