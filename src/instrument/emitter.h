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
