// Tables of shapes, and one of them: the shapes that most programs have are known when Weir is built (make_common_shapes.cc).
// Zydis, and what is made of its answer, take half a microsecond a shape.
//
// Open addressing, probed linearly, at most half full. At the end of a table are slots that no key has as its home and so many
// that probing ends there: it need not wrap around.
#pragma once

#include <cstddef>
#include <cstdint>

#include "x86/insn.h"

namespace weir::x86 {

// The bytes of a shape of at most 7 bytes, and their number; never 0.
constexpr uint64_t key_of(uint64_t bytes, unsigned shape_end) { return bytes << (64 - 8 * shape_end) | shape_end; }
constexpr unsigned max_key_bytes = 7;

constexpr unsigned common_bits = 15;
constexpr size_t overhang = 64;
constexpr size_t home_index(uint64_t key, unsigned shift) { return key * 0x9E3779B97F4A7C15ull >> shift; }

struct Slot;
extern const Shape common_shapes[];
extern const Slot common_slots[(1 << common_bits) + overhang];

// What a remembered shape needs on the hot path, in 16 bytes: how far behind common_shapes[0] it is, in bytes (addresses of
// user space have 47 bits, so 48 are enough), and above that, from bit 48 on: length:4, field:4, kind:4, target:2, short:1,
// gs:1.
struct Slot {
  uint64_t key = 0;  // 0: empty
  uint64_t packed = 0;

  const Shape* shape() const {
    auto offset = static_cast<int64_t>(packed << 16) >> 16;
    return reinterpret_cast<const Shape*>(reinterpret_cast<uintptr_t>(common_shapes) + static_cast<uintptr_t>(offset));
  }
  unsigned length() const { return packed >> 48 & 15; }
  Kind kind() const { return static_cast<Kind>(packed >> 56 & 15); }
  // Where the branch offset or displacement is that leads to Insn::target, whether it has one byte or four, and a mask for
  // the sum: under an address-size prefix it is eip-relative.
  unsigned field() const { return packed >> 52 & 15; }
  uint64_t target_mask() const { return target_masks[packed >> 60 & 3]; }
  bool is_short() const { return packed >> 62 & 1; }
  bool is_special() const { return packed >> 63; }

  static constexpr uint64_t target_masks[] = {0, ~uint64_t{0}, 0xffffffff};
};

inline int64_t shape_offset(const Shape& s) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(&s) - reinterpret_cast<uintptr_t>(common_shapes));
}

inline Slot slot_of(uint64_t key, const Shape& s, int64_t shape_offset) {
  bool direct = s.kind == Kind::Jump || s.kind == Kind::Branch || s.kind == Kind::Call;
  uint64_t field = direct ? s.imm_offset : s.rip_relative ? s.disp_offset : 0;
  uint64_t target = direct ? 1 : s.eip_relative ? 2 : s.rip_relative ? 1 : 0;
  uint64_t is_short = direct && s.imm_size == 1;
  uint64_t kind = static_cast<uint64_t>(s.kind);
  uint64_t above =
      uint64_t{s.length} | field << 4 | kind << 8 | target << 12 | is_short << 14 | uint64_t{s.is_special()} << 15;
  return {key, (static_cast<uint64_t>(shape_offset) & ((uint64_t{1} << 48) - 1)) | above << 48};
}

}  // namespace weir::x86
