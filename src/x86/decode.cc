// The hot path of decoding: find the end of the shape, look the shape up, read the displacement. It waits for memory as
// little as it can, and has next to no branch that depends on the instruction: a mispredicted one costs as much as all the
// rest.
//
// What is remembered of a shape cannot be wrong for another instruction of it: Zydis is shown the bytes of the shape, and
// zeros behind them.
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "x86/decode_ahead.h"
#include "x86/encoding.h"
#include "x86/insn.h"
#include "x86/make_operands.h"
#include "x86/shape.h"
#include "x86/slot.h"

namespace weir::x86 {
namespace {

uint64_t load64(const uint8_t* p) {
  uint64_t value;
  memcpy(&value, p, sizeof value);
  return value;
}

Slot make_slot(uint64_t key, const uint8_t* bytes, const Layout& layout) {
  static std::deque<Shape> shapes;  // at addresses that stay
  uint8_t shown[16] = {};
  memcpy(shown, bytes, layout.shape_end);
  MadeShape fresh = make_shape(shown, layout);
  Shape& made = shapes.emplace_back(fresh.shape);
  made.operands = keep_operands(fresh.operands);
  return slot_of(key, made, shape_offset(made));
}

const Slot* common_home_of(uint64_t key) { return common_slots + home_index(key, 64 - common_bits); }

// Shapes that are not common, as they come: a table like that of the common ones (see slot.h), which stays as it is, so that
// its pages need not be copied.
class Memo {
 public:
  // Where it mostly is, or in the next one.
  const Slot* home_of(uint64_t key) const { return slots_ + home_index(key, shift_); }

  Slot find_or_make(uint64_t key, const uint8_t* bytes, const Layout& layout) {
    for (const Slot* home : {common_home_of(key), home_of(key)})
      for (const Slot* slot = home; slot->key; ++slot)
        if (slot->key == key) return *slot;
    Slot made = make_slot(key, bytes, layout);
    while (++used_ * 2 > size() || !place(made)) grow();
    return made;
  }

 private:
  size_t size() const { return size_t{1} << (64 - shift_); }
  const Slot* end() const { return slots_ + size() + overhang; }

  // False: the table is to grow first. Its last slot stays empty.
  bool place(Slot made) {
    Slot* slot = slots_ + (home_of(made.key) - slots_);
    while (slot->key) ++slot;
    if (slot + 1 == end()) return false;
    *slot = made;
    return true;
  }

  void grow() {
    const Slot* old = slots_;
    const Slot* old_end = end();
    std::unique_ptr<Slot[]> larger;
    bool placed;
    do {
      --shift_;
      larger = std::make_unique<Slot[]>(size() + overhang);
      slots_ = larger.get();
      placed = std::all_of(old, old_end, [&](const Slot& slot) { return !slot.key || place(slot); });
    } while (!placed);
    grown_ = std::move(larger);
  }

  static constexpr unsigned first_bits = 13;
  static constinit inline Slot first_slots_[(1 << first_bits) + overhang] = {};
  Slot* slots_ = first_slots_;
  unsigned shift_ = 64 - first_bits;
  size_t used_ = 0;
  std::unique_ptr<Slot[]> grown_;
};
constinit Memo memo;

// Shapes of more than 7 bytes have more than four prefixes or so.
Slot find_or_make_long(const uint8_t* bytes, const Layout& layout) {
  static std::map<std::string, Slot, std::less<>> slots;
  std::string_view key(reinterpret_cast<const char*>(bytes), layout.shape_end);
  auto at = slots.find(key);
  if (at == slots.end()) at = slots.emplace(key, make_slot(0, bytes, layout)).first;
  return at->second;
}

// The first bytes of an instruction, behind any prefixes that are already passed, are one of
//   op    REX op    0F op
// and each has its part of one table, so that one look-up finds where the ModRM is in all three (behind the opcode, if
// there is none: has_modrm), and the size of the immediate. Of 0F 38 and 0F 3A, VEX and EVEX the opcode is further behind.
constexpr unsigned modrm_offset_bits = 7, has_modrm = 0x80, special = 0x40, immediate_shift = 8;
// What is not so simple:
constexpr unsigned pass_prefix = special | 1;  // prefixes, also a REX in front of 0F: look again behind it
constexpr unsigned anything_else = special | 2;
constexpr unsigned vector = special | has_modrm;  // VEX, EVEX: opcode 77 has no ModRM

constexpr auto openings = [] {
  std::array<uint16_t, 3 * 256> table{};
  for (int op = 0; op < 256; ++op) {
    unsigned one = 1 | (one_byte_forms[op] == Form::Bare ? 0 : has_modrm) | usual_immediate(0, op) << immediate_shift;
    unsigned two = 2 | (two_byte_forms[op] == Form::Bare ? 0 : has_modrm) | usual_immediate(1, op) << immediate_shift;
    bool simple = one_byte_forms[op] != Form::Special;
    table[op] = simple ? one : pass_prefix;
    table[256 + op] = simple ? one + 1 : anything_else;
    table[512 + op] = two_byte_forms[op] == Form::Special ? anything_else : two;
  }
  table[0xc5] = vector | 3;
  table[0xc4] = vector | 4;
  table[0x62] = vector | 5;
  table[0x8f] = anything_else;
  table[256 + 0x0f] = pass_prefix;
  table[512 + 0x38] = 3 | has_modrm;
  table[512 + 0x3a] = 3 | has_modrm | 1 << immediate_shift;
  return table;
}();

unsigned opening_of(uint64_t bytes) {
  unsigned second = bytes >> 8 & 0xff;
  unsigned index = bytes & 0xff;
  index = (bytes & 0xf0) == 0x40 ? 256 + second : index;
  index = (bytes & 0xff) == 0x0f ? 512 + second : index;
  return openings[index];
}

// By ModRM: the bytes of ModRM and SIB, and << 4 those of the displacement (a SIB without base excepted).
constexpr auto modrm_sizes = [] {
  std::array<uint8_t, 256> table{};
  for (int modrm = 0; modrm < 256; ++modrm) {
    uint8_t with_sib[2] = {static_cast<uint8_t>(modrm), 0};
    table[modrm] = 1 + has_sib(with_sib[0]) + (displacement_size(with_sib) << 4);
  }
  return table;
}();

AppPc target_of(Slot slot, const uint8_t* p, AppPc pc) {
  int32_t field;
  memcpy(&field, p + slot.field(), sizeof field);
  int64_t offset = slot.is_short() ? static_cast<int8_t>(field) : field;
  return {(pc.value + slot.length() + offset) & slot.target_mask()};
}

// For target_of(): four bytes are read at any offset of a field, also of the last of 15.
constexpr size_t fast_bytes = max_insn_length + 4;

// What decode_fast() leaves: the end of the readable bytes, shapes that are new or have many prefixes, rare encodings.
[[gnu::noinline]] Step decode_slowly(std::span<const std::byte> bytes, AppPc pc, Insn& insn) {
  static const Shape too_few = unknown_shape();
  uint8_t padded[fast_bytes] = {};
  std::copy_n(reinterpret_cast<const uint8_t*>(bytes.data()), std::min(bytes.size(), sizeof padded), padded);
  Layout layout = layout_of(padded);
  insn = {pc, {}, &too_few};
  if (layout.shape_end > bytes.size()) return {0, Kind::Plain, false};
  Slot slot = layout.shape_end > max_key_bytes
                  ? find_or_make_long(padded, layout)
                  : memo.find_or_make(key_of(load64(padded), layout.shape_end), padded, layout);
  if (slot.length() > bytes.size()) return {0, Kind::Plain, false};
  insn = {pc, target_of(slot, padded, pc), slot.shape()};
  return {slot.length(), slot.kind(), slot.is_special()};
}

// Opaque, so that no compiler finds out that the guess is not needed.
[[gnu::noipa]] Step guessed_wrong(Slot slot) { return {slot.length(), slot.kind(), slot.is_special()}; }

// Calls are the last thing it does, if it does any: so it has no registers to save.
template <bool Ahead>
[[gnu::always_inline]] inline Step decode_fast(std::span<const std::byte> bytes, AppPc pc, Insn& insn) {
  if (bytes.size() < fast_bytes) [[unlikely]]
    return decode_slowly(bytes, pc, insn);
  const uint8_t* p = reinterpret_cast<const uint8_t*>(bytes.data());
  uint64_t rest = load64(p);
  unsigned passed = 0;
  unsigned opening = opening_of(rest);
  while (opening == pass_prefix && passed < 3) opening = opening_of(rest >>= 8), ++passed;
  unsigned modrm_offset = opening & modrm_offset_bits;
  if (opening & special) [[unlikely]] {
    bool has_none = (rest >> 8 * (modrm_offset - 1) & 0xff) == 0x77;
    if (!(opening & has_modrm) || has_none) return decode_slowly(bytes, pc, insn);
  }
  unsigned sizes = modrm_sizes[rest >> 8 * modrm_offset & 0xff] & -(opening / has_modrm & 1);
  unsigned shape_end = passed + modrm_offset + (sizes & 3);
  if (shape_end > max_key_bytes) [[unlikely]]
    return decode_slowly(bytes, pc, insn);
  uint64_t key = key_of(load64(p), shape_end);
  const Slot* slot = common_home_of(key);
  if (slot->key != key) [[unlikely]]
    ++slot;
  if (slot->key != key) [[unlikely]]
    slot = memo.home_of(key);
  if (slot->key != key) [[unlikely]]
    ++slot;
  if (slot->key != key) [[unlikely]]
    return decode_slowly(bytes, pc, insn);
  insn.pc = pc;
  insn.target = target_of(*slot, p, pc);
  insn.shape = slot->shape();
  size_t guess = shape_end + (sizes >> 4) + (opening >> immediate_shift);
  if (Ahead && guess != slot->length()) [[unlikely]]
    return guessed_wrong(*slot);
  return {guess, slot->kind(), slot->is_special()};
}

}  // namespace

Step decode_ahead(std::span<const std::byte> bytes, AppPc pc, Insn& insn) { return decode_fast<true>(bytes, pc, insn); }

Insn decode(std::span<const std::byte> bytes, AppPc pc) {
  Insn insn;
  decode_fast<false>(bytes, pc, insn);
  return insn;
}

}  // namespace weir::x86
