// The hot path of decoding: find the end of the shape, look the shape up, read the displacement. It waits for memory as
// little as it can, and has next to no branch that depends on the instruction: a mispredicted one costs as much as all the
// rest.
//
// No shape's bytes are the beginning of another's, since where a shape ends is decided by its own bytes; so its bytes,
// padded with zeros, identify it without their number.
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "x86/decode_ahead.h"
#include "x86/encoding.h"
#include "x86/insn.h"
#include "x86/shape.h"

namespace weir::x86 {
namespace {

uint64_t load64(const uint8_t* p) {
  uint64_t value;
  memcpy(&value, p, sizeof value);
  return value;
}

// The bytes of a shape of at most 7 bytes, and their number; never 0.
uint64_t key_of(uint64_t bytes, unsigned shape_end) { return bytes << (64 - 8 * shape_end) | shape_end; }
constexpr unsigned max_key_bytes = 7;

// What a remembered shape needs on the hot path, in 16 bytes: the address of the Shape (those of user space have 47 bits),
// and above it from bit 48 on: length:4, field:4, target:2, short:1.
struct Slot {
  uint64_t key = 0;   // 0: empty
  uint64_t packed = 0;

  const Shape* shape() const { return reinterpret_cast<const Shape*>(packed & ((uint64_t{1} << 48) - 1)); }
  unsigned length() const { return packed >> 48 & 15; }
  // Where the branch offset or displacement is that leads to Insn::target, whether it has one byte or four, and a mask for
  // the sum: under an address-size prefix it is eip-relative.
  unsigned field() const { return packed >> 52 & 15; }
  uint64_t target_mask() const { return std::array{uint64_t{0}, ~uint64_t{0}, uint64_t{0xffffffff}}[packed >> 56 & 3]; }
  bool is_short() const { return packed >> 58 & 1; }
};

Slot slot_of(uint64_t key, const Shape& s) {
  bool direct = s.kind == Kind::Jump || s.kind == Kind::Branch || s.kind == Kind::Call;
  uint64_t field = direct ? s.imm_offset : s.rip_relative ? s.disp_offset : 0;
  uint64_t target = direct ? 1 : s.eip_relative ? 2 : s.rip_relative ? 1 : 0;
  uint64_t is_short = direct && s.imm_size == 1;
  return {key, reinterpret_cast<uint64_t>(&s) | uint64_t{s.length} << 48 | field << 52 | target << 56 | is_short << 58};
}

// Only the bytes of the shape are shown to Zydis, so what it says cannot depend on any other.
Slot make_slot(uint64_t key, const uint8_t* bytes, unsigned shape_end) {
  static std::deque<Shape> shapes;  // at addresses that stay
  uint8_t shown[16] = {};
  memcpy(shown, bytes, shape_end);
  return slot_of(key, shapes.emplace_back(make_shape(shown, layout_of(shown))));
}

// Shapes of more than 7 bytes have more than four prefixes or so.
[[gnu::noinline]] Slot find_long(const uint8_t* bytes, unsigned shape_end) {
  static std::map<std::string, Slot, std::less<>> slots;
  std::string_view key(reinterpret_cast<const char*>(bytes), shape_end);
  auto at = slots.find(key);
  if (at == slots.end()) at = slots.emplace(key, make_slot(0, bytes, shape_end)).first;
  return at->second;
}

// Shapes by their bytes: open addressing, probed linearly, at most a quarter full.
class Memo {
 public:
  Slot find(const uint8_t* bytes, unsigned shape_end) {
    uint64_t key = key_of(load64(bytes), shape_end);
    const Slot* slot = home_of(key);
    if (slot->key == key) [[likely]] return *slot;
    return find_further(key, bytes, shape_end);
  }

 private:
  Slot* home_of(uint64_t key) const { return slots_ + (key * 0x9E3779B97F4A7C15ull >> shift_); }
  Slot* after(Slot* slot) const { return slot + 1 == slots_ + size_ ? slots_ : slot + 1; }

  [[gnu::noinline]] Slot find_further(uint64_t key, const uint8_t* bytes, unsigned shape_end) {
    Slot* slot = home_of(key);
    for (; slot->key; slot = after(slot))
      if (slot->key == key) return *slot;
    if (++used_ * 4 > size_) grow();
    Slot made = make_slot(key, bytes, shape_end);
    place(made);
    return made;
  }

  void place(Slot made) {
    Slot* slot = home_of(made.key);
    while (slot->key) slot = after(slot);
    *slot = made;
  }

  void grow() {
    auto larger = std::make_unique<Slot[]>(size_ * 2);
    const Slot* old = std::exchange(slots_, larger.get());
    size_t old_size = std::exchange(size_, size_ * 2);
    --shift_;
    for (const Slot* slot = old; slot != old + old_size; ++slot)
      if (slot->key) place(*slot);
    grown_ = std::move(larger);
  }

  static constexpr unsigned first_bits = 13;
  static constinit inline Slot first_slots_[1 << first_bits] = {};
  Slot* slots_ = first_slots_;
  size_t size_ = 1 << first_bits;
  unsigned shift_ = 64 - first_bits;
  size_t used_ = 0;
  std::unique_ptr<Slot[]> grown_;
};
constinit Memo memo;

// The first bytes of an instruction, behind any prefixes that are already passed, are one of
//   op    REX op    0F op
// and each has its part of one table, so that one look-up finds where the ModRM is in all three (behind the opcode, if
// there is none: has_modrm), and the size of the immediate. Of 0F 38 and 0F 3A, VEX and EVEX the opcode is further behind.
constexpr unsigned modrm_offset_bits = 7, has_modrm = 0x80, special = 0x40, immediate_shift = 8;
// What is not so simple:
constexpr unsigned pass_prefix = special | 1;     // prefixes, also a REX in front of 0F: look again behind it
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

// By ModRM: the bytes of ModRM and SIB, and << 4 those of the displacement (a SIB without base excepted).
constexpr auto modrm_sizes = [] {
  std::array<uint8_t, 256> table{};
  for (int modrm = 0; modrm < 256; ++modrm) {
    uint8_t with_sib[2] = {static_cast<uint8_t>(modrm), 0};
    table[modrm] = 1 + has_sib(with_sib[0]) + (displacement_size(with_sib) << 4);
  }
  return table;
}();

struct Ends {
  unsigned shape;
  unsigned insn;   // a guess
};

Ends find_ends(const uint8_t* p) {
  uint64_t rest = load64(p);
  for (unsigned passed = 0; passed < 3; ++passed, rest >>= 8) {
    unsigned second = rest >> 8 & 0xff;
    unsigned index = rest & 0xff;
    index = (rest & 0xf0) == 0x40 ? 256 + second : index;
    index = (rest & 0xff) == 0x0f ? 512 + second : index;
    unsigned opening = openings[index];
    unsigned modrm_offset = opening & modrm_offset_bits;
    if (opening & special) {
      if (opening == pass_prefix) continue;
      if (opening == anything_else) break;
      if ((rest >> 8 * (modrm_offset - 1) & 0xff) == 0x77) break;
    }
    unsigned sizes = modrm_sizes[rest >> 8 * modrm_offset & 0xff] & (opening & has_modrm ? 0xff : 0);
    unsigned shape_end = passed + modrm_offset + (sizes & 3);
    return {shape_end, shape_end + (sizes >> 4) + (opening >> immediate_shift)};
  }
  unsigned shape_end = layout_of(p).shape_end;
  return {shape_end, shape_end};
}

[[gnu::noinline]] unsigned too_few(AppPc pc, Insn& insn) {
  static const Shape shape = unknown_shape();
  insn = {pc, {}, &shape};
  return 0;
}

// Opaque, so that no compiler finds out that the guess is not needed.
[[gnu::noipa]] unsigned guessed_wrong(Slot slot) { return slot.length(); }

template <bool Ahead>
unsigned decode_into(Insn& insn, std::span<const std::byte> bytes, AppPc pc) {
  const uint8_t* p = reinterpret_cast<const uint8_t*>(bytes.data());
  // Four bytes are read at any offset of a field, also of the last of 15.
  uint8_t padded[max_insn_length + 4];
  if (bytes.size() < sizeof padded) [[unlikely]] {
    memset(padded, 0, sizeof padded);
    if (!bytes.empty()) memcpy(padded, p, bytes.size());
    p = padded;
  }
  Ends ends = find_ends(p);
  if (ends.shape > bytes.size()) [[unlikely]] return too_few(pc, insn);
  Slot slot = ends.shape > max_key_bytes ? find_long(p, ends.shape) : memo.find(p, ends.shape);
  if (slot.length() > bytes.size()) [[unlikely]] return too_few(pc, insn);
  int32_t field;
  memcpy(&field, p + slot.field(), sizeof field);
  int64_t offset = slot.is_short() ? static_cast<int8_t>(field) : field;
  uint64_t target = pc.value + slot.length() + offset;
  insn.pc = pc;
  insn.target = {target & slot.target_mask()};
  insn.shape = slot.shape();
  if (Ahead && slot.length() != ends.insn) [[unlikely]] return guessed_wrong(slot);
  return ends.insn;
}

}  // namespace

unsigned decode_ahead(std::span<const std::byte> bytes, AppPc pc, Insn& insn) { return decode_into<true>(insn, bytes, pc); }

Insn decode(std::span<const std::byte> bytes, AppPc pc) {
  Insn insn;
  decode_into<false>(insn, bytes, pc);
  return insn;
}

}  // namespace weir::x86
