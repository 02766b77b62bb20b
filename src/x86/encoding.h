// Where the parts of an instruction are: as much of the encoding rules (Intel SDM volume 2, chapter 2 and appendix A; AMD
// APM volume 3 for XOP and 3DNow!) as it takes to find opcode, ModRM and SIB, for known and unknown opcodes alike.
#pragma once

#include <array>
#include <cstdint>

namespace weir::x86 {

// What a byte means where an opcode is expected. The first two values count the ModRM bytes behind it.
enum class Form : uint8_t { Bare = 0, ModRm = 1, Special = 2 };

// The one-byte map. Special: prefixes, escapes, VEX, EVEX, and 8F (XOP or pop).
constexpr std::array<Form, 256> one_byte_forms = [] {
  std::array<Form, 256> forms{};
  for (int op = 0; op < 256; ++op) {
    bool arithmetic = op < 0x40 && (op & 7) < 4;
    bool modrm = arithmetic || op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8e) || op == 0xc0 ||
                 op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) || (op >= 0xd8 && op <= 0xdf) ||
                 op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
    bool prefix = op == 0x26 || op == 0x2e || op == 0x36 || op == 0x3e || (op >= 0x40 && op <= 0x4f) ||
                  (op >= 0x64 && op <= 0x67) || op == 0xf0 || op == 0xf2 || op == 0xf3;
    bool escape = op == 0x0f || op == 0x62 || op == 0x8f || op == 0xc4 || op == 0xc5;
    forms[op] = prefix || escape ? Form::Special : modrm ? Form::ModRm : Form::Bare;
  }
  return forms;
}();

// The 0F map. Special: the escapes 38 and 3A, 3DNow!, and moves to and from control and debug registers, which ignore
// ModRM.mod and never have a SIB.
constexpr std::array<Form, 256> two_byte_forms = [] {
  std::array<Form, 256> forms{};
  for (int op = 0; op < 256; ++op) {
    bool bare = (op >= 0x04 && op <= 0x0c) || op == 0x0e || (op >= 0x24 && op <= 0x27) || (op >= 0x30 && op <= 0x3f) ||
                op == 0x77 || (op >= 0x80 && op <= 0x8f) || (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) ||
                (op >= 0xc8 && op <= 0xcf);
    bool special = op == 0x0f || (op >= 0x20 && op <= 0x23) || op == 0x38 || op == 0x3a;
    forms[op] = special ? Form::Special : bare ? Form::Bare : Form::ModRm;
  }
  return forms;
}();

// Without a branch: it is as good as random.
constexpr bool has_sib(uint8_t modrm) { return (modrm < 0xc0) & ((modrm & 7) == 4); }

enum class Encoding : uint8_t { Legacy, Vex, Evex, Xop };

struct Layout {
  Encoding encoding = Encoding::Legacy;
  uint8_t map = 0;  // 0: one-byte, 1: 0F, 2: 0F38, 3: 0F3A, others as VEX, EVEX and XOP number them
  uint8_t opcode_offset = 0;
  uint8_t modrm_offset = 0;  // 0: no ModRM
  uint8_t shape_end = 0;     // behind SIB, ModRM or opcode: the bytes up to here decide everything but values
};

constexpr int max_insn_length = 15;

// Of the instruction in the 16 readable bytes at `bytes`. shape_end is at most 15: where it would be more there is no
// instruction, since none is longer.
Layout layout_of(const uint8_t* bytes);

// The size of the displacement that ModRM and SIB ask for.
constexpr int displacement_size(const uint8_t* modrm) {
  int mod = *modrm >> 6;
  int rm = *modrm & 7;
  if (mod == 1) return 1;
  if (mod == 2) return 4;
  if (mod == 3) return 0;
  return rm == 5 || (rm == 4 && (modrm[1] & 7) == 5) ? 4 : 0;
}

// The size of the immediate behind an opcode of the one-byte map (0) or the 0F map (1) in the usual case: without a prefix
// that changes it, and without one that only some instructions of a group have.
constexpr unsigned usual_immediate(int map, int op) {
  if (map == 1) {
    bool byte =
        (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 || (op >= 0xc4 && op <= 0xc6);
    return byte ? 1 : (op & 0xf0) == 0x80 ? 4 : 0;
  }
  bool arithmetic = op < 0x40 && (op & 7) >= 4;
  if (arithmetic) return (op & 7) == 4 ? 1 : (op & 7) == 5 ? 4 : 0;
  bool byte = op == 0x6a || op == 0x6b || (op & 0xf0) == 0x70 || op == 0x80 || op == 0x83 || op == 0xa8 ||
              (op & 0xf8) == 0xb0 || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xcd || (op & 0xf8) == 0xe0 ||
              op == 0xeb;
  bool four =
      op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || (op & 0xf8) == 0xb8 || op == 0xc7 || op == 0xe8 || op == 0xe9;
  return byte ? 1 : four ? 4 : op == 0xc2 ? 2 : 0;
}

}  // namespace weir::x86
