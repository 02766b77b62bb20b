// Memory operands against the processor.
//
// An instruction runs with one of its operands at an edge of a small region of memory, or in memory that may only be read.
//
//   It must fault exactly when a byte that is told lies outside (or is written there), at such a byte, and as read or write as told.
//   Where it does not fault, it has changed nothing but bytes that are told to be written.
//
// Instructions come from the libraries of this machine, and from all opcode maps with random operands.
#include <Zydis/Zydis.h>
#include <asm/prctl.h>
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "accesses.h"
#include "run_instruction.h"
#include "x86/operands.h"

namespace weir::x86 {
namespace {

constexpr uint64_t region = 0x0a000000, region_size = 0x4000;  // around it is nothing
constexpr uint64_t constant_region = 0x0b000000;               // zeros that cannot be written
constexpr uint64_t around = 0x100000;
constexpr uint64_t gs_base = 0x1000;
constexpr uint64_t largest_state = 0xb00;  // of xsave, with AVX-512 and keys

bool is_inside(uint64_t begin, const Bytes& b) { return b.address >= begin && b.address + b.size <= begin + region_size; }
bool is_near(uint64_t begin, const Bytes& b) {
  return b.address >= begin - around && b.address + b.size <= begin + region_size + around;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (std::byte b : bytes) hex += fmt::format("{:02x} ", std::to_integer<int>(b));
  return hex;
}

// What is told of one instruction on one state.
struct Told {
  const MemoryOperand* operand;
  Bytes bytes;
  bool is_certain;  // all of it is accessed
};

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    static const bool ready = set_up_memory() && runner_.set_up();
    if (!ready) GTEST_SKIP() << "the addresses of the test are taken";
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    syscall(SYS_arch_prctl, ARCH_SET_GS, gs_base);
  }

  static bool set_up_memory() {
    for (uint64_t begin : {region, constant_region}) {
      void* wanted = reinterpret_cast<void*>(begin - around);
      constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
      if (mmap(wanted, region_size + 2 * around, PROT_NONE, flags, -1, 0) != wanted) return false;
      mprotect(reinterpret_cast<void*>(begin), region_size, begin == region ? PROT_READ | PROT_WRITE : PROT_READ);
    }
    return true;
  }

  // Returns whether the processor knows it, and some trial has said something.
  bool try_instruction(std::span<const std::byte> bytes, int trials) {
    Insn insn = decode(bytes, AppPc{InstructionRunner::code_page});
    const Shape& shape = *insn.shape;
    if (!shape.known || shape.operand_count() == 0 || shape.uses_fs) return false;
    ZydisDecodedInstruction z;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, bytes.data(), bytes.size(), &z, operands))) return false;
    if (!can_be_tried(shape, z, {operands, z.operand_count})) return false;
    name_ = ZydisMnemonicGetString(z.mnemonic);
    bool judged = false;
    for (int trial = 0; trial < trials; ++trial) {
      std::copy_n(bytes.begin(), shape.length, code_);
      switch (try_once(shape, trial)) {
        case Verdict::Unknown: return false;
        case Verdict::Judged: judged = true, ++judged_[name_]; break;
        case Verdict::Open: break;
        case Verdict::Wrong: return true;
      }
    }
    return judged;
  }

  enum class Verdict { Judged, Open, Unknown, Wrong };

  static bool can_be_tried(const Shape& shape, const ZydisDecodedInstruction& z,
                           std::span<const ZydisDecodedOperand> operands) {
    // The kernel emulates what tells of its tables (UMIP).
    static const std::set<std::string> excluded = {"sgdt", "sidt", "sldt", "str", "smsw"};
    bool goes_on = shape.kind == Kind::Plain || shape.kind == Kind::Call || shape.kind == Kind::CallIndirect ||
                   shape.kind == Kind::JumpIndirect || shape.kind == Kind::Return;
    if (!goes_on || excluded.contains(ZydisMnemonicGetString(z.mnemonic))) return false;
    // Of two bytes on AMD's processors; Intel's, and operands.h, ignore the prefix.
    bool is_short_transfer = shape.kind != Kind::Plain && z.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE;
    if (is_short_transfer) return false;
    for (const ZydisDecodedOperand& op : operands) {
      bool is_written = op.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
      if (op.type != ZYDIS_OPERAND_TYPE_REGISTER || !is_written) continue;
      if (ZydisRegisterGetClass(op.reg.value) == ZYDIS_REGCLASS_SEGMENT) return false;  // %fs is the test's own
    }
    return true;
  }

  Verdict try_once(const Shape& shape, int trial) {
    std::span<std::byte> bytes{code_, shape.length};
    // A call to what stands behind it. enter faults also where its frame would end on memory that cannot be written.
    if (shape.kind == Kind::Call) std::fill_n(bytes.begin() + shape.imm_offset, shape.imm_size, std::byte{});
    if (name_ == "enter") std::fill_n(bytes.begin() + shape.imm_offset, 2, std::byte{});
    MemoryOperands all = operands_of(bytes);
    const MemoryOperand& target = all[random_() % all.size()];
    for (const MemoryOperand& o : all)
      if (o.access == Access::None || o.extent == Extent::Rows) return Verdict::Open;
    bool needs_vectors =
        std::ranges::any_of(all, [](auto& o) { return o.mask_in != MaskIn::Nothing || o.extent == Extent::Indexed; });
    if (needs_vectors && !trial_avx512) return Verdict::Open;
    if (std::ranges::any_of(all, [](auto& o) { return o.mask_in == MaskIn::Mmx; })) return Verdict::Open;

    choose_state(all, shape);
    bool is_constant = trial % 4 == 3;
    uint64_t begin = is_constant ? constant_region : region;
    if (!put(target, bytes, shape, begin, is_constant)) return Verdict::Open;
    return judge(shape, bytes);
  }

  MemoryOperands operands_of(std::span<const std::byte> bytes) const {
    return memory_operands(decode(bytes, AppPc{InstructionRunner::code_page}), bytes);
  }

  // Pointers to the middle of the region, small indices, any mask.
  void choose_state(const MemoryOperands& all, const Shape& shape) {
    State& s = state_;
    for (uint64_t& r : s.gpr) r = middle() + random_() % 64;
    if (shape.rep) s.gpr[RCX] = random_() % 40;
    s.flags = 0x202 | (random_() & 0x8d5) | (random_() % 2 ? 0x400 : 0);
    for (uint64_t& k : s.mask) k = random_() & random_();
    for (const MemoryOperand& o : all) {
      if (o.mask_in == MaskIn::Vector)
        for (int i = 0; i < 64; i += 8) {
          uint64_t value = random_();
          memcpy(s.vec[o.mask] + i, &value, 8);
        }
      if (o.extent == Extent::Indexed)
        for (int i = 0; i < 64; i += o.index_size) {
          int64_t index = static_cast<int64_t>(random_() % 400) - 200;
          memcpy(s.vec[o.index] + i, &index, o.index_size);
        }
      else if (o.index_size == 1) s.gpr[RAX] = random_();
      else if (o.index != no_register) s.gpr[o.index] = random_() % 128 - 64;
      if (o.bit_offset != no_register) {
        unsigned bits = 8 * o.size;
        uint64_t garbage = bits == 64 ? 0 : random_() << bits;
        s.gpr[o.bit_offset] =
            ((random_() % 4096 - 2048) & (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1)) | garbage;
      }
    }
  }

  uint64_t middle() const { return region + region_size / 2; }

  // Moves the operand to an edge of the region, or into the middle; a little too far, or not.
  bool put(const MemoryOperand& o, std::span<std::byte> code, const Shape& shape, uint64_t begin, bool to_middle) {
    State& s = state_;
    auto told = bytes_of(o, registers());
    if (told.empty() && o.extent == Extent::Indexed) return true;
    if (told.empty()) told.push_back(whole_of(o));
    const Bytes& at = told[random_() % told.size()];
    constexpr int64_t steps[] = {0, 0, 1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64};
    int64_t step = steps[random_() % std::size(steps)];
    int64_t wanted = to_middle       ? static_cast<int64_t>(begin + region_size / 2)
                     : random_() % 2 ? static_cast<int64_t>(begin) + step
                                     : static_cast<int64_t>(begin + region_size - at.size) + step;
    int64_t by = wanted - static_cast<int64_t>(at.address);
    if (o.base != no_register && o.base != o.index) {
      s.gpr[o.base] += static_cast<uint64_t>(by);
      bool is_shared = o.bit_offset == o.base || (o.base == RCX && shape.rep);
      if (o.wraps_at_32_bits && !is_shared) s.gpr[o.base] = static_cast<uint32_t>(s.gpr[o.base]) | random_() << 32;
      return true;
    }
    if (shape.disp_size != 4 || o.is_implicit) return false;
    int32_t displacement;
    memcpy(&displacement, &code[shape.disp_offset], 4);
    displacement += static_cast<int32_t>(by);
    memcpy(&code[shape.disp_offset], &displacement, 4);
    return true;
  }

  // Without a mask.
  Bytes whole_of(MemoryOperand o) const {
    o.extent = Extent::Plain;
    return bytes_of(o, registers())[0];
  }

  const Registers& registers() const {
    static Registers r;
    std::ranges::copy(state_.gpr, r.gpr);
    std::ranges::copy(state_.mask, r.mask);
    memcpy(r.vec, state_.vec, sizeof r.vec);
    r.flags = state_.flags;
    r.gs = gs_base;
    return r;
  }

  std::vector<Told> all_told(const Shape& shape, const MemoryOperands& all) const {
    std::vector<Told> told;
    bool may_end = shape.rep && (name_.starts_with("cmps") || name_.starts_with("scas"));
    for (const MemoryOperand& o : all)
      for (Bytes b : bytes_of(o, registers())) {
        bool is_open = o.extent == Extent::State && o.size == 0;
        if (is_open) b.size = largest_state;
        if (b.size) told.push_back({&o, b, o.extent != Extent::State && !(may_end && b.size > o.size)});
      }
    return told;
  }

  Verdict judge(const Shape& shape, std::span<const std::byte> code) {
    MemoryOperands all = operands_of(code);
    std::vector<Told> told = all_told(shape, all);
    for (const Told& t : told)
      if (!is_near(region, t.bytes) && !is_near(constant_region, t.bytes)) return Verdict::Open;
    // What is jumped to and what flags are popped must be harmless.
    fill(shape.kind == Kind::Plain && !shape.sets_flags() ? noise_ : zeros_);
    runner_.load(code);
    Outcome outcome = runner_.run(state_);
    const char* wrong = clean(told) ? nullptr : "bytes are changed that are not told to be";
    // These may look at all of their bytes, whatever the mask says.
    if (name_.ends_with("maskmovdqu") || name_.starts_with("vextract")) told.push_back({&all[0], whole_of(all[0]), false});
    if (outcome.ended == Ended::Unknown) return Verdict::Unknown;
    if (!wrong && outcome.ended == Ended::Otherwise) return Verdict::Open;
    if (!wrong && outcome.ended == Ended::PageFault && !is_told(outcome, told))
      wrong = "it faults there, or in this direction";
    bool must_fault = std::ranges::any_of(told, [](const Told& t) { return t.is_certain && !is_allowed(t); });
    if (!wrong && outcome.ended != Ended::PageFault && must_fault) wrong = "it does not fault";
    if (!wrong) return Verdict::Judged;
    ADD_FAILURE() << fmt::format("{}: {} {}ended {} ({} at {:#x}), told:{}", wrong, name_, to_hex(code),
                                 static_cast<int>(outcome.ended), outcome.is_write ? "write" : "read", outcome.address,
                                 show(told));
    return Verdict::Wrong;
  }

  static bool is_allowed(const Told& t) {
    return is_inside(region, t.bytes) || (is_inside(constant_region, t.bytes) && !writes(t.operand->access));
  }

  // At a byte of an operand that may fault, in its direction.
  static bool is_told(const Outcome& outcome, const std::vector<Told>& told) {
    return std::ranges::any_of(told, [&](const Told& t) {
      bool contains = outcome.address >= t.bytes.address && outcome.address < t.bytes.address + t.bytes.size;
      bool fits = outcome.is_write ? writes(t.operand->access) : reads(t.operand->access);
      return contains && fits && !is_allowed(t);
    });
  }

  using Content = std::vector<uint8_t>;

  void fill(const Content& content) {
    if (content_ != &content) memcpy(reinterpret_cast<void*>(region), content.data(), region_size);
    content_ = &content;
  }

  // Makes the region what it was. False: it was changed where it is not told to be.
  bool clean(const std::vector<Told>& told) {
    for (const Told& t : told) {
      if (!writes(t.operand->access)) continue;
      uint64_t begin = std::max(t.bytes.address, region),
               end = std::min(t.bytes.address + t.bytes.size, region + region_size);
      if (begin < end) memcpy(reinterpret_cast<void*>(begin), content_->data() + (begin - region), end - begin);
    }
    bool is_clean = memcmp(reinterpret_cast<void*>(region), content_->data(), region_size) == 0;
    if (!is_clean) memcpy(reinterpret_cast<void*>(region), content_->data(), region_size);
    return is_clean;
  }

  static std::string show(const std::vector<Told>& told) {
    std::string text;
    for (const Told& t : told)
      text +=
          fmt::format(" {}{}+{}", reads(t.operand->access) ? "r" : "", writes(t.operand->access) ? "w" : "", t.bytes.size) +
          fmt::format("@{:#x}", t.bytes.address);
    return text;
  }

  std::mt19937_64 random_{3};
  const Content zeros_ = Content(region_size);
  const Content noise_ = [this] {
    Content bytes(region_size);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random_());
    return bytes;
  }();
  const Content* content_ = nullptr;  // of the region
  State state_{};
  InstructionRunner runner_;
  ZydisDecoder decoder_;
  std::byte code_[16];
  std::string name_;
  std::map<std::string, size_t> judged_;
};

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

TEST_F(Faults, OfTheInstructionsInLibraries) {
  std::set<const Shape*> seen;
  size_t tried = 0, with_operands = 0;
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                           "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/python3"}) {
    std::string text = text_of(path);
    for (size_t offset = 0; offset < text.size();) {
      auto bytes = std::as_bytes(std::span(text)).subspan(offset);
      const Shape& shape = *decode(bytes, {}).shape;
      offset += std::max<size_t>(shape.length, 1);
      if (!shape.known || shape.operand_count() == 0 || !seen.insert(&shape).second) continue;
      ++with_operands;
      tried += try_instruction(bytes.first(shape.length), 8);
      if (HasFailure()) FAIL();
    }
  }
  EXPECT_GT(tried, with_operands * 9 / 10);
}

// The opcodes behind each opening, with any operands.
class EveryOpcode : public Faults {
 protected:
  void try_opcodes(const std::string& opening, int samples) {
    for (int opcode = 0; opcode < 256; ++opcode)
      for (int sample = 0; sample < samples && !HasFailure(); ++sample) {
        std::string code = opening + static_cast<char>(opcode);
        // Memory, memory by a SIB (gathers have no other form), any, registers.
        uint64_t modrm = sample % 4 == 0 ? random_() & 0xbf : sample % 4 == 1 ? (random_() & 0xb8) | 4 : random_();
        code += static_cast<char>(sample % 4 == 3 ? modrm | 0xc0 : modrm);
        while (code.size() < 16) code += static_cast<char>(random_());
        auto bytes = std::as_bytes(std::span(code)).first(15);
        const Shape& shape = *decode(bytes, {}).shape;
        if (shape.length) try_instruction(bytes.first(shape.length), 6);
      }
  }
};

TEST_F(EveryOpcode, Legacy) {
  for (const char* prefix : {"", "\x48", "\x66", "\xf2", "\xf3", "\x66\x48", "\xf3\x48", "\xf2\x4d", "\x67", "\x67\x43",
                             "\xf3\x67\x45", "\xf2\x67", "\x65", "\xf0"})
    for (const char* map : {"", "\x0f", "\x0f\x38", "\x0f\x3a"}) try_opcodes(std::string(prefix) + map, 16);
  EXPECT_GT(judged_.size(), 300u);
}

TEST_F(EveryOpcode, Vex) {
  for (char map : {1, 2, 3})
    for (int w_l_pp = 0; w_l_pp < 16; ++w_l_pp)
      for (int vvvv : {15, 6}) {
        char first = static_cast<char>((random_() & 0xe0) | map);
        char second = static_cast<char>((w_l_pp & 8) << 4 | vvvv << 3 | (w_l_pp & 7));
        try_opcodes({'\xc4', first, second}, 12);
      }
  EXPECT_GT(judged_.size(), 300u);
}

TEST_F(EveryOpcode, Evex) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512";
  for (char map : {1, 2, 3, 5, 6})
    for (int w_pp = 0; w_pp < 8; ++w_pp)
      for (int length_b = 0; length_b < 6; ++length_b)
        for (int mask : {0, 3})
          for (int vvvv : {15, 6}) {
            char first = static_cast<char>((random_() & 0xf0) | map);
            char second = static_cast<char>((w_pp & 4) << 5 | vvvv << 3 | 4 | (w_pp & 3));
            char third = static_cast<char>(length_b << 4 | 8 | mask | (mask && random_() % 2 ? 0x80 : 0));
            try_opcodes({'\x62', first, second, third}, 6);
          }
  EXPECT_GT(judged_.size(), 400u);
}

// They have few valid forms: a SIB, a mask, three registers that differ.
TEST_F(EveryOpcode, Gathers) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512";
  auto try_form = [&](std::string opening, int opcode) {
    for (int sample = 0; sample < 40 && !HasFailure(); ++sample) {
      std::string code = opening + static_cast<char>(opcode) + static_cast<char>((random_() & 0xb8) | 4);
      while (code.size() < 16) code += static_cast<char>(random_());
      auto bytes = std::as_bytes(std::span(code)).first(15);
      if (size_t length = decode(bytes, {}).shape->length) try_instruction(bytes.first(length), 6);
    }
  };
  for (int w : {0, 0x80}) {
    for (int length : {0x00, 0x20, 0x40})
      for (int opcode : {0x90, 0x91, 0x92, 0x93, 0xa0, 0xa1, 0xa2, 0xa3})
        try_form({'\x62', static_cast<char>(0xf2 & ~(random_() & 0xf0)), static_cast<char>(w | 0x7d),
                  static_cast<char>(length | 8 | 3)},
                 opcode);
    for (int length : {0, 4})
      for (int opcode : {0x90, 0x91, 0x92, 0x93}) try_form({'\xc4', '\xe2', static_cast<char>(w | 0x49 | length)}, opcode);
  }
  EXPECT_EQ(judged_.size(), 16u);
}

}  // namespace
}  // namespace weir::x86
