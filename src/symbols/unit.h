// What one compilation unit says about its code: rows of lines, and which function or inlined call an address is in.
#pragma once

#include <elfutils/libdw.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/line_table.h"

namespace weir::symbols {

// Strings that many units share, each kept once. Ids count from 0; views stay good.
class Strings {
 public:
  uint32_t id_of(std::string text);
  std::string_view text(uint32_t id) const { return texts_[id]; }
  std::optional<uint32_t> find(std::string_view text) const;

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> ids_;
};

// Of elements that each reach to the begin of the next, the one that has `v`.
template <class Element>
const Element* last_at(const std::vector<Element>& elements, Vaddr v) {
  auto after = std::upper_bound(elements.begin(), elements.end(), v,
                                [](Vaddr a, const Element& element) { return a < element.begin; });
  return after == elements.begin() ? nullptr : &*std::prev(after);
}

// What the units of an image have in common.
struct UnitContext {
  LineSections sections;
  std::function<bool(Vaddr)> is_code;
  Strings files;
  bool has_short_names = false;  // was the name of an inlined function asked for that lacks its namespaces?
};

class Unit {
 public:
  // `unit` is the entry of the unit, `tree` the one that its functions are below: the same, except for split DWARF.
  Unit(Dwarf_Die unit, Dwarf_Die tree, UnitContext& context) : unit_(unit), tree_(tree), context_(context) {}

  const std::vector<LineRow>& rows() { return lines().rows; }
  Place place_of(const LineRow& row);
  // The id of a file of the line table in UnitContext::files; none: the number means no file.
  uint32_t file_id(uint64_t file);

  // A function or an inlined call.
  struct Scope {
    uint32_t parent = none;
    Dwarf_Die die;
    bool is_inlined = false;
    // Looked up when first asked for.
    const std::string* name = nullptr;
    std::optional<Place> call = {};
  };
  // From `begin` to the begin of the next: the innermost scope there.
  struct Stretch {
    Vaddr begin;
    uint32_t scope = none;
  };
  const std::vector<Stretch>& stretches();
  bool is_read() const { return scopes_read_; }
  const Scope& scope(uint32_t id) const { return scopes_[id]; }

  // What it is called: "ns::f(int)". Good as long as the unit.
  const std::string& name_of(uint32_t scope);
  uint64_t origin_of(uint32_t scope);  // the function that it is an instance of: a number of its own
  Vaddr entry(uint32_t scope);         // of an inlined call; 0: not known
  Place call_place(uint32_t scope);    // where an inlined call is
  Place declaration(uint32_t scope);   // where its function is declared

 private:
  const LineTable& lines();
  void read_scopes();
  Place place(uint64_t file, uint64_t line);

  Dwarf_Die unit_, tree_;
  UnitContext& context_;
  bool lines_read_ = false, scopes_read_ = false;
  std::string directory_;
  LineTable lines_;
  std::vector<std::optional<uint32_t>> file_ids_;
  std::vector<Scope> scopes_;
  std::vector<Stretch> stretches_;
  std::unordered_map<uint64_t, std::string> names_;  // by what the scope is an instance of
};

}  // namespace weir::symbols
