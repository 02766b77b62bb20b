// Writes instructions: the few dozen forms that glue and probes are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/address.h"
#include "base/result.h"
#include "x86/insn.h"

namespace weir::instrument {

class Emitter {
 public:
  Emitter(std::span<std::byte> out, CachePc base)
      : begin_(reinterpret_cast<uint8_t*>(out.data())), p_(begin_), end_(begin_ + out.size()), base_(base) {}

  uint32_t offset() const { return static_cast<uint32_t>(p_ - begin_); }
  CachePc pc() const { return base_ + (p_ - begin_); }
  CachePc pc_at(uint32_t offset) const { return base_ + offset; }
  bool has_room(size_t n) const { return p_ + n <= end_; }

  template <class... B>
  void bytes(B... b) {
    ((*p_++ = static_cast<uint8_t>(b)), ...);
  }
  void copy(std::span<const std::byte> b) {
    memcpy(p_, b.data(), b.size());
    p_ += b.size();
  }
  void u32(uint32_t v) { put(v); }
  void u64(uint64_t v) { put(v); }
  void patch_u32(uint32_t offset, uint32_t v) { memcpy(begin_ + offset, &v, 4); }
  void patch_u8(uint32_t offset, uint8_t v) { begin_[offset] = v; }
  void align(uint32_t n) {
    while (pc().value % n) bytes(0x90);
  }

  // mov gs:[disp], r64 ; mov r64, gs:[disp]
  void store_gs(x86::Gpr r, uint32_t disp) { gs(0x89, r, disp); }
  void load_gs(x86::Gpr r, uint32_t disp) { gs(0x8b, r, disp); }
  // mov dword gs:[disp], imm32
  void store_gs_imm(uint32_t disp, uint32_t imm) {
    bytes(0x65, 0xc7, 0x04, 0x25);
    u32(disp);
    u32(imm);
  }
  // jmp gs:[disp]
  void jump_gs(uint32_t disp) {
    bytes(0x65, 0xff, 0x24, 0x25);
    u32(disp);
  }
  // add qword gs:[disp], imm (writes flags)
  void add_gs(uint32_t disp, int32_t imm) {
    if (imm == 1) {
      bytes(0x65, 0x48, 0xff, 0x04, 0x25);  // inc
      u32(disp);
    } else if (imm == static_cast<int8_t>(imm)) {
      bytes(0x65, 0x48, 0x83, 0x04, 0x25);
      u32(disp);
      bytes(imm);
    } else {
      bytes(0x65, 0x48, 0x81, 0x04, 0x25);
      u32(disp);
      u32(static_cast<uint32_t>(imm));
    }
  }
  // lea r64, [r64 + imm32] (no flags)
  void lea(x86::Gpr r, x86::Gpr base, int32_t imm) {
    bool is_short = imm == static_cast<int8_t>(imm);
    bytes(0x48 | (r >> 3) << 2 | (base >> 3), 0x8d, (is_short ? 0x40 : 0x80) | (r & 7) << 3 | (base & 7));
    if ((base & 7) == 4) bytes(0x24);
    is_short ? bytes(imm) : u32(static_cast<uint32_t>(imm));
  }
  // lea r64, [base + r64]; r is one of the first eight registers
  void lea_sum(x86::Gpr r, x86::Gpr base) { bytes(0x48 | base >> 3, 0x8d, 0x44 | r << 3, r << 3 | (base & 7), 0); }
  void mov_imm64(x86::Gpr r, uint64_t v) {
    bytes(0x48 | r >> 3, 0xb8 | (r & 7));
    u64(v);
  }
  void mov(x86::Gpr to, x86::Gpr from) {
    bytes(0x48 | (from >> 3) << 2 | to >> 3, 0x89, 0xc0 | (from & 7) << 3 | (to & 7));
  }
  // mov r64, [base + disp32] and back
  void load(x86::Gpr r, x86::Gpr base, int32_t disp) { memory(0x8b, r, base, disp); }
  void store(x86::Gpr r, x86::Gpr base, int32_t disp) { memory(0x89, r, base, disp); }

  // op r64, [base + disp]; the same with 32 bits; op r64, gs:[disp]. 01 add m, r; 03 add r, m; 29 sub m, r; 2b sub r, m; 33 xor r, m; 39 cmp m, r;
  // 3b cmp r, m; 89 mov m, r; 8b mov r, m
  void op(uint8_t opcode, x86::Gpr r, x86::Gpr base, int32_t disp) {
    bytes(0x48 | (r >> 3) << 2 | base >> 3);
    near(opcode, r, base, disp);
  }
  void op32(uint8_t opcode, x86::Gpr r, x86::Gpr base, int32_t disp) {
    if ((r | base) >> 3) bytes(0x40 | (r >> 3) << 2 | base >> 3);
    near(opcode, r, base, disp);
  }
  void op_gs(uint8_t opcode, x86::Gpr r, uint32_t disp) { gs(opcode, r, disp); }
  // mov dword [base + disp], imm32 ; cmp dword [base + disp], imm32
  void store_imm(x86::Gpr base, int32_t disp, uint32_t imm) { near_imm(0xc7, x86::RAX, base, disp, imm); }
  void compare_imm(x86::Gpr base, int32_t disp, uint32_t imm) { near_imm(0x81, x86::RDI, base, disp, imm); }
  // mov qword gs:[disp], imm32
  void store_gs_imm64(uint32_t disp, uint32_t imm) {
    bytes(0x65, 0x48, 0xc7, 0x04, 0x25);
    u32(disp);
    u32(imm);
  }
  // cmp dword gs:[disp], 0 ; cmp r32, gs:[disp] ; mov eax, gs:[disp]
  void compare_gs_0(uint32_t disp) {
    bytes(0x65, 0x83, 0x3c, 0x25);
    u32(disp);
    bytes(0);
  }
  void compare_gs32(x86::Gpr r, uint32_t disp) {
    bytes(0x65);
    if (r >> 3) bytes(0x44);
    bytes(0x3b, 0x04 | (r & 7) << 3, 0x25);
    u32(disp);
  }
  void load_eax_gs(uint32_t disp) {
    bytes(0x65, 0x8b, 0x04, 0x25);
    u32(disp);
  }
  // dec qword gs:[disp] ; dec qword gs:[r*8 + disp]
  void dec_gs(uint32_t disp) {
    bytes(0x65, 0x48, 0xff, 0x0c, 0x25);
    u32(disp);
  }
  void dec_gs(x86::Gpr index, uint32_t disp) {
    bytes(0x65, 0x48 | (index >> 3) << 1, 0xff, 0x0c, 0xc5 | (index & 7) << 3);
    u32(disp);
  }
  // op r, gs:[rax + disp], 64 bits or 32
  void op_gs_rax(uint8_t opcode, x86::Gpr r, uint32_t disp, bool is_wide = true) {
    bytes(0x65);
    if (uint8_t rex = (is_wide ? 8 : 0) | (r >> 3) << 2; rex) bytes(0x40 | rex);
    bytes(opcode, 0x80 | (r & 7) << 3);
    u32(disp);
  }
  // inc qword gs:[rax + disp] ; cmp dword gs:[rax + disp], imm32
  void inc_gs_rax(uint32_t disp) { op_gs_rax(0xff, x86::RAX, disp); }
  void compare_gs_rax_imm(uint32_t disp, uint32_t imm) {
    op_gs_rax(0x81, x86::RDI, disp, false);
    u32(imm);
  }
  // and r64, imm8
  void and_imm(x86::Gpr r, int imm) { bytes(0x48 | r >> 3, 0x83, 0xe0 | (r & 7), imm); }
  // lea r64, [a + b] (no flags)
  void lea_sum(x86::Gpr r, x86::Gpr a, x86::Gpr b) {
    bytes(0x48 | (r >> 3) << 2 | (b >> 3) << 1 | a >> 3, 0x8d, 0x44 | (r & 7) << 3, (b & 7) << 3 | (a & 7), 0);
  }

  // The clock's register (instrument/clock.h): vmovdqu64 [base + disp], xmm31, the displacement a multiple of 16 ; vmovhps xmm31, xmm31,
  // [base + disp], of 8 ; the same with gs:[disp] ; vmovq r64, xmm31 ; vpextrq r64, xmm31, 1
  void store_clock(x86::Gpr base, int disp) {
    vector(1, 0xfe, 0x08, 0x7f, 1, base);
    bytes(disp / 16);
  }
  void load_self_clock(x86::Gpr base, int disp) {
    vector(1, 0x04, 0x00, 0x16, 1, base);
    bytes(disp / 8);
  }
  void store_clock_gs(uint32_t disp) {
    bytes(0x65, 0x62, 0x61, 0xfe, 0x08, 0x7f, 0x3c, 0x25);
    u32(disp);
  }
  void load_self_clock_gs(uint32_t disp) {
    bytes(0x65, 0x62, 0x61, 0x04, 0x00, 0x16, 0x3c, 0x25);
    u32(disp);
  }
  void move_clock(x86::Gpr r) { vector(1, 0xfd, 0x08, 0x7e, 3, r); }
  void move_self_clock(x86::Gpr r) {
    vector(3, 0xfd, 0x08, 0x16, 3, r);
    bytes(1);
  }

  // A jump forward, with 32 bits, to where comes_here() is called with what it returns.
  enum Condition : uint8_t { AboveOrEqual = 3, Equal = 4, NotEqual = 5, BelowOrEqual = 6 };
  uint32_t jump_if(Condition condition) {
    bytes(0x0f, 0x80 | condition);
    u32(0);
    return offset() - 4;
  }
  void comes_here(uint32_t from) { patch_u32(from, offset() - from - 4); }
  // A short one over what `skipped` emits.
  template <class F>
  void skip_if(Condition condition, F skipped) {
    bytes(0x70 | condition, 0);
    uint32_t from = offset();
    skipped();
    CHECK(offset() - from < 128);
    patch_u8(from - 1, static_cast<uint8_t>(offset() - from));
  }
  void jump_to(uint32_t offset_of_target) {
    bytes(0xe9);
    u32(offset_of_target - (offset() + 4));
  }

  // jmp/call/jcc rel32 to a place that is known
  void jump(CachePc target) { relative(target, 0xe9); }
  void call(CachePc target) { relative(target, 0xe8); }
  static bool reaches(CachePc from, CachePc to) {
    int64_t d = to - from;
    return d > INT32_MIN + 64 && d < INT32_MAX - 64;
  }

 private:
  template <class T>
  void put(T v) {
    memcpy(p_, &v, sizeof v);
    p_ += sizeof v;
  }
  void gs(uint8_t opcode, x86::Gpr r, uint32_t disp) {
    bytes(0x65, 0x48 | (r >> 3) << 2, opcode, 0x04 | (r & 7) << 3, 0x25);
    u32(disp);
  }
  void memory(uint8_t opcode, x86::Gpr r, x86::Gpr base, int32_t disp) {
    bytes(0x48 | (r >> 3) << 2 | (base >> 3), opcode, 0x80 | (r & 7) << 3 | (base & 7));
    if ((base & 7) == 4) bytes(0x24);
    u32(static_cast<uint32_t>(disp));
  }
  void near(uint8_t opcode, x86::Gpr r, x86::Gpr base, int32_t disp) {
    bool is_short = disp == static_cast<int8_t>(disp);
    bytes(opcode, (is_short ? 0x40 : 0x80) | (r & 7) << 3 | (base & 7));
    if ((base & 7) == 4) bytes(0x24);
    is_short ? bytes(disp) : u32(static_cast<uint32_t>(disp));
  }
  void near_imm(uint8_t opcode, x86::Gpr rest_of_opcode, x86::Gpr base, int32_t disp, uint32_t imm) {
    if (base >> 3) bytes(0x41);
    near(opcode, rest_of_opcode, base, disp);
    u32(imm);
  }
  // An instruction with xmm31 and [base + disp8 * unit] or, with mod 3, a general register.
  void vector(uint8_t map, uint8_t p1, uint8_t p2, uint8_t opcode, uint8_t mod, x86::Gpr base) {
    bytes(0x62, (base >> 3 ? 0x40 : 0x60) | map, p1, p2, opcode, mod << 6 | 7 << 3 | (base & 7));
    if (mod != 3 && (base & 7) == 4) bytes(0x24);
  }
  void relative(CachePc target, uint8_t opcode) {
    bytes(opcode);
    u32(static_cast<uint32_t>(target - (pc() + 4)));
  }

  uint8_t* begin_;
  uint8_t* p_;
  uint8_t* end_;
  CachePc base_;
};

}  // namespace weir::instrument
