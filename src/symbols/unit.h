// What one compilation unit says about its code: rows of lines, and which function or inlined call an address is in.
#pragma once

#include <elfutils/libdw.h>

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/symbols.h"

namespace weir::symbols {

inline constexpr uint32_t none = UINT32_MAX;

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

class Unit {
 public:
  // `unit` is the entry of the unit, `tree` the one that its functions are below: the same, except for split DWARF.
  Unit(Dwarf_Die unit, Dwarf_Die tree, Strings& files);

  // From `begin` to the begin of the next row. A row without a file is a hole.
  struct LineRow {
    Vaddr begin;
    uint32_t file = none;
    uint32_t line : 31 = 0;
    uint32_t is_statement : 1 = 0;
  };
  const std::vector<LineRow>& rows();

  // A function or an inlined call.
  struct Scope {
    uint32_t parent = none;
    Dwarf_Die die;
    bool is_inlined = false;
  };
  // From `begin` to the begin of the next: the innermost scope there.
  struct Stretch {
    Vaddr begin;
    uint32_t scope = none;
  };
  const std::vector<Stretch>& stretches();
  const Scope& scope(uint32_t id) const { return scopes_[id]; }

  // What it is called: "ns::f(int)". Good as long as the unit.
  const std::string& name_of(uint32_t scope);
  Place call_place(uint32_t scope);   // where an inlined call is
  Place declaration(uint32_t scope);  // where its function is declared

 private:
  void read_rows();
  void read_scopes();
  uint32_t file_id(Dwarf_Files* files, size_t index);
  Place place(const char* path, uint32_t line);

  Dwarf_Die unit_, tree_;
  Strings& files_;
  std::string directory_;
  bool rows_read_ = false, scopes_read_ = false;
  std::vector<LineRow> rows_;
  std::vector<Scope> scopes_;
  std::vector<Stretch> stretches_;
  std::vector<uint32_t> file_ids_;                      // by the unit's own numbers; none: not looked at yet
  std::unordered_map<const void*, std::string> names_;  // by what the scope is an instance of
};

}  // namespace weir::symbols
