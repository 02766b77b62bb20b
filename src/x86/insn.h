// One instruction, as far as an engine needs to know it: how long it is, where it can go, what it reads and writes.
//
// Zydis knows every encoding, but takes 100 ns for one. What it says depends only on the *shape* of an instruction: its
// prefixes, opcode, ModRM and SIB, never on the displacement or immediate that follow. So each shape is decoded once, with
// Zydis, and remembered; the hot path finds the end of the shape with a few table look-ups, and then looks it up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"

namespace weir::x86 {

enum class Kind : uint8_t {
  Plain,         // falls through, always
  Jump,          // direct, unconditional
  Branch,        // direct, conditional: jcc, and jrcxz/jecxz/loop* (see Shape::short_only)
  Call,          // direct
  JumpIndirect,  // through a register or memory
  CallIndirect,
  Return,     // ret, ret imm16
  Syscall,    // syscall
  Trap,       // int3, int n, int1, ud2, hlt …: control goes to the kernel and may come back behind it
  FarReturn,  // iretq and lretq, with operands of 64 bits
  Far,        // other far calls, jumps and returns, sysenter …: reported, never translated
};

// Sets of registers. Bit n of `gpr` is register n in encoding order (rax rcx rdx rbx rsp rbp rsi rdi r8 … r15), bit n of
// `vec` is xmm/ymm/zmm n, bit n of `mask` is k n, `flags` is made of the Flag bits.
enum Flag : uint8_t { CF = 1, PF = 2, AF = 4, ZF = 8, SF = 16, OF = 32, DF = 64, AllFlags = 127 };
struct RegSet {
  uint16_t gpr = 0;
  uint8_t flags = 0;
  uint8_t mask = 0;
  uint32_t vec = 0;

  friend constexpr bool operator==(RegSet, RegSet) = default;
  constexpr RegSet operator|(RegSet o) const {
    return {uint16_t(gpr | o.gpr), uint8_t(flags | o.flags), uint8_t(mask | o.mask), vec | o.vec};
  }
  constexpr RegSet operator&(RegSet o) const {
    return {uint16_t(gpr & o.gpr), uint8_t(flags & o.flags), uint8_t(mask & o.mask), vec & o.vec};
  }
  constexpr RegSet without(RegSet o) const {
    return {uint16_t(gpr & ~o.gpr), uint8_t(flags & ~o.flags), uint8_t(mask & ~o.mask), vec & ~o.vec};
  }
  static constexpr RegSet all() { return {0xffff, AllFlags, 0xff, 0xffffffffu}; }
};

enum Gpr : uint8_t { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

// What every instruction of the same shape has in common.
struct Shape {
  uint8_t length = 0;  // of the whole instruction, with displacement and immediate
  Kind kind = Kind::Plain;
  uint8_t disp_offset = 0;  // where the displacement is, if disp_size > 0
  uint8_t disp_size = 0;    // 0, 1, 4 (8 for moffs)
  uint8_t imm_offset = 0;   // where the (first) immediate or branch offset is, if imm_size > 0
  uint8_t imm_size = 0;
  uint8_t modrm_offset = 0;   // 0: no ModRM
  uint8_t condition = 0;      // of a jcc: the low four bits of its opcode
  bool rip_relative = false;  // the memory operand is [rip + disp32]
  bool eip_relative = false;  // with an address-size prefix: [eip + disp32], also rip_relative
  bool short_only = false;    // jrcxz, jecxz, loop, loope, loopne: exist with an 8-bit offset only
  bool uses_fs = false;       // a memory operand with an FS / GS segment, or rd/wrfsbase …
  bool uses_gs = false;
  bool reads_memory = false;
  bool writes_memory = false;
  bool rep = false;     // a string instruction with a rep/repne prefix
  bool known = true;    // false: Zydis does not know it (see decode())
  bool xstate = false;  // xsave*/xrstor*/fxsave/fxrstor/vzeroall…: touches many vector registers at once
  // Its memory operands: their number, and above that, where they are kept (see operands.h).
  uint32_t operands = 0;
  RegSet reads;   // every register or flag that may be read
  RegSet writes;  // every register or flag that may be written, wholly or in part
  RegSet kills;   // those that are surely overwritten wholly, so that the old value is dead

  static constexpr unsigned operand_count_bits = 3;
  constexpr unsigned operand_count() const { return operands & ((1 << operand_count_bits) - 1); }
  // popf: it may make the program single-step itself.
  constexpr bool sets_flags() const { return writes.flags == AllFlags && known; }
  // It uses %gs, or the last vector register, which an engine may want for itself; or it is popf.
  constexpr bool is_special() const { return uses_gs || (reads.vec | writes.vec) >> 31 || sets_flags(); }

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Insn {
  AppPc pc;
  AppPc target;  // of direct jumps, branches and calls; of [rip+disp32]: the address
  const Shape* shape = nullptr;

  AppPc next() const { return pc + shape->length; }
  Kind kind() const { return shape->kind; }
};

// The instruction at `pc`, whose bytes are the first of `bytes` (up to 15 are looked at). Never fails: bytes that Zydis
// does not know, or too few bytes, give a shape with `known == false`, the length that the encoding rules give (0 where
// there are too few bytes), and worst-case register sets.
// Not thread-safe: one decoder for the process, used by one thread.
Insn decode(std::span<const std::byte> bytes, AppPc pc);

}  // namespace weir::x86
