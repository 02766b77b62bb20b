// The DWARF of an image: which unit an address is in, and what the units say.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "symbols/object.h"
#include "symbols/unit.h"

namespace weir::symbols {

class DebugInfo {
 public:
  // `file` is `image` or its separate debug file; both outlive this. What is wrong with it goes to `notes`.
  DebugInfo(const Object& image, const Object& file, const Options& options, std::vector<std::string>& notes);

  bool empty() const { return ranges_.empty(); }
  bool has_short_names() const { return context_.has_short_names; }  // as far as names were asked for
  // The unit that has `v`, and the addresses around it for which the answer is the same.
  struct Found {
    Unit* unit = nullptr;
    VRange range;
    uint32_t id = 0;
    uint64_t number_of(uint32_t scope) const { return uint64_t{id + 1} << 32 | scope; }
  };
  Found unit_at(Vaddr v);

  InlinedCall inlined(uint64_t number);  // see Found::number_of
  Place declaration(Vaddr v);
  Place known_declaration(Vaddr v);  // nothing, where its unit was not read yet
  std::vector<Row> rows(VRange range);
  std::vector<uint32_t> source_lines_of(std::string_view file);

 private:
  struct UnitRange {
    VRange range;
    uint32_t unit;
  };
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  using DwarfHandle = std::unique_ptr<Dwarf, EndDwarf>;

  void list_units(const Object& image, std::vector<std::string>& notes);
  void add_ranges(Dwarf_Die unit, uint32_t id);
  void add_rows(Unit& unit, VRange range, std::vector<Row>& found);
  void index_lines();

  std::unique_ptr<Object> alternate_;
  DwarfHandle alternate_dwarf_, dwarf_;  // closed before what they read
  UnitContext context_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<UnitRange> ranges_;  // sorted
  bool lines_indexed_ = false;
  std::unordered_map<uint32_t, std::vector<uint32_t>> lines_by_file_;
};

}  // namespace weir::symbols
