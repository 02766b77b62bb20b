// Writes instructions: the few dozen forms that glue and probes are made of, under x86's own names. No opcode stands anywhere else.
//
// Operands have 64 bits where the name does not say otherwise. A method writes one form: its length depends on the operand in memory
// (memory.h) and, where that is said, on the immediate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "instrument/memory.h"

namespace weir::instrument {

// Vector and mask registers, by number.
struct Xmm {
  uint8_t number;
};
struct Zmm {
  uint8_t number;
};
struct Mask {
  uint8_t number;
};

// An operand, a register or in memory, as an instruction of the program has it.
struct ProgramOperand {
  std::span<const uint8_t> prefixes;
  uint8_t rex;                           // 0: none
  std::span<const std::byte> and_modrm;  // ModRM (but for the register), SIB and displacement
};

class Emitter {
 public:
  using Gpr = x86::Gpr;
  // The low four bits of a jcc's opcode.
  enum Condition : uint8_t { Below = 2, AboveOrEqual = 3, Equal = 4, NotEqual = 5, BelowOrEqual = 6 };

  Emitter(std::span<std::byte> out, CachePc base)
      : begin_(reinterpret_cast<uint8_t*>(out.data())), p_(begin_), end_(begin_ + out.size()), base_(base) {}

  uint32_t offset() const { return static_cast<uint32_t>(p_ - begin_); }
  CachePc pc() const { return base_ + (p_ - begin_); }
  CachePc pc_at(uint32_t offset) const { return base_ + offset; }
  bool has_room(size_t n) const { return p_ + n <= end_; }

  // How a thread's memory is reached, if not with %gs: with another segment, by displacements that are yet to be completed. `places` gets
  // where they stand.
  void reach_thread(uint8_t segment, std::vector<uint32_t>& places) { segment_ = segment, places_ = &places; }

  // ---- What is no instruction of Weir's ----
  // Instructions of the program.
  void copy(std::span<const std::byte> b) {
    memcpy(p_, b.data(), b.size());
    p_ += b.size();
  }
  // One with another operand: what stands in front of ModRM, and behind the displacement.
  void copy_with(std::span<const uint8_t> before, uint8_t reg, const Memory& m, std::span<const std::byte> rest);
  // A number that instructions read.
  void quad(uint64_t v) { put(v); }
  void align(uint32_t n) {
    while (pc().value % n) nop();
  }

  // ---- Moves ----
  void mov(Gpr to, Gpr from) { encode(Qword, 0x89, from, to); }
  void mov(Gpr to, const Memory& from) { encode(Qword, 0x8b, to, from); }
  void mov(const Memory& to, Gpr from) { encode(Qword, 0x89, from, to); }
  void mov(const Memory& to, int32_t imm) { encode(Qword, 0xc7, 0, to, 4), put(imm); }  // its sign is extended
  void mov32(Gpr to, const Memory& from) { encode(Dword, 0x8b, to, from); }
  void mov32(const Memory& to, Gpr from) { encode(Dword, 0x89, from, to); }
  void mov32(const Memory& to, uint32_t imm) { encode(Dword, 0xc7, 0, to, 4), put(imm); }
  void mov32(Gpr to, uint32_t imm) { opcode_with(Dword, 0xb8, to), put(imm); }
  // (With a REX whether it takes one or not.)
  void mov32(Gpr to, Gpr from) { bytes(0x40 | (from >> 3) << 2 | to >> 3, 0x89, 0xc0 | (from & 7) << 3 | (to & 7)); }
  void movabs(Gpr to, uint64_t imm) { opcode_with(Qword, 0xb8, to), put(imm); }
  void lea(Gpr to, const Memory& m) { encode(Qword, 0x8d, to, m); }
  void mov(Gpr to, const ProgramOperand& from) { encode(Qword, 0x8b, to, from); }
  void mov32(Gpr to, const ProgramOperand& from) { encode(Dword, 0x8b, to, from); }
  void lea(Gpr to, const ProgramOperand& m) { encode(Qword, 0x8d, to, m); }

  // ---- Arithmetic: all of it writes flags ----
  void add(const Memory& to, Gpr from) { encode(Qword, 0x01, from, to); }
  void add(Gpr to, const Memory& from) { encode(Qword, 0x03, to, from); }
  void sub(const Memory& to, Gpr from) { encode(Qword, 0x29, from, to); }
  void sub(Gpr to, const Memory& from) { encode(Qword, 0x2b, to, from); }
  void xor_(Gpr to, const Memory& from) { encode(Qword, 0x33, to, from); }
  void cmp(const Memory& a, Gpr b) { encode(Qword, 0x39, b, a); }
  void cmp(Gpr a, const Memory& b) { encode(Qword, 0x3b, a, b); }
  void cmp32(const Memory& a, Gpr b) { encode(Dword, 0x39, b, a); }
  void cmp32(Gpr a, const Memory& b) { encode(Dword, 0x3b, a, b); }
  void cmp32(const Memory& a, uint32_t imm) { encode(Dword, 0x81, 7, a, 4), put(imm); }
  void cmp32_short(const Memory& a, int8_t imm) { encode(Dword, 0x83, 7, a, 1), put(imm); }  // an immediate of 8 bits
  // The immediate has 8 bits where that is enough.
  void add(const Memory& to, int32_t imm) {
    if (imm == static_cast<int8_t>(imm)) encode(Qword, 0x83, 0, to, 1), put(static_cast<int8_t>(imm));
    else encode(Qword, 0x81, 0, to, 4), put(imm);
  }
  void inc(const Memory& m) { encode(Qword, 0xff, 0, m); }
  void dec(const Memory& m) { encode(Qword, 0xff, 1, m); }
  void and_(Gpr r, int8_t imm) { encode(Qword, 0x83, 4, r), put(imm); }
  void shl(Gpr r, uint8_t by) { encode(Qword, 0xc1, 4, r), put(by); }
  void shr32(Gpr r, uint8_t by) { encode(Dword, 0xc1, 5, r), put(by); }
  void imul32(Gpr to, Gpr a, uint32_t imm) { encode(Dword, 0x69, to, a), put(imm); }
  void add_eax(uint32_t imm) { bytes(0x05), put(imm); }
  void add_al(int8_t imm) { bytes(0x04, imm); }
  // Flags to ah and back; the overflow flag to al.
  void lahf() { bytes(0x9f); }
  void sahf() { bytes(0x9e); }
  void seto_al() { bytes(0x0f, 0x90, 0xc0); }

  // ---- Operations of probes (operate.cc) ----
  // In as few bytes as the number takes.
  void set(Gpr to, uint64_t imm) {
    if (imm == static_cast<uint32_t>(imm)) return mov32(to, static_cast<uint32_t>(imm));
    if (auto value = static_cast<int32_t>(imm); static_cast<int64_t>(imm) == value) {
      encode(Qword, 0xc7, 0, to), put(value);
    } else {
      movabs(to, imm);
    }
  }
  void lea32(Gpr to, const Memory& m) { encode(Dword, 0x8d, to, m); }
  void xchg(Gpr a, Gpr b) { encode(Qword, 0x87, a, b); }
  void movzx_byte(Gpr to, Gpr from) { encode_0f(Dword, 0xb6, to, from, {.is_byte = true}); }
  void movsx_word(Gpr to, Gpr from) { encode_0f(Qword, 0xbf, to, from); }
  void movsxd(Gpr to, Gpr from) { encode(Qword, 0x63, to, from); }
  void movsxd(Gpr to, const Memory& from) { encode(Qword, 0x63, to, from); }
  // 1, 2, 4 or 8 bytes, with zeros above them; and back.
  void load(Gpr to, const Memory& from, unsigned size) {
    if (size > 2) return encode(size == 8 ? Qword : Dword, 0x8b, to, from);
    encode_0f(Dword, size == 1 ? 0xb6 : 0xb7, to, from);
  }
  void store(const Memory& to, Gpr from, unsigned size) {
    if (size == 1) return encode(from >= x86::RSP ? AnyRex : Dword, 0x88, from, to);
    Memory m = to;
    if (size == 2) bytes(0x66), m.displacement -= m.is_relative;  // (it counts from behind this prefix)
    encode(size == 8 ? Qword : Dword, 0x89, from, m);
  }
  enum Arithmetic : uint8_t { Add = 0, Or = 1, And = 4, Subtract = 5, Xor = 6, Compare = 7 };
  void arithmetic(Arithmetic op, Gpr to, Gpr from) { encode(Qword, op << 3 | 1, from, to); }
  void arithmetic(Arithmetic op, Gpr to, int32_t imm) {
    if (imm == static_cast<int8_t>(imm)) encode(Qword, 0x83, op, to), put(static_cast<int8_t>(imm));
    else encode(Qword, 0x81, op, to), put(imm);
  }
  void and32(Gpr r, uint32_t imm) { encode(Dword, 0x81, 4, r), put(imm); }
  void test(Gpr a, Gpr b) { encode(Qword, 0x85, b, a); }
  void bt(Gpr r, uint8_t bit) { encode_0f(Qword, 0xba, 4, r), put(bit); }
  enum Shift : uint8_t { Left = 4, Right = 5, RightSigned = 7 };
  void shift(Shift op, Gpr r, uint8_t by) { encode(Qword, 0xc1, op, r), put(by); }
  void shift_by_cl(Shift op, Gpr r) { encode(Qword, 0xd3, op, r); }
  void imul(Gpr to, Gpr by) { encode_0f(Qword, 0xaf, to, by); }
  void imul(Gpr to, Gpr a, int32_t imm) { encode(Qword, 0x69, to, a), put(imm); }
  void popcnt(Gpr to, Gpr from) { encode_0f(Qword, 0xb8, to, from, {.prefix = 0xf3}); }
  void rdfsbase(Gpr to) { encode_0f(Qword, 0xae, 0, to, {.prefix = 0xf3}); }
  void lodsb() { bytes(0xac); }
  void kmovw(Gpr to, Mask from) { bytes(0xc5, inverted(to, 3, 7) | 0x78, 0x93, 0xc0 | (to & 7) << 3 | from.number); }
  // The top bits of bytes; of elements of 4 or 8 bytes (vmovmskps, vmovmskpd); of the bytes of an MMX register.
  void pmovmskb(Gpr to, Xmm from) { encode_0f(Dword, 0xd7, to, static_cast<Gpr>(from.number), {.prefix = 0x66}); }
  void vmovmsk(Gpr to, Xmm from, bool is_wide, bool is_256) {
    bytes(0xc4, inverted(to, 3, 7) | 0x40 | inverted(from.number, 3, 5) | F0f, 0x78 | is_256 << 2 | is_wide, 0x50,
          0xc0 | (to & 7) << 3 | (from.number & 7));
  }
  void pmovmskb_mmx(Gpr to, uint8_t from) { encode_0f(Dword, 0xd7, to, static_cast<Gpr>(from)); }
  void vmovdqu_ymm(const Memory& to, Xmm from) {
    uint8_t* begin = p_;
    if (to.is_thread) bytes(gs);
    bytes(0xc4, inverted(from.number, 3, 7) | inverted(to.rex, 1, 6) | inverted(to.rex, 0, 5) | F0f, 0x7e, 0x7f);
    p_ = put_operand(begin, p_, from.number, to, 0);
  }

  // ---- Transfers ----
  // Those without a target return where their displacement is: it leads to where comes_here() or comes_here_short() is called with that.
  uint32_t jmp() { return bytes(0xe9), ahead(); }
  uint32_t jcc(uint8_t condition) { return bytes(0x0f, 0x80 | condition), ahead(); }
  uint32_t call() { return bytes(0xe8), ahead(); }
  uint32_t lea_ahead(Gpr to) { return encode(Qword, 0x8d, to, relative(0)), offset() - 4; }
  uint32_t jmp_short() { return bytes(0xeb, 0), offset() - 1; }
  uint32_t jcc_short(uint8_t condition) { return bytes(0x70 | condition, 0), offset() - 1; }
  uint32_t jrcxz() { return bytes(0xe3, 0), offset() - 1; }
  void comes_here(uint32_t displacement) { leads_to(displacement, offset()); }
  void comes_here_short(uint32_t displacement) { leads_to_short(displacement, offset()); }
  // To an offset; to a place that is known.
  void jmp_to(uint32_t target) { leads_to(jmp(), target); }
  void jmp_short_to(uint32_t target) { leads_to_short(jmp_short(), target); }
  void jmp(CachePc target) { bytes(0xe9), put(static_cast<int32_t>(target - (pc() + 4))); }
  static bool reaches(CachePc from, CachePc to) {
    int64_t d = to - from;
    return d > INT32_MIN + 64 && d < INT32_MAX - 64;
  }
  void jmp(const Memory& m) { encode(Dword, 0xff, 4, m); }
  void jmp(Gpr r) { encode(Dword, 0xff, 4, r); }
  void ret() { bytes(0xc3); }
  void ret(uint16_t pops) { bytes(0xc2), put(pops); }
  void syscall() { bytes(0x0f, 0x05); }
  void nop() { bytes(0x90); }
  // A short jump over what `skipped` emits.
  template <class F>
  void skip_if(Condition condition, F skipped) {
    uint32_t behind = jcc_short(condition);
    skipped();
    comes_here_short(behind);
  }
  // [rip + …] of the instruction that comes next.
  Memory place(CachePc target) const { return relative(static_cast<int32_t>(target - pc())); }

  // A displacement leads to an offset.
  void leads_to(uint32_t displacement, uint32_t target) {
    set_displacement(displacement, int64_t{target} - displacement - 4);
  }
  void leads_to_short(uint32_t displacement, uint32_t target) {
    int64_t distance = int64_t{target} - displacement - 1;
    CHECK(distance == static_cast<int8_t>(distance));
    begin_[displacement] = static_cast<uint8_t>(distance);
  }
  void set_displacement(uint32_t displacement, int64_t distance) {
    CHECK(distance == static_cast<int32_t>(distance));
    memcpy(begin_ + displacement, &distance, 4);
  }

  // ---- Vectors ----
  void vmovdqu64(const Memory& to, Xmm from) { evex({F0f, F3, 0x7f, true, 16}, from.number, 0, to); }
  void vmovdqu64(Xmm to, const Memory& from) { evex({F0f, F3, 0x6f, true, 16}, to.number, 0, from); }
  void vmovdqu64(const Memory& to, Zmm from) { evex({F0f, F3, 0x7f, true, 64, L512}, from.number, 0, to); }
  void vmovdqu64(Zmm to, const Memory& from) { evex({F0f, F3, 0x6f, true, 64, L512}, to.number, 0, from); }
  // The bytes of the mask; the others become 0.
  void vmovdqu8(Zmm to, Mask mask, const Memory& from) {
    evex({F0f, F2, 0x6f, false, 64, L512 | zeroes, mask.number}, to.number, 0, from);
  }
  void vmovhps(Xmm to, Xmm low, const Memory& high) { evex({F0f, None, 0x16, false, 8}, to.number, low.number, high); }
  void vmovq(Gpr to, Xmm from) { evex({F0f, P66, 0x7e, true}, from.number, to); }
  void vpextrq(Gpr to, Xmm from, uint8_t index) { evex({F0f3a, P66, 0x16, true}, from.number, to), put(index); }
  // b is one number, for both halves.
  void vpaddq(Xmm to, Xmm a, const Memory& b) { evex({F0f, P66, 0xd4, true, 8, broadcasts}, to.number, a.number, b); }
  // Of the bytes of `mask` (k0: all), those that differ.
  void vpcmpneqb(Mask to, Mask mask, Zmm a, const Memory& b) {
    constexpr uint8_t not_equal = 4;
    evex({F0f3a, P66, 0x3f, false, 64, L512, mask.number}, to.number, a.number, b, 1), put(not_equal);
  }
  void kmovq(const Memory& to, Mask from) { vex(None, 0x91, from.number, to); }
  void kmovq(Mask to, const Memory& from) { vex(None, 0x90, to.number, from); }
  void kmovq(Mask to, Gpr from) { vex(F2, 0x92, to.number, from); }
  void kmovq(Gpr to, Mask from) { vex(F2, 0x93, to, static_cast<Gpr>(from.number)); }

 private:
  enum Size : uint8_t { Dword = 0, Qword = 8, AnyRex = 0x40 };  // REX.W; a REX that says nothing
  // The last byte of an EVEX prefix, but for its bit of a register.
  enum EvexBits : uint8_t { broadcasts = 0x10, L512 = 0x40, zeroes = 0x80 };
  enum Map : uint8_t { F0f = 1, F0f3a = 3 };
  enum Prefix : uint8_t { None, P66, F3, F2 };
  struct Evex {
    Map map;
    Prefix prefix;
    uint8_t opcode;
    bool is_wide;
    uint8_t unit = 1;  // what a displacement of 8 bits counts
    uint8_t bits = 0;
    uint8_t mask = 0;
  };

  template <class... B>
  void bytes(B... b) {
    ((*p_++ = static_cast<uint8_t>(b)), ...);
  }
  template <class T>
  void put(T v) {
    memcpy(p_, &v, sizeof v);
    p_ += sizeof v;
  }
  uint32_t ahead() { return put(uint32_t{0}), offset() - 4; }
  // The instruction begins at `begin`, and ends with an immediate of that size.
  uint8_t* put_operand(uint8_t* begin, uint8_t* p, uint8_t reg, const Memory& m, uint8_t immediate) {
    *p++ = static_cast<uint8_t>(m.modrm | (reg & 7) << 3);
    if (m.has_sib()) *p++ = m.sib;
    if (m.displacement_size == 1) *p++ = static_cast<uint8_t>(m.displacement);
    if (m.displacement_size != 4) return p;
    if (m.is_thread && places_) [[unlikely]]
      note_place(begin, p);
    int32_t displacement = m.displacement;
    if (m.is_relative) displacement -= static_cast<int32_t>(p + 4 + immediate - begin);
    memcpy(p, &displacement, 4);
    return p + 4;
  }
  void encode(Size size, uint8_t opcode, uint8_t reg, const Memory& m, uint8_t immediate = 0) {
    uint8_t* p = p_;
    if (m.is_thread) *p++ = gs;
    if (auto rex = static_cast<uint8_t>(size | (reg >> 3) << 2 | m.rex)) *p++ = 0x40 | rex;
    *p++ = opcode;
    p_ = put_operand(p_, p, reg, m, immediate);
  }
  void encode(Size size, uint8_t opcode, uint8_t reg, Gpr rm) {
    uint8_t* p = p_;
    if (auto rex = static_cast<uint8_t>(size | (reg >> 3) << 2 | rm >> 3)) *p++ = 0x40 | rex;
    *p++ = opcode;
    *p++ = static_cast<uint8_t>(0xc0 | (reg & 7) << 3 | (rm & 7));
    p_ = p;
  }
  struct Form0f {
    uint8_t prefix = 0;
    bool is_byte = false;  // the operand is a register of one byte
  };
  void encode_0f(Size size, uint8_t opcode, uint8_t reg, Gpr rm) { encode_0f(size, opcode, reg, rm, Form0f{}); }
  void encode_0f(Size size, uint8_t opcode, uint8_t reg, Gpr rm, Form0f form) {
    if (form.prefix) bytes(form.prefix);
    auto rex = static_cast<uint8_t>(size | (reg >> 3) << 2 | rm >> 3);
    if (rex || form.is_byte) bytes(0x40 | rex);
    bytes(0x0f, opcode, 0xc0 | (reg & 7) << 3 | (rm & 7));
  }
  void encode_0f(Size size, uint8_t opcode, uint8_t reg, const Memory& m) {
    uint8_t* p = p_;
    if (m.is_thread) *p++ = gs;
    if (auto rex = static_cast<uint8_t>(size | (reg >> 3) << 2 | m.rex)) *p++ = 0x40 | rex;
    *p++ = 0x0f, *p++ = opcode;
    p_ = put_operand(p_, p, reg, m, 0);
  }
  // The register is in the opcode.
  void opcode_with(Size size, uint8_t opcode, Gpr r) {
    if (auto rex = static_cast<uint8_t>(size | r >> 3)) bytes(0x40 | rex);
    bytes(opcode | (r & 7));
  }
  void encode(Size size, uint8_t opcode, uint8_t reg, const ProgramOperand& m);
  [[gnu::cold, gnu::noinline]] void note_place(uint8_t* begin, const uint8_t* displacement);
  // A bit of a register's number, at its place. Prefixes of vector instructions have them inverted.
  static constexpr uint8_t inverted(unsigned number, int bit, int place) {
    return static_cast<uint8_t>((~number >> bit & 1) << place);
  }
  // 62, R X B R' 0 m m m, W v v v v 1 p p, z L L b V' a a a
  void evex_prefix(const Evex& form, uint8_t reg, uint8_t second, uint8_t rex) {
    bytes(0x62, inverted(reg, 3, 7) | inverted(rex, 1, 6) | inverted(rex, 0, 5) | inverted(reg, 4, 4) | form.map,
          form.is_wide << 7 | (~second & 0xf) << 3 | 4 | form.prefix, form.bits | inverted(second, 4, 3) | form.mask,
          form.opcode);
  }
  void evex(const Evex& form, uint8_t reg, uint8_t second, Memory m, uint8_t immediate = 0) {
    uint8_t* begin = p_;
    if (m.is_thread) bytes(gs);
    evex_prefix(form, reg, second, m.rex);
    if (m.displacement_size == 1) {
      CHECK(m.displacement % form.unit == 0);
      m.displacement /= form.unit;
    }
    p_ = put_operand(begin, p_, reg, m, immediate);
  }
  void evex(const Evex& form, uint8_t reg, Gpr rm) {
    evex_prefix(form, reg, 0, rm >> 3);
    bytes(0xc0 | (reg & 7) << 3 | (rm & 7));
  }
  void vex(Prefix prefix, uint8_t opcode, uint8_t reg, const Memory& m);
  void vex(Prefix prefix, uint8_t opcode, uint8_t reg, Gpr rm);

  uint8_t* begin_;
  uint8_t* p_;
  uint8_t* end_;
  CachePc base_;
  static constexpr uint8_t gs = 0x65;
  uint8_t segment_ = gs;  // see reach_thread()
  std::vector<uint32_t>* places_ = nullptr;
};

}  // namespace weir::instrument
