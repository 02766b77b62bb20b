// operands_list CODE: instructions of all opcode maps, with random operands, for another disassembler. Writes their bytes to the file
// CODE, 32 bytes apart and nops between them, and what is told of the operand that each encodes to stdout, a line an instruction:
//
//   offset length size extent base index scale displacement segment     numbers of registers; -1: none, 16: rip
#include <fmt/format.h>

#include <fstream>
#include <random>
#include <string>

#include "x86/operands.h"

using namespace weir;
using namespace weir::x86;

namespace {

constexpr size_t distance = 32;

class List {
 public:
  explicit List(const char* path) : code_(path, std::ios::binary) {}

  // All opcodes behind prefixes and escapes.
  void add_opcodes(const std::string& opening) {
    for (int opcode = 0; opcode < 256; ++opcode)
      for (int sample = 0; sample < 4; ++sample) {
        std::string bytes = opening + static_cast<char>(opcode) + static_cast<char>(random_() & 0xbf);
        while (bytes.size() < distance) bytes += static_cast<char>(random_());
        add(bytes);
      }
  }

  char random_bits(int mask) { return static_cast<char>(random_() & mask); }

 private:
  void add(std::string bytes) {
    auto view = std::as_bytes(std::span(bytes)).first(15);
    Insn insn = decode(view, AppPc{offset_});
    if (!insn.shape->known) return;
    for (const MemoryOperand& o : memory_operands(insn, view)) {
      if (o.is_implicit || o.access == Access::None) continue;
      bytes.replace(insn.shape->length, bytes.npos, distance - insn.shape->length, '\x90');
      code_ << bytes;
      auto number = [](uint8_t n) { return n == no_register ? -1 : int{n}; };
      int64_t displacement = o.wraps_at_32_bits ? static_cast<uint32_t>(o.displacement) : o.displacement;
      fmt::print("{} {} {} {} {} {} {} {} {}\n", offset_, insn.shape->length,
                 o.extent == Extent::Indexed ? o.element : o.size, static_cast<int>(o.extent),
                 o.is_rip_relative ? 16 : number(o.base), number(o.index), o.scale, displacement,
                 static_cast<int>(o.segment));
      offset_ += distance;
    }
  }

  std::ofstream code_;
  std::mt19937_64 random_{11};
  size_t offset_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "usage: {} CODE\n", argv[0]), 2;
  List list(argv[1]);
  for (const char* prefixes :
       {"", "\x48", "\x66", "\xf2", "\xf3", "\x66\x48", "\xf3\x48", "\xf2\x4d", "\x67", "\x67\x43", "\x64", "\x65"})
    for (const char* map : {"", "\x0f", "\x0f\x38", "\x0f\x3a"}) list.add_opcodes(std::string(prefixes) + map);
  for (int map : {1, 2, 3, 8, 9, 10})
    for (int w_l_pp = 0; w_l_pp < 16; w_l_pp += map < 8 ? 1 : 4)
      for (int vvvv : {15, 6}) {
        char first = static_cast<char>(list.random_bits(0xe0) | map);
        list.add_opcodes(
            {map < 8 ? '\xc4' : '\x8f', first, static_cast<char>((w_l_pp & 8) << 4 | vvvv << 3 | (w_l_pp & 7))});
      }
  for (int map : {1, 2, 3, 5, 6})
    for (int w_pp = 0; w_pp < 8; ++w_pp)
      for (int length_b = 0; length_b < 6; ++length_b)
        for (int mask : {0, 3})
          for (int vvvv : {15, 6}) {
            char first = static_cast<char>(list.random_bits(0xf0) | map);
            char second = static_cast<char>((w_pp & 4) << 5 | vvvv << 3 | 4 | (w_pp & 3));
            list.add_opcodes({'\x62', first, second, static_cast<char>(length_b << 4 | 8 | mask)});
          }
}
