// Jump tables: where an indirect jump of a switch or a computed goto can go, guessed from the code before it.
#pragma once

#include <span>
#include <vector>

#include "base/address.h"
#include "x86/function.h"
#include "x86/insn.h"

namespace weir::x86 {

struct JumpTable {
  AppPc begin;
  AppPc origin;           // what a 4-byte entry is relative to
  bool relative = false;  // 4-byte entries, added to origin; else 8-byte addresses
  size_t max_entries = 0;

  friend bool operator==(const JumpTable&, const JumpTable&) = default;
};

// The code of the function as far as it has been decoded: runs of consecutive instructions, in any order, and the bytes
// they were decoded from.
struct DecodedCode {
  std::span<const Insn> insns;
  AppPc begin;
  std::span<const std::byte> bytes;  // at least those of all insns, from `begin` on
};

// The address that an instruction `lea reg, [rip + disp]` puts into reg.
struct LeaSite {
  uint8_t reg;
  AppPc address;
};
std::vector<LeaSite> find_leas(const DecodedCode& code);

// The tables that the indirect jump insns[jump] may go through; mostly one or none. `leas` helps where the base of the
// table is loaded far away.
std::vector<JumpTable> find_jump_tables(const DecodedCode& code, size_t jump, std::span<const LeaSite> leas);

// The targets inside `bounds` that the table names, not beyond `limit`. Where no comparison said how many entries it has,
// it ends at the first that is outside.
std::vector<AppPc> read_jump_table(const JumpTable& table, AppRange bounds, AppPc limit, const ReadMemory& data);

}  // namespace weir::x86
