// The unwind table of an image: from an address to the rule that finds the caller.
//
// Weir compiles it from call frame information (unwind/compile.h) and maps it read-only into the target, where the walker
// (rt/walk.h) searches it. One blob an image, without pointers:
//
//     TableHead
//     uint32_t first[pages + 1]    the first row of each KiB of text; the last is the number of rows
//     Rule     rules[rule_count]   each once; rules[0] is "nothing known"
//     Row      rows[row_count]     where in its KiB a rule begins, and which; every KiB begins with a row for its first byte
//
// So a search is one look at `first` and a binary search in some forty rows, which lie in two or three cache lines. Nothing
// that a broken blob says makes it read outside: is_table() checks the sizes, a search every index that it follows.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::rt {

// How to get the caller's frame. CFA: the caller's rsp behind its call; the return address is at CFA - 8.
struct Rule {
  enum Kind : uint8_t {
    None,         // no call frame information here
    Unsupported,  // there is, but none of these kinds
    End,          // there is no caller
    Rsp,          // CFA = rsp + offset
    Rbp,          // CFA = rbp + offset
    Plt,          // CFA = rsp + 8 + (rip & 15 ≥ offset ? 8 : 0)
    AtRsp,        // CFA = *(rsp + offset) + add
    AtRbp,        // CFA = *(rbp + offset) + add
    Rbx,          // CFA = rbx + offset: the dynamic linker, while it looks a function up
    Reg,          // CFA = reg + offset       these two where the registers are known: in innermost frames.
    AtIndex,      // CFA = *(rsp + offset + reg * scale) + add                                   cryptography
    Signal,       // all registers are in the kernel's ucontext, at rsp
    KindCount
  };
  enum Rbp_ : uint8_t {
    Same,      // rbp was not touched
    SavedCfa,  // rbp = *(CFA + rbp_offset)
    SavedRbp,  // rbp = *(rbp + rbp_offset)
    Lost,      // not known
    RbpCount
  };
  int32_t offset = 0;
  int32_t rbp_offset = 0;
  int16_t add = 0;
  int16_t rbx_offset = 0;  // rbx = *(CFA + rbx_offset); 0: it was not touched
  Kind kind = None;
  uint8_t rbp : 7 = Same;
  uint8_t is_interrupted : 1 = 0;  // the caller goes on at its address; others are behind a call
  uint8_t reg = 0, scale = 0;      // DWARF's number

  static constexpr int16_t rbx_lost = INT16_MIN;
  friend bool operator==(const Rule&, const Rule&) = default;
};
static_assert(sizeof(Rule) == 16);

struct Row {
  uint16_t offset;  // in its KiB
  uint16_t rule;
};

constexpr uint32_t table_magic = 0x57524957, table_version = 2;
constexpr unsigned page_shift = 10;
constexpr uint64_t max_text = uint64_t{2} << 30;
constexpr uint32_t max_rules = 65536;

struct TableHead {
  uint32_t magic, version;
  uint64_t text_begin, text_size;  // of the executable segments, as the file has them (p_vaddr)
  uint32_t pages, rule_count, row_count;
  uint32_t unsupported;  // bytes of text with such rules
  uint64_t checksum;     // of all behind the head; looked at by Weir when it reads the table from disk
};
static_assert(sizeof(TableHead) == 48);

inline const uint32_t* first_rows(const TableHead& t) { return reinterpret_cast<const uint32_t*>(&t + 1); }
inline const Rule* rules_of(const TableHead& t) { return reinterpret_cast<const Rule*>(first_rows(t) + t.pages + 1); }
inline const Row* rows_of(const TableHead& t) { return reinterpret_cast<const Row*>(rules_of(t) + t.rule_count); }

inline uint64_t table_bytes(const TableHead& t) {
  return sizeof t + (uint64_t{t.pages} + 1) * sizeof(uint32_t) + uint64_t{t.rule_count} * sizeof(Rule) +
         uint64_t{t.row_count} * sizeof(Row);
}

// Does the blob hold what its head says? After that find_rule() may be asked anything.
inline bool is_table(const void* bytes, uint64_t size) {
  if (size < sizeof(TableHead) || reinterpret_cast<uint64_t>(bytes) % alignof(TableHead)) return false;
  const TableHead& t = *static_cast<const TableHead*>(bytes);
  return t.magic == table_magic && t.version == table_version && t.text_size <= max_text &&
         t.pages == (t.text_size + (1 << page_shift) - 1) >> page_shift && t.rule_count > 0 && t.rule_count <= max_rules &&
         table_bytes(t) == size;
}

// A table, and where it applies: all that a search needs to begin.
struct TableView {
  uint64_t text, text_size;  // where the file's text_begin is mapped
  const uint32_t* first;
  const Rule* rules;
  const Row* rows;
  uint32_t row_count, rule_count;

  // The rule of an address; rules[0] where there is none.
  const Rule& find(uint64_t address) const {
    uint64_t at = address - text;
    if (at >= text_size) return rules[0];
    const uint32_t* page = first + (at >> page_shift);
    uint32_t low = page[0], end = page[1];
    if (low >= end || end > row_count) return rules[0];
    const Row* row = rows + low;
    uint32_t offset = at & ((1 << page_shift) - 1);
    expect(row, end - low);
    // The last row at or below the offset. (No branch depends on what is compared: it could not be predicted.)
    for (uint32_t count = end - low; count > 1;) {
      uint32_t half = count / 2;
      row = row[half].offset <= offset ? row + half : row;
      count -= half;
    }
    return rules[row->rule < rule_count ? row->rule : 0];
  }

 private:
  // All lines at the same time: a search would wait for one after the other.
  static void expect(const Row* row, uint32_t count) {
    constexpr uint32_t line = 64 / sizeof(Row);
    for (uint32_t i = 0; i < count; i += line) __builtin_prefetch(row + i);
  }
};

inline TableView view_of(const TableHead& t, uint64_t bias) {
  return {bias + t.text_begin, t.text_size, first_rows(t), rules_of(t), rows_of(t), t.row_count, t.rule_count};
}

// The rule of an address as the file has it.
inline const Rule& find_rule(const TableHead& t, uint64_t vaddr) { return view_of(t, 0).find(vaddr); }

}  // namespace weir::rt
