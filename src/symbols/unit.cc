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

// The entry that says what `die` is: what it is a copy of, and where that was declared.
Dwarf_Die declared(Dwarf_Die die) {
  for (unsigned name : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Attribute attribute;
    Dwarf_Die other;
    if (dwarf_formref_die(dwarf_attr(&die, name, &attribute), &other)) die = other;
  }
  return die;
}

bool is_c_plus_plus(Dwarf_Die die) {
  Dwarf_Die unit;
  if (!dwarf_diecu(&die, &unit, nullptr, nullptr)) return false;
  int language = dwarf_srclang(&unit);
  return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 || language == DW_LANG_C_plus_plus_11 ||
         language == DW_LANG_C_plus_plus_14;
}

// "inv::split" of a function that no linker has to know: link-time optimisation leaves it without a linkage name.
std::string name_in_spaces(Dwarf_Die* die) {
  std::string name = text_of(die, DW_AT_name);
  Dwarf_Die inner = declared(*die);
  Dwarf_Die* around = nullptr;
  int count = is_c_plus_plus(inner) ? dwarf_getscopes_die(&inner, &around) : 0;
  for (int i = 1; i < count; i++) {
    int tag = dwarf_tag(&around[i]);
    if (tag != DW_TAG_namespace && tag != DW_TAG_class_type && tag != DW_TAG_structure_type && tag != DW_TAG_union_type)
      break;
    const char* text = dwarf_diename(&around[i]);
    name = fmt::format("{}::{}", text ? text : "(anonymous namespace)", name);
  }
  free(around);
  return name;
}

// The linkage name says namespaces and parameters as well. C has none, and Go's names are whole as they are.
std::string full_name(Dwarf_Die* die) {
  std::string linkage_name = text_of(die, DW_AT_linkage_name);
  if (linkage_name.empty()) linkage_name = text_of(die, DW_AT_MIPS_linkage_name);
  return linkage_name.empty() ? name_in_spaces(die) : demangle(linkage_name);
}

// Of -g1 the compilers write functions, calls and lines: no types, no parameters, no namespaces. What has code of its own has a symbol that
// says them; what was only inlined, of C++, has nothing but its last name.
bool has_short_name(Dwarf_Die die) {
  if (!text_of(&die, DW_AT_linkage_name).empty() || !is_c_plus_plus(die = declared(die))) return false;
  Dwarf_Die unit;
  size_t length = 0;
  if (!dwarf_diecu(&die, &unit, nullptr, nullptr)) return false;
  for (Dwarf_Off offset = 0;; offset += length) {
    Dwarf_Abbrev* abbrev = dwarf_getabbrev(&unit, offset, &length);
    if (!abbrev || abbrev == DWARF_END_ABBREV || length == 0) return true;
    switch (dwarf_getabbrevtag(abbrev)) {
      case DW_TAG_base_type:
      case DW_TAG_formal_parameter:
      case DW_TAG_namespace:
      case DW_TAG_class_type:
      case DW_TAG_structure_type: return false;
    }
  }
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

uint64_t Unit::origin_of(uint32_t scope) {
  Dwarf_Die die = scopes_[scope].die, origin;
  Dwarf_Attribute attribute;
  const void* key = die.addr;
  if (dwarf_formref_die(dwarf_attr(&die, DW_AT_abstract_origin, &attribute), &origin)) key = origin.addr;
  return reinterpret_cast<uint64_t>(key);
}

const std::string& Unit::name_of(uint32_t scope) {
  if (scopes_[scope].name) return *scopes_[scope].name;
  auto [entry, fresh] = names_.try_emplace(origin_of(scope));
  if (fresh) {
    entry->second = full_name(&scopes_[scope].die);
    context_.has_short_names |= scopes_[scope].is_inlined && has_short_name(scopes_[scope].die);
  }
  return *(scopes_[scope].name = &entry->second);
}

// GCC says where it begins (DW_AT_entry_pc); else it does so at its lowest address, or its first range.
Vaddr Unit::entry(uint32_t scope) {
  Dwarf_Addr base, begin = 0, end;
  if (dwarf_entrypc(&scopes_[scope].die, &begin) == 0) return {begin};
  return {dwarf_ranges(&scopes_[scope].die, 0, &base, &begin, &end) > 0 ? begin : 0};
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
