// What an instruction reads and writes in memory: every operand, also those that no ModRM names (the stack of push and call,
// the strings of movs, …), in terms of the registers before it.
//
//   address = segment + [base + index * scale + displacement]     [x]: cut to 32 bits where wraps_at_32_bits
//
// So `push [rsp]` writes at rsp - 8 what it reads at rsp, and `pop [rsp + 8]`, which addresses behind its increment, writes at
// rsp + 16. All but the displacement is known of a shape; it is made with the shape, and costs a look-up afterwards.
//
// Not told is what no register leads to: shadow stacks, what the kernel does for an instruction that traps. `lea`, nops and MPX
// only look as if they had a memory operand: they have none here. Near calls, jumps and returns with an operand-size prefix are
// those of Intel's processors, which ignore it.
//
// An instruction may fault where it accesses nothing: enter looks whether the end of its frame can be written, vextract* and
// maskmov* whether the elements can that their mask leaves out.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "x86/insn.h"

namespace weir::x86 {

constexpr uint8_t no_register = 0xff;

// None: the memory is named, and its content neither read nor changed (prefetch, clflush, monitor).
enum class Access : uint8_t { None = 0, Read = 1, Write = 2, ReadWrite = 3 };
constexpr bool reads(Access a) { return static_cast<int>(a) & 1; }
constexpr bool writes(Access a) { return static_cast<int>(a) & 2; }

enum class Segment : uint8_t { None, Fs, Gs };  // all others begin at 0

// Which bytes are accessed.
enum class Extent : uint8_t {
  Plain,      // the `size` bytes at the address
  Repeated,   // … as often as rcx says (ecx, if wraps_at_32_bits), going up, or down where the direction flag is set; with
              // cmps and scas perhaps not as often. The register that moves on is the base.
  Line,       // the `size` bytes from the address rounded down to a multiple of `size`
  Masked,     // of the elements those that the mask selects: see `mask`
  Packed,     // as many elements as the mask selects, one behind the other
  Indexed,    // the elements that the mask selects; each has an index, and thus an address, of its own: see `index`
  BitString,  // the address moves on by size * floor(bit / (8 * size)) bytes, `bit` is the signed register bit_offset
  State,      // at most `size` bytes: which ones depends on what there is to save. 0: on edx:eax and cpuid leaf 13 too
  Rows,       // a tile: its rows, each index * scale bytes behind the last; ldtilecfg has said how many, how long they are
};

enum class MaskIn : uint8_t { Nothing, K, Vector, Mmx };

struct MemoryOperand {
  int64_t displacement = 0;     // is_rip_relative: the address
  uint32_t size = 0;            // in bytes; with Masked, Packed, Indexed: of all elements
  uint8_t base = no_register;   // a general register (Gpr)
  uint8_t index = no_register;  // a general register; with Indexed a vector register
  uint8_t scale = 1;            // 1, 2, 4, 8
  uint8_t index_size = 8;       // in bytes; 1: al, unsigned (xlat); with Indexed 4 or 8: of its elements, which are signed
  Segment segment = Segment::None;
  Access access = Access::None;  // ReadWrite: reads first
  Extent extent = Extent::Plain;
  bool wraps_at_32_bits = false;
  bool is_rip_relative = false;  // base and index are none
  bool is_implicit = false;      // no ModRM and no offset in the instruction names it

  // Masked, Packed and Indexed have size / element elements of `element` bytes. Bit b of mask_bits selects the element
  // b % elements. It is bit b of a mask register, or the top bit of element b of a vector or MMX register. Nothing: all are.
  uint8_t element = 0;
  MaskIn mask_in = MaskIn::Nothing;
  uint8_t mask = no_register;
  uint8_t mask_bits = 0;

  uint8_t bit_offset = no_register;  // BitString: a general register, of which `size` bytes count
  // What the instruction encodes as displacement is multiplied with: N of disp8*N, 1; 0: nothing, for this operand. wide: it has
  // 8 bytes. by_immediate: enter, whose immediate decides.
  uint8_t displacement_scale = 0;
  static constexpr uint8_t wide = 0x80, by_immediate = 0xff;

  friend auto operator<=>(const MemoryOperand&, const MemoryOperand&) = default;
};
static_assert(sizeof(MemoryOperand) == 32);

// In the order in which the processor comes to them.
class MemoryOperands {
 public:
  static constexpr size_t max = 5;  // VIA's xcrypt; others have two

  MemoryOperands() {}
  MemoryOperand& add(const MemoryOperand& operand) { return operands_[count_++] = operand; }
  void drop_last() { count_--; }
  size_t size() const { return count_; }
  const MemoryOperand& operator[](size_t n) const { return operands_[n]; }
  MemoryOperand& operator[](size_t n) { return operands_[n]; }
  const MemoryOperand* begin() const { return operands_; }
  const MemoryOperand* end() const { return operands_ + count_; }

 private:
  size_t count_ = 0;
  union {  // those behind count_ are left as they are
    MemoryOperand operands_[max];
  };
};

// Of the instruction that decode() has found in `bytes`. None where the shape is not known.
// Not thread-safe, as decode() is not.
MemoryOperands memory_operands(const Insn& insn, std::span<const std::byte> bytes);

}  // namespace weir::x86
