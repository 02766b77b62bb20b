// What compilers make of a switch, read backwards from the jump:
//
//   lea B, [rip+T]; movsxd I, [B+X*4]; add I, B; jmp I      position-independent, 4-byte entries relative to B
//   jmp [X*8+T], or mov R, [X*8+T]; jmp R                   position-dependent, 8-byte addresses
//   lea B, [rip+T]; jmp [B+X*8]                             computed goto, 8-byte addresses
//
// with copies between registers anywhere, and mostly `cmp X, n; ja default` before. Only the straight line of code in
// front of the jump is read; an lea that was hoisted out of it is looked for in the whole function. All of this is a guess:
// a wrong one costs time, never correctness, since a target is only a further place where a block may begin.
#include "x86/jump_table.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "x86/encoding.h"

namespace weir::x86 {
namespace {

constexpr size_t max_entries = 4096;
constexpr size_t max_steps_back = 64;
constexpr size_t max_guesses = 8;

constexpr int no_register = -1;

// An instruction's operands, from ModRM and SIB.
struct Operands {
  uint16_t opcode = 0;  // map << 8 | opcode
  bool wide = false;    // REX.W
  bool memory = false;
  int reg = no_register;                                   // ModRM.reg: a register, or the extension of the opcode
  int rm = no_register;                                    // ModRM.rm, if not memory
  int base = no_register, index = no_register, scale = 0;  // if memory
  int64_t disp = 0;
};

class Reader {
 public:
  explicit Reader(const DecodedCode& code) : code_(code) {}

  const Insn& insn(size_t i) const { return code_.insns[i]; }
  size_t count() const { return code_.insns.size(); }

  std::optional<Operands> operands(size_t i) const {
    const Shape& shape = *insn(i).shape;
    uint8_t bytes[16];
    copy(i, bytes);
    Layout l = layout_of(bytes);
    if (!shape.known || l.encoding != Encoding::Legacy || l.map > 1 || l.modrm_offset == 0) return {};
    int before = l.opcode_offset - 1 - (l.map == 1);
    int rex = before >= 0 && (bytes[before] & 0xf0) == 0x40 ? bytes[before] : 0;
    uint8_t modrm = bytes[l.modrm_offset];
    Operands o{.opcode = uint16_t(l.map << 8 | bytes[l.opcode_offset])};
    o.wide = rex & 8;
    o.reg = (modrm >> 3 & 7) | (rex & 4) << 1;
    o.memory = modrm < 0xc0;
    int rm = (modrm & 7) | (rex & 1) << 3;
    if (!o.memory) {
      o.rm = rm;
      return o;
    }
    o.disp = field(bytes, shape.disp_offset, shape.disp_size);
    bool no_base = (modrm & 0xc0) == 0;  // if the base is 5: disp32 alone, or rip
    if (has_sib(modrm)) {
      uint8_t sib = bytes[l.modrm_offset + 1];
      int index = (sib >> 3 & 7) | (rex & 2) << 2;
      if (index != RSP) o.index = index, o.scale = 1 << (sib >> 6);
      if (!(no_base && (sib & 7) == 5)) o.base = (sib & 7) | (rex & 1) << 3;
    } else if (!(no_base && (modrm & 7) == 5)) {
      o.base = rm;
    }
    return o;
  }

  int64_t immediate(size_t i) const {
    uint8_t bytes[16];
    copy(i, bytes);
    return field(bytes, insn(i).shape->imm_offset, insn(i).shape->imm_size);
  }

  uint8_t last_opcode_byte(size_t i) const {
    uint8_t bytes[16];
    copy(i, bytes);
    return bytes[layout_of(bytes).opcode_offset];
  }

  // The instruction that control comes from when it falls into insn(i).
  std::optional<size_t> before(size_t i) const {
    if (i == 0 || insn(i - 1).next() != insn(i).pc || insn(i - 1).shape->length == 0) return {};
    Kind kind = insn(i - 1).kind();
    if (kind == Kind::Jump || kind == Kind::JumpIndirect || kind >= Kind::FarReturn || kind == Kind::Return) return {};
    return i - 1;
  }

  // The last instruction before insn(i) that writes the register.
  std::optional<size_t> definition(int reg, size_t i) const {
    for (size_t steps = 0; steps < max_steps_back; ++steps) {
      auto at = before(i);
      if (!at) return {};
      if (insn(*at).shape->writes.gpr >> reg & 1) return at;
      i = *at;
    }
    return {};
  }

 private:
  void copy(size_t i, uint8_t (&bytes)[16]) const {
    memset(bytes, 0, sizeof bytes);
    size_t offset = insn(i).pc - code_.begin;
    memcpy(bytes, code_.bytes.data() + offset, std::min(sizeof bytes, code_.bytes.size() - offset));
  }

  static int64_t field(const uint8_t* bytes, int offset, int size) {
    int64_t value = 0;
    memcpy(&value, bytes + offset, size);
    int unused = 64 - 8 * size;
    return size == 0 ? 0 : value << unused >> unused;
  }

  DecodedCode code_;
};

enum : uint16_t {
  Add_rm_r = 0x01,
  Add_r_rm = 0x03,
  Movsxd = 0x63,
  Mov_rm_r = 0x89,
  Mov_r_rm = 0x8b,
  Lea = 0x8d,
  Group5 = 0xff,
};

// mov a, b: {a, b}. A zero- or sign-extension counts as one where `extensions`.
std::optional<std::pair<int, int>> as_copy(const Operands& o, bool extensions) {
  if (o.memory) return {};
  if (o.opcode == Mov_r_rm) return std::pair(o.reg, o.rm);
  if (o.opcode == Mov_rm_r) return std::pair(o.rm, o.reg);
  bool extends = o.opcode == Movsxd || (o.opcode >= 0x1b6 && o.opcode <= 0x1bf && (o.opcode & 7) >= 6);
  if (extensions && extends) return std::pair(o.reg, o.rm);
  return {};
}

// The constant that the register holds before insn(i).
std::optional<AppPc> constant(const Reader& code, int reg, size_t i) {
  for (int copies = 0; copies < 4; ++copies) {
    auto at = code.definition(reg, i);
    if (!at) return {};
    auto o = code.operands(*at);
    if (!o) {  // mov reg, imm
      int size = code.insn(*at).shape->imm_size;
      if ((code.last_opcode_byte(*at) & 0xf8) != 0xb8 || size < 4) return {};
      uint64_t value = code.immediate(*at);
      return AppPc{size == 4 ? static_cast<uint32_t>(value) : value};
    }
    if (o->opcode == Lea && code.insn(*at).shape->rip_relative) return code.insn(*at).target;
    auto copied = as_copy(*o, false);
    if (!copied || copied->first != reg) return {};
    reg = copied->second;
    i = *at;
  }
  return {};
}

// The number of entries, from the comparison that guards the jump: `index` is the register in front of insn(i).
size_t bound_of(const Reader& code, int index, size_t i) {
  std::optional<int> condition;  // of the last branch passed whose comparison is not yet found
  for (size_t steps = 0; steps < max_steps_back; ++steps) {
    auto at = code.before(i);
    if (!at) break;
    i = *at;
    const Shape& shape = *code.insn(i).shape;
    if (shape.kind == Kind::Branch) condition = shape.condition;
    bool immediate = shape.imm_size > 0;
    auto o = code.operands(i);
    bool group1 = o && o->opcode >= 0x80 && o->opcode <= 0x83 && o->rm == index && immediate;
    bool accumulator = !o && index == RAX && immediate && (code.last_opcode_byte(i) & 0xfe) == 0x3c;
    // A comparison of memory is taken for one of the index: it is in front of the jump, and of what else.
    bool in_memory = o && o->opcode >= 0x80 && o->opcode <= 0x83 && o->memory && immediate;
    bool compares = accumulator || ((group1 || in_memory) && o->reg == 7);
    if (compares && condition && (*condition == 7 || *condition == 3)) {
      uint64_t limit = static_cast<uint64_t>(code.immediate(i)) + (*condition == 7);
      if (limit > 0) return std::min<uint64_t>(limit, max_entries);
    }
    if (group1 && o->reg == 4) {  // and index, mask
      uint64_t mask = static_cast<uint64_t>(code.immediate(i));
      return std::min<uint64_t>(mask, max_entries - 1) + 1;
    }
    if (shape.writes.flags) condition.reset();
    if (!(shape.writes.gpr >> index & 1)) continue;
    auto copied = o ? as_copy(*o, true) : std::nullopt;
    if (!copied || copied->first != index) break;
    index = copied->second;
  }
  return max_entries;
}

class Finder {
 public:
  Finder(const DecodedCode& code, std::span<const LeaSite> leas) : code_(code), leas_(leas) {}

  std::vector<JumpTable> find(size_t jump) {
    auto o = code_.operands(jump);
    if (!o || o->opcode != Group5) return {};
    if (o->memory) {
      through_addresses(*o, jump);
    } else {
      through_register(o->rm, jump);
    }
    return std::move(tables_);
  }

 private:
  void through_register(int reg, size_t i) {
    for (int copies = 0; copies < 4; ++copies) {
      auto at = code_.definition(reg, i);
      auto o = at ? code_.operands(*at) : std::nullopt;
      if (!o) return;
      if (o->opcode == Mov_r_rm && o->memory && o->wide) return through_addresses(*o, *at);
      bool adds = (o->opcode == Add_r_rm || o->opcode == Add_rm_r) && !o->memory && o->wide;
      if (adds) return through_sum(o->reg, o->rm, *at);
      auto copied = as_copy(*o, false);
      if (!copied || copied->first != reg) return;
      reg = copied->second;
      i = *at;
    }
  }

  // Entries are addresses: o is the memory operand of insn(i).
  void through_addresses(const Operands& o, size_t i) {
    if (o.index == no_register || o.scale != 8) return;
    size_t bound = bound_of(code_, o.index, i);
    for (AppPc base : bases(o, i)) tables_.push_back({base + o.disp, {}, false, bound});
  }

  // Either register holds an entry of the table, the other what entries are relative to.
  void through_sum(int a, int b, size_t i) {
    for (auto [entry, origin] : {std::pair(a, b), std::pair(b, a)}) {
      auto at = code_.definition(entry, i);
      auto o = at ? code_.operands(*at) : std::nullopt;
      bool loads = o && o->opcode == Movsxd && o->wide && o->memory && o->reg == entry && o->scale == 4;
      if (!loads) continue;
      size_t bound = bound_of(code_, o->index, *at);
      auto known_origin = constant(code_, origin, i);
      for (AppPc base : bases(*o, *at)) tables_.push_back({base + o->disp, known_origin.value_or(base), true, bound});
      return;
    }
  }

  std::vector<AppPc> bases(const Operands& o, size_t i) const {
    if (o.base == no_register) return {AppPc{0}};
    if (auto known = constant(code_, o.base, i)) return {*known};
    std::vector<AppPc> guesses;
    for (const LeaSite& lea : leas_) {
      bool is_new = std::find(guesses.begin(), guesses.end(), lea.address) == guesses.end();
      if (lea.reg == o.base && is_new && guesses.size() < max_guesses) guesses.push_back(lea.address);
    }
    return guesses;
  }

  Reader code_;
  std::span<const LeaSite> leas_;
  std::vector<JumpTable> tables_;
};

}  // namespace

std::vector<LeaSite> find_leas(const DecodedCode& code) {
  Reader reader(code);
  std::vector<LeaSite> leas;
  for (size_t i = 0; i < code.insns.size(); ++i) {
    const Shape& shape = *code.insns[i].shape;
    if (!shape.rip_relative || shape.reads_memory || shape.writes_memory || shape.kind != Kind::Plain) continue;
    auto o = reader.operands(i);
    if (o && o->opcode == Lea) leas.push_back({static_cast<uint8_t>(o->reg), code.insns[i].target});
  }
  return leas;
}

std::vector<JumpTable> find_jump_tables(const DecodedCode& code, size_t jump, std::span<const LeaSite> leas) {
  return Finder(code, leas).find(jump);
}

std::vector<AppPc> read_jump_table(const JumpTable& table, AppRange bounds, AppPc limit, const ReadMemory& data) {
  constexpr size_t at_once = 64;
  std::vector<AppPc> targets;
  size_t entry_size = table.relative ? 4 : 8;
  bool bounded = table.max_entries < max_entries;  // then an entry that leaves the function is one among others
  for (size_t i = 0; i < table.max_entries; i += at_once) {
    AppPc begin = table.begin + i * entry_size;
    size_t wanted = std::min(at_once, table.max_entries - i);
    std::span<const std::byte> bytes = data(begin, wanted * entry_size);
    for (size_t k = 0; k < wanted; ++k) {
      if (begin + (k + 1) * entry_size > limit || (k + 1) * entry_size > bytes.size()) return targets;
      AppPc target;
      if (table.relative) {
        int32_t offset;
        memcpy(&offset, bytes.data() + k * 4, sizeof offset);
        target = table.origin + offset;
      } else {
        memcpy(&target.value, bytes.data() + k * 8, sizeof target.value);
      }
      if (bounds.contains(target)) targets.push_back(target);
      else if (!bounded) return targets;
    }
  }
  return targets;
}

}  // namespace weir::x86
