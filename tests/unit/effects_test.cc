// Shape::reads, writes and kills against the processor: instructions are taken from the libraries of this machine, and run.
//
//   writes: what has changed behind an instruction is written.
//   reads:  with everything else changed before it, what it writes is the same.
//   kills:  with everything changed before it that is not read, what it kills is the same.
//
// An instruction runs on a state of its own: its addresses fall into a region whose pages all have the same random content,
// the flags, the general registers and, with AVX-512, the vector and mask registers are random. One that faults proves
// nothing and is left out; so are those that would reach beyond that state.
#include <Zydis/Zydis.h>
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <vector>

#include "run_instruction.h"
#include "x86/insn.h"

namespace weir::x86 {
namespace {

constexpr uint64_t base = 0x0a000000;  // general registers are base plus less than 64 KiB
constexpr size_t margin = 0x10000, cluster_size = 0x100000;
// What base + index * scale can be, in multiples of `base`.
constexpr uint64_t clusters[] = {1, 2, 3, 4, 5, 8, 9};

class Machine {
 public:
  // False where the addresses are not free.
  bool set_up() {
    int pattern = memfd_create("pattern", 0);
    std::vector<uint64_t> content(cluster_size / 8);
    for (uint64_t& word : content) word = random_();
    if (write(pattern, content.data(), cluster_size) != static_cast<ssize_t>(cluster_size)) return false;
    constexpr int fixed = MAP_PRIVATE | MAP_FIXED_NOREPLACE;
    for (uint64_t m : clusters) {
      void* at = reinterpret_cast<void*>(m * base - margin);
      if (mmap(at, cluster_size, PROT_READ | PROT_WRITE, fixed, pattern, 0) != at) return false;
    }
    close(pattern);
    return runner_.set_up();
  }

  // The instruction, with zeros as displacement; [rip+disp32] is made to lie in the first cluster.
  void load(std::span<const std::byte> bytes, const Shape& shape) {
    uint8_t code[32] = {};
    memcpy(code, bytes.data(), shape.length);
    int32_t displacement = static_cast<int32_t>(base) - static_cast<int32_t>(trial_code + shape.length);
    memset(code + shape.disp_offset, 0, shape.disp_size);
    if (shape.rip_relative) memcpy(code + shape.disp_offset, &displacement, 4);
    runner_.load(std::as_bytes(std::span(code)).first(shape.length));
    touches_memory_ = shape.reads_memory || shape.writes_memory;
  }

  // The state behind the instruction; false: it faults.
  bool run(const State& before, State& after) {
    for (uint64_t m : clusters)
      if (touches_memory_) madvise(reinterpret_cast<void*>(m * base - margin), cluster_size, MADV_DONTNEED);
    if (runner_.run(before).ended != Ended::Behind) return false;
    after = trial_after;
    return true;
  }

  // Round 0 is aligned, as much of SSE wants it; in round 1 vectors hold small integers, as gathers want them.
  State random_state(int round, const Shape& shape) {
    State s;
    for (uint64_t& r : s.gpr) r = base + (random_() & (round == 0 ? 0xffc0 : 0xffff));
    if (round == 2) s.gpr[RDX] = 0;  // for div
    if (shape.rep) s.gpr[RCX] = random_() % 4;
    s.flags = random_flags();
    for (uint64_t& k : s.mask) k = random_();
    fill_vectors(s, ~0u, round == 1 ? 0xffff0000ffff : ~0ull);
    return s;
  }

  // Other values in the registers of the set.
  void change(State& s, RegSet set) {
    for (int i = 0; i < 16; ++i)
      if (set.gpr >> i & 1) s.gpr[i] = random_();
    for (int i = 0; i < 8; ++i)
      if (set.mask >> i & 1) s.mask[i] = random_();
    uint64_t flags = hardware_flags(set.flags);
    s.flags = (s.flags & ~flags) | (~s.flags & flags);
    fill_vectors(s, set.vec, ~0ull);
  }

  static uint64_t hardware_flags(uint8_t f) {
    return (f & CF ? 1 : 0) | (f & PF ? 4 : 0) | (f & AF ? 0x10 : 0) | (f & ZF ? 0x40 : 0) | (f & SF ? 0x80 : 0) |
           (f & DF ? 0x400 : 0) | (f & OF ? 0x800 : 0);
  }

 private:
  uint64_t random_flags() {
    return 0x202 | (random_() & hardware_flags(AllFlags & ~DF)) | (random_() % 4 == 0 ? 0x400 : 0);
  }

  void fill_vectors(State& s, uint32_t which, uint64_t values) {
    for (int i = 0; trial_avx512 && i < 32; ++i)
      for (int k = 0; which >> i & 1 && k < 64; k += 8) {
        uint64_t value = random_() & values;
        memcpy(s.vec[i] + k, &value, 8);
      }
  }

  std::mt19937_64 random_{11};
  InstructionRunner runner_;
  bool touches_memory_ = false;
};

RegSet difference(const State& x, const State& y) {
  RegSet set;
  for (int i = 0; i < 16; ++i) set.gpr |= (x.gpr[i] != y.gpr[i]) << i;
  for (uint8_t f = 1; f < AllFlags; f <<= 1)
    if ((x.flags ^ y.flags) & Machine::hardware_flags(f)) set.flags |= f;
  if (!trial_avx512) return set;
  for (int i = 0; i < 8; ++i) set.mask |= (x.mask[i] != y.mask[i]) << i;
  for (int i = 0; i < 32; ++i) set.vec |= static_cast<uint32_t>(memcmp(x.vec[i], y.vec[i], 64) != 0) << i;
  return set;
}

// What runs would leave out, or would harm the test itself: other state, other results each time, waiting.
bool can_be_tried(const ZydisDecodedInstruction& z, std::span<const ZydisDecodedOperand> operands, const Shape& shape) {
  static const std::set<std::string> excluded = {
      "wrpkru", "ldmxcsr",  "vldmxcsr", "popf",      "popfd",    "popfq",      "rdtsc",  "rdtscp",
      "rdrand", "rdseed",   "rdpmc",    "rdpid",     "rdpru",    "cpuid",      "mwaitx", "monitorx",
      "umwait", "umonitor", "tpause",   "ldtilecfg", "fxrstor",  "fxrstor64",  "xrstor", "xrstor64",
      "xsave",  "xsave64",  "xsavec",   "xsavec64",  "xsaveopt", "xsaveopt64", "fxsave", "fxsave64"};
  if (shape.kind != Kind::Plain || shape.uses_fs || shape.uses_gs) return false;
  if (excluded.contains(ZydisMnemonicGetString(z.mnemonic)) || z.meta.isa_ext == ZYDIS_ISA_EXT_X87) return false;
  for (const ZydisDecodedOperand& op : operands) {
    if (op.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    ZydisRegisterClass c = ZydisRegisterGetClass(op.reg.value);
    if (c == ZYDIS_REGCLASS_MMX || c == ZYDIS_REGCLASS_X87 || c == ZYDIS_REGCLASS_SEGMENT) return false;
  }
  return true;
}

std::string show(RegSet s) {
  return fmt::format("gpr {:04x} flags {:02x} mask {:02x} vec {:08x}", s.gpr, s.flags, s.mask, s.vec);
}

class Effects : public testing::Test {
 protected:
  void SetUp() override {
    static const bool ready = machine_.set_up();
    if (!ready) GTEST_SKIP() << "the addresses of the test are taken";
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  // Returns whether it could be tried.
  bool try_instruction(std::span<const std::byte> bytes, const Shape& shape) {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, bytes.data(), bytes.size(), &z, operands))) return false;
    if (!can_be_tried(z, {operands, z.operand_count}, shape)) return false;
    RegSet undefined;
    for (uint8_t f = 1; f < AllFlags; f <<= 1)
      if (z.cpu_flags && z.cpu_flags->undefined & Machine::hardware_flags(f)) undefined.flags |= f;
    machine_.load(bytes, shape);
    bool tried = false;
    for (int round = 0; round < 3; ++round) tried |= try_once(shape, undefined, round, ZydisMnemonicGetString(z.mnemonic));
    return tried;
  }

  bool try_once(const Shape& shape, RegSet undefined, int round, const char* name) {
    State before = machine_.random_state(round, shape), after, other;
    if (!machine_.run(before, after)) return false;
    RegSet changed = difference(before, after);
    EXPECT_EQ(show(changed.without(shape.writes)), show({})) << name << ": written";
    RegSet not_read = RegSet::all().without(shape.reads);
    RegSet kept = shape.writes.without(shape.kills);
    State again = before;
    machine_.change(again, not_read.without(kept));
    EXPECT_TRUE(machine_.run(again, other)) << name << ": faults when what it does not read is changed";
    EXPECT_EQ(show((difference(after, other) & shape.writes).without(undefined)), show({})) << name << ": read";
    again = before;
    machine_.change(again, not_read);
    EXPECT_TRUE(machine_.run(again, other)) << name << ": faults when what it does not read is changed";
    EXPECT_EQ(show((difference(after, other) & shape.kills).without(undefined)), show({})) << name << ": not killed";
    return true;
  }

  Machine machine_;
  ZydisDecoder decoder_;
};

std::string to_hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (std::byte b : bytes) hex += fmt::format("{:02x} ", std::to_integer<int>(b));
  return hex;
}

std::string text_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(file), {}};
  Elf64_Ehdr header;
  if (image.size() < sizeof header) return {};
  memcpy(&header, image.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  memcpy(sections.data(), image.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& s : sections)
    if (std::string(image.data() + sections[header.e_shstrndx].sh_offset + s.sh_name) == ".text")
      return image.substr(s.sh_offset, s.sh_size);
  return {};
}

TEST_F(Effects, OfTheInstructionsInLibraries) {
  std::set<const Shape*> seen;
  size_t tried = 0;
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"}) {
    std::string text = text_of(path);
    for (size_t offset = 0; offset < text.size();) {
      auto bytes = std::as_bytes(std::span(text)).subspan(offset);
      const Shape& shape = *decode(bytes, {}).shape;
      offset += std::max<size_t>(shape.length, 1);
      if (!shape.known || !seen.insert(&shape).second) continue;
      tried += try_instruction(bytes, shape);
      if (HasFailure()) FAIL() << to_hex(bytes.first(shape.length));
    }
  }
  EXPECT_GT(tried, seen.size() / 2);
}

// All opcodes of all maps, with random operands.
TEST_F(Effects, OfEveryOpcode) {
  std::vector<std::string> openings;
  for (const char* prefix : {"", "\x48", "\x66", "\xf2", "\xf3", "\x66\x48"})
    for (const char* map : {"", "\x0f", "\x0f\x38", "\x0f\x3a"}) openings.push_back(std::string(prefix) + map);
  std::mt19937_64 random(5);
  auto random_byte = [&] { return static_cast<char>(random()); };
  // VEX.W, vvvv, L, pp; EVEX also z, b, V', aaa: random, but for bit 2 of its second byte, which is always set.
  for (int sample = 0; sample < 16; ++sample) {
    for (char map : {'\xe1', '\xe2', '\xe3'}) openings.push_back({'\xc4', map, random_byte()});
    for (char map : {'\xf1', '\xf2', '\xf3'})
      openings.push_back({'\x62', map, static_cast<char>(random_byte() | 4), static_cast<char>(random_byte() | 8)});
  }
  size_t tried = 0;
  for (const std::string& opening : openings)
    for (int opcode = 0; opcode < 256; ++opcode)
      for (int sample = 0; sample < 6; ++sample) {
        std::string code = opening + static_cast<char>(opcode);
        while (code.size() < 24) code += random_byte();
        auto bytes = std::as_bytes(std::span(code));
        const Shape& shape = *decode(bytes, {}).shape;
        tried += shape.known && try_instruction(bytes, shape);
        if (HasFailure()) FAIL() << to_hex(bytes.first(shape.length));
      }
  EXPECT_GT(tried, 5000u);
}

}  // namespace
}  // namespace weir::x86
