// The decoder against Zydis: on the code of this machine, on random bytes, and against a table of what instructions do.
#include <Zydis/Zydis.h>
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "x86/decode_ahead.h"
#include "x86/insn.h"
#include "x86/shape.h"
#include "x86/slot.h"

namespace weir::x86 {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += hex[i + 2 < hex.size() ? i + 2 : i] == ' ' ? 3 : 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

Insn decode_hex(const std::string& hex, AppPc pc = {0x1000}) { return decode(from_hex(hex), pc); }

std::string to_hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (std::byte b : bytes) hex += fmt::format("{:02x} ", std::to_integer<int>(b));
  return hex;
}

struct Zydis {
  ZydisDecoder decoder;
  ZydisDecodedInstruction insn;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  Zydis() { ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }
  // jkzd and jknzd exist on the Xeon Phi's predecessor only.
  bool decode(std::span<const std::byte> bytes) {
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &insn, operands)) &&
           insn.mnemonic != ZYDIS_MNEMONIC_JKZD && insn.mnemonic != ZYDIS_MNEMONIC_JKNZD;
  }
};

// Is it what it should be, without the memo: from the instruction's own bytes? (Where its operands are kept is not compared.)
bool is_fresh_shape(Shape shape, std::span<const std::byte> bytes) {
  uint8_t padded[16] = {};
  memcpy(padded, bytes.data(), std::min<size_t>(bytes.size(), 15));
  MadeShape fresh = make_shape(padded, layout_of(padded));
  bool same_count = shape.operand_count() == fresh.operands.size();
  shape.operands = 0;
  return same_count && shape == fresh.shape;
}

// %gs is loaded, or in an operand that is implied, has no ModRM, or a 32-bit address.
bool has_odd_gs(const Zydis& z) {
  for (const ZydisDecodedOperand& op : std::span(z.operands, z.insn.operand_count)) {
    bool writes = op.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    if (op.type == ZYDIS_OPERAND_TYPE_REGISTER && op.reg.value == ZYDIS_REGISTER_GS && writes) return true;
    bool has_form = z.insn.attributes & ZYDIS_ATTRIB_HAS_MODRM || z.insn.mnemonic == ZYDIS_MNEMONIC_MOV;
    bool plain = op.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT && has_form && z.insn.address_width == 64;
    if (op.type == ZYDIS_OPERAND_TYPE_MEMORY && op.mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
        op.mem.segment == ZYDIS_REGISTER_GS && !plain)
      return true;
  }
  return false;
}

Kind expected_kind(const Zydis& z) {
  std::string name = ZydisMnemonicGetString(z.insn.mnemonic);
  bool direct = z.operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  bool pops_rip =
      name == "iretq" || (name == "ret" && z.insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && z.insn.opcode == 0xcb);
  if (pops_rip && z.insn.raw.rex.W) return Kind::FarReturn;
  if (z.insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || name.starts_with("iret") || name.starts_with("sysenter") ||
      name.starts_with("sysexit") || name.starts_with("sysret") || name == "uiret" || name == "xbegin")
    return Kind::Far;
  if (name == "syscall") return Kind::Syscall;
  if (name == "call") return direct ? Kind::Call : Kind::CallIndirect;
  if (name == "jmp") return direct ? Kind::Jump : Kind::JumpIndirect;
  if (name == "ret") return Kind::Return;
  if (name[0] == 'j' || name.starts_with("loop")) return Kind::Branch;
  if (name.starts_with("int") || name.starts_with("ud") || name == "hlt") return Kind::Trap;
  return has_odd_gs(z) && name != "nop" ? Kind::Far : Kind::Plain;
}

AppPc expected_target(const Zydis& z, AppPc pc) {
  if (z.insn.mnemonic == ZYDIS_MNEMONIC_XBEGIN) return {};
  for (int i = 0; i < z.insn.operand_count; ++i) {
    const ZydisDecodedOperand& op = z.operands[i];
    bool relative = op.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op.imm.is_relative;
    bool rip =
        op.type == ZYDIS_OPERAND_TYPE_MEMORY && (op.mem.base == ZYDIS_REGISTER_RIP || op.mem.base == ZYDIS_REGISTER_EIP);
    uint64_t address = 0;
    if ((relative || rip) && ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&z.insn, &op, pc.value, &address))) return {address};
  }
  return {};
}

bool subset(RegSet a, RegSet b) { return a.without(b) == RegSet{}; }

std::vector<std::byte> text_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(file), {}};
  auto at = [&](size_t offset) { return image.data() + offset; };
  Elf64_Ehdr header;
  if (image.size() < sizeof header) return {};
  memcpy(&header, at(0), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  memcpy(sections.data(), at(header.e_shoff), sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& s : sections)
    if (std::string(at(sections[header.e_shstrndx].sh_offset + s.sh_name)) == ".text") {
      auto* begin = reinterpret_cast<const std::byte*>(at(s.sh_offset));
      return {begin, begin + s.sh_size};
    }
  return {};
}

class DecodeText : public testing::TestWithParam<const char*> {};

TEST_P(DecodeText, AgreesWithZydis) {
  std::vector<std::byte> text = text_of(GetParam());
  if (text.empty()) GTEST_SKIP() << GetParam() << " is not here";
  Zydis z;
  size_t unknown = 0, count = 0;
  for (size_t offset = 0; offset < text.size(); ++count) {
    auto bytes = std::span<const std::byte>(text).subspan(offset);
    AppPc pc{0x400000 + offset};
    Insn insn = decode(bytes, pc);
    SCOPED_TRACE(to_hex(bytes.first(std::min<size_t>(bytes.size(), 15))));
    if (!z.decode(bytes)) {
      ASSERT_FALSE(insn.shape->known);
      ++unknown;
      offset += std::max<size_t>(insn.shape->length, 1);
      continue;
    }
    ASSERT_TRUE(insn.shape->known);
    ASSERT_EQ(insn.shape->length, z.insn.length);
    ASSERT_EQ(insn.kind(), expected_kind(z));
    ASSERT_EQ(insn.target, expected_target(z, pc));
    ASSERT_TRUE(is_fresh_shape(*insn.shape, bytes));
    ASSERT_TRUE(subset(insn.shape->kills, insn.shape->writes));
    offset += z.insn.length;
  }
  EXPECT_LT(unknown, count / 20);  // data between functions, in libcrypto
}

INSTANTIATE_TEST_SUITE_P(Files, DecodeText,
                         testing::Values("/bin/bash", "/usr/lib/x86_64-linux-gnu/libc.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/python3"));

// Random bytes, half of them behind bytes that lead into the less common parts of the encoding.
class Fuzz {
 public:
  std::span<const std::byte> next() {
    static const std::vector<std::string> openings = {"66",
                                                      "67",
                                                      "f2",
                                                      "f3",
                                                      "f0",
                                                      "2e",
                                                      "64",
                                                      "48",
                                                      "41",
                                                      "4f",
                                                      "0f",
                                                      "0f 38",
                                                      "0f 3a",
                                                      "66 0f",
                                                      "f3 0f",
                                                      "f2 48 0f",
                                                      "c4",
                                                      "c5",
                                                      "c4 e1",
                                                      "c4 e2",
                                                      "c4 e3",
                                                      "62",
                                                      "62 f1",
                                                      "62 f2",
                                                      "62 f3",
                                                      "62 f5",
                                                      "62 f6",
                                                      "8f",
                                                      "8f e8",
                                                      "8f e9",
                                                      "8f ea",
                                                      "0f 0f",
                                                      "0f 01",
                                                      "0f ae",
                                                      "0f c7",
                                                      "f6",
                                                      "f7",
                                                      "ff",
                                                      "c7 f8",
                                                      "66 66 2e 0f 1f",
                                                      "66 66 66 66 66 66 66 2e",
                                                      "0f 20"};
    static const std::vector<std::vector<std::byte>> begins = [] {
      std::vector<std::vector<std::byte>> all;
      for (const std::string& hex : openings) all.push_back(from_hex(hex));
      return all;
    }();
    for (size_t i = 0; i < sizeof buffer_; i += 8) {
      uint64_t value = random_();
      memcpy(buffer_ + i, &value, 8);
    }
    uint64_t choice = random_();
    if (choice & 1) {
      const auto& begin = begins[(choice >> 8) % begins.size()];
      memcpy(buffer_, begin.data(), begin.size());
    }
    size_t size = choice & 6 ? sizeof buffer_ : (choice >> 32) % sizeof buffer_;
    return {buffer_, size};
  }

 private:
  std::mt19937_64 random_{42};
  std::byte buffer_[24];
};

TEST(Decode, RandomBytes) {
  Fuzz fuzz;
  Zydis z;
  for (int i = 0; i < 5'000'000; ++i) {
    std::span<const std::byte> bytes = fuzz.next();
    Insn insn = decode(bytes, {0x1000});
    bool ok = z.decode(bytes);
    ASSERT_EQ(insn.shape->known, ok) << to_hex(bytes);
    ASSERT_LE(insn.shape->length, bytes.size()) << to_hex(bytes);
    if (!ok) continue;
    ASSERT_EQ(insn.shape->length, z.insn.length) << to_hex(bytes);
    Insn ahead;
    Step step = decode_ahead(bytes, {0x1000}, ahead);
    ASSERT_TRUE(ahead.shape == insn.shape && ahead.target == insn.target) << to_hex(bytes);
    ASSERT_TRUE(step.length == z.insn.length && step.kind == insn.kind()) << to_hex(bytes);
    ASSERT_EQ(insn.kind(), expected_kind(z)) << to_hex(bytes);
    if (i % 4 == 0) {
      ASSERT_EQ(insn.target, expected_target(z, {0x1000})) << to_hex(bytes);
      ASSERT_TRUE(is_fresh_shape(*insn.shape, bytes)) << to_hex(bytes);
    }
  }
}

TEST(Decode, ReadsNotPastTheEnd) {
  // Every truncation of an instruction is too short, wherever the cut is; the instruction itself is not.
  for (const char* hex : {"90", "48 89 c8", "e8 01 02 03 04", "48 8b 84 8b 01 02 03 04", "48 b8 01 02 03 04 05 06 07 08",
                          "62 f1 64 48 58 8c 98 01 02 03 04", "c5 f8 77", "66 66 2e 0f 1f 84 00 00 00 00 00", "0f 22 c0"}) {
    std::vector<std::byte> whole = from_hex(hex);
    EXPECT_TRUE(decode(whole, {}).shape->known) << hex;
    EXPECT_EQ(decode(whole, {}).shape->length, whole.size()) << hex;
    for (size_t size = 0; size < whole.size(); ++size) {
      std::vector<std::byte> part(whole.begin(), whole.begin() + size);  // its own allocation: ASan watches
      EXPECT_FALSE(decode(part, {}).shape->known) << hex << " cut at " << size;
      EXPECT_EQ(decode(part, {}).shape->length, 0) << hex << " cut at " << size;
    }
  }
}

TEST(Decode, UnknownInstructions) {
  struct Case {
    const char* hex;
    int length;
  };
  // Opcodes that are not assigned, in maps whose layout is known, and in others.
  for (auto [hex, length] : {Case{"0f 38 0f 44 24 08", 6},
                             {"0f 3a 00 c0 07", 5},
                             {"c4 e3 79 ff c0 07", 6},
                             {"62 f2 7d 48 ff 05 01 02 03 04", 10},
                             {"06", 0},
                             {"0f 0a", 0},
                             {"d5 00 01", 0}}) {
    Insn insn = decode_hex(std::string(hex) + " 90 90 90 90");
    EXPECT_FALSE(insn.shape->known) << hex;
    EXPECT_EQ(insn.shape->length, length) << hex;
    EXPECT_EQ(insn.shape->reads, RegSet::all());
    EXPECT_EQ(insn.shape->writes, RegSet::all());
    EXPECT_EQ(insn.shape->kills, RegSet{});
  }
  // With its prefixes, one is longer than any instruction: nothing behind its 15 bytes is looked at.
  EXPECT_EQ(decode_hex("66 66 66 66 66 66 66 66 66 66 66 66 66 62 f1 7c 48 58 44 24 01").shape->length, 0);
  EXPECT_EQ(decode_hex("62 f2 7d 48 ff 05 01 02 03 04").target.value, 0x1000u + 10 + 0x04030201);
}

TEST(Decode, Kinds) {
  struct Case {
    const char* hex;
    Kind kind;
  };
  for (auto [hex, kind] : {Case{"eb 10", Kind::Jump},
                           {"e9 10 00 00 00", Kind::Jump},
                           {"f2 e9 10 00 00 00", Kind::Jump},
                           {"74 10", Kind::Branch},
                           {"0f 84 10 00 00 00", Kind::Branch},
                           {"e3 10", Kind::Branch},
                           {"e2 10", Kind::Branch},
                           {"67 e3 10", Kind::Branch},
                           {"e8 00 00 00 00", Kind::Call},
                           {"ff d0", Kind::CallIndirect},
                           {"ff 15 00 00 00 00", Kind::CallIndirect},
                           {"ff e0", Kind::JumpIndirect},
                           {"3e ff e0", Kind::JumpIndirect},
                           {"f2 ff e0", Kind::JumpIndirect},
                           {"ff 24 c5 00 00 00 00", Kind::JumpIndirect},
                           {"c3", Kind::Return},
                           {"f3 c3", Kind::Return},
                           {"f2 c3", Kind::Return},
                           {"c2 08 00", Kind::Return},
                           {"0f 05", Kind::Syscall},
                           {"cc", Kind::Trap},
                           {"cd 80", Kind::Trap},
                           {"f1", Kind::Trap},
                           {"0f 0b", Kind::Trap},
                           {"0f b9 c0", Kind::Trap},
                           {"0f ff c0", Kind::Trap},
                           {"f4", Kind::Trap},
                           {"cb", Kind::Far},
                           {"ca 08 00", Kind::Far},
                           {"cf", Kind::Far},
                           {"48 cf", Kind::FarReturn},
                           {"48 cb", Kind::FarReturn},
                           {"ff 28", Kind::Far},
                           {"ff 18", Kind::Far},
                           {"0f 34", Kind::Far},
                           {"0f 35", Kind::Far},
                           {"c7 f8 00 00 00 00", Kind::Far},
                           {"f3 0f 1e fa", Kind::Plain},
                           {"90", Kind::Plain},
                           {"0f 01 d5", Kind::Plain}}) {
    Insn insn = decode_hex(hex);
    EXPECT_TRUE(insn.shape->known) << hex;
    EXPECT_EQ(insn.kind(), kind) << hex;
  }
  EXPECT_EQ(decode_hex("0f 8f 10 00 00 00").shape->condition, 15);
  EXPECT_EQ(decode_hex("72 10").shape->condition, 2);
  EXPECT_FALSE(decode_hex("72 10").shape->short_only);
  for (const char* hex : {"e0 10", "e1 10", "e2 10", "e3 10", "67 e3 10"}) EXPECT_TRUE(decode_hex(hex).shape->short_only);
}

TEST(Decode, Targets) {
  struct Case {
    const char* hex;
    uint64_t target;
  };
  for (auto [hex, target] : {Case{"eb fe", 0x1000},
                             {"74 7f", 0x1081},
                             {"0f 84 00 01 00 00", 0x1106},
                             {"e8 fb ff ff ff", 0x1000},
                             {"48 8b 05 f9 ff ff ff", 0x1000},
                             {"c7 05 00 00 00 00 01 02 03 04", 0x100a},
                             {"67 8b 05 00 f0 ff ff", 0x7},
                             {"67 8b 05 00 e0 ff ff", 0xfffff007},
                             {"48 8b 00", 0},
                             {"ff 25 10 00 00 00", 0x1016}})
    EXPECT_EQ(decode_hex(hex).target.value, target) << hex;
}

TEST(Decode, Fields) {
  const Shape& s = *decode_hex("48 c7 84 8b 01 02 03 04 05 06 07 08").shape;
  EXPECT_EQ(s.modrm_offset, 2);
  EXPECT_EQ(s.disp_offset, 4);
  EXPECT_EQ(s.disp_size, 4);
  EXPECT_EQ(s.imm_offset, 8);
  EXPECT_EQ(s.imm_size, 4);
  EXPECT_EQ(decode_hex("48 a1 01 02 03 04 05 06 07 08").shape->disp_size, 8);
  EXPECT_TRUE(decode_hex("64 48 8b 04 25 28 00 00 00").shape->uses_fs);
  EXPECT_TRUE(decode_hex("65 48 8b 00").shape->uses_gs);
  EXPECT_TRUE(decode_hex("f3 48 0f ae c0").shape->uses_fs);
  EXPECT_FALSE(decode_hex("48 8d 04 8b").shape->reads_memory);
  EXPECT_TRUE(decode_hex("48 8b 04 8b").shape->reads_memory);
  EXPECT_TRUE(decode_hex("01 08").shape->reads_memory && decode_hex("01 08").shape->writes_memory);
  EXPECT_TRUE(decode_hex("f3 a4").shape->rep && decode_hex("f2 ae").shape->rep);
  EXPECT_FALSE(decode_hex("a4").shape->rep || decode_hex("f3 c3").shape->rep);
}

constexpr uint16_t a = 1 << RAX, c = 1 << RCX, d = 1 << RDX, b = 1 << RBX, sp = 1 << RSP, bp = 1 << RBP, si = 1 << RSI,
                   di = 1 << RDI, r11 = 1 << R11;
constexpr uint8_t Status = AllFlags & ~DF;
constexpr RegSet gpr(uint16_t set, uint8_t flags = 0) { return {set, flags, 0, 0}; }
constexpr RegSet vec(uint32_t set, uint8_t mask = 0) { return {0, 0, mask, set}; }
constexpr RegSet none{};

TEST(Decode, Registers) {
  struct Case {
    const char* text;
    const char* hex;
    RegSet reads, writes, kills;
  };
  const Case cases[] = {
      {"mov eax, ecx", "89 c8", gpr(c), gpr(a), gpr(a)},
      {"mov ax, cx", "66 89 c8", gpr(c), gpr(a), none},
      {"mov al, cl", "88 c8", gpr(c), gpr(a), none},
      {"mov ah, cl", "88 cc", gpr(c), gpr(a), none},
      {"mov rax, [rbx+rcx*4]", "48 8b 04 8b", gpr(b | c), gpr(a), gpr(a)},
      {"mov eax, [ebx]", "67 8b 03", gpr(b), gpr(a), gpr(a)},
      {"lea rax, [rbx+rcx*4]", "48 8d 04 8b", gpr(b | c), gpr(a), gpr(a)},
      {"add eax, ecx", "01 c8", gpr(a | c), gpr(a, Status), gpr(a, Status)},
      {"adc eax, ecx", "11 c8", gpr(a | c, CF), gpr(a, Status), gpr(a, Status)},
      {"xor eax, eax", "31 c0", none, gpr(a, Status), gpr(a, Status)},
      {"sub rcx, rcx", "48 29 c9", none, gpr(c, Status), gpr(c, Status)},
      {"xor ax, ax", "66 31 c0", gpr(a), gpr(a, Status), gpr(0, Status)},
      {"xor eax, ecx", "31 c8", gpr(a | c), gpr(a, Status), gpr(a, Status)},
      {"cmp eax, ecx", "39 c8", gpr(a | c), gpr(0, Status), gpr(0, Status)},
      {"inc eax", "ff c0", gpr(a), gpr(a, Status & ~CF), gpr(a, Status & ~CF)},
      {"cmove eax, ecx", "0f 44 c1", gpr(a | c, ZF), gpr(a), none},
      {"sete al", "0f 94 c0", gpr(0, ZF), gpr(a), none},
      {"je", "74 00", gpr(0, ZF), none, none},
      {"ja", "77 00", gpr(0, CF | ZF), none, none},
      {"jrcxz", "e3 00", gpr(c), none, none},
      {"loop", "e2 00", gpr(c), gpr(c), gpr(c)},
      {"shl eax, cl", "d3 e0", gpr(a | c), gpr(a, Status), gpr(a)},
      {"shl eax, 3", "c1 e0 03", gpr(a), gpr(a, Status), gpr(a)},
      {"rol eax, 1", "d1 c0", gpr(a), gpr(a, CF | OF), gpr(a)},
      {"shrd eax, ecx, cl", "0f ad c8", gpr(a | c), gpr(a, Status), none},
      {"bt eax, ecx", "0f a3 c8", gpr(a | c), gpr(0, Status & ~ZF), gpr(0, CF)},
      {"bsf eax, ecx", "0f bc c1", gpr(c), gpr(a, Status), gpr(0, ZF)},
      {"mul rcx", "48 f7 e1", gpr(a | c), gpr(a | d, Status), gpr(a | d, CF | OF)},
      {"cdq", "99", gpr(a), gpr(d), gpr(d)},
      {"push rax", "50", gpr(a | sp), gpr(sp), gpr(sp)},
      {"pop rcx", "59", gpr(sp), gpr(c | sp), gpr(c | sp)},
      {"call rax", "ff d0", gpr(a | sp), gpr(sp), gpr(sp)},
      {"ret", "c3", gpr(sp), gpr(sp), gpr(sp)},
      {"pushfq", "9c", gpr(sp, AllFlags), gpr(sp), gpr(sp)},
      {"popfq", "9d", gpr(sp), gpr(sp, AllFlags), gpr(sp, AllFlags)},
      {"lahf", "9f", gpr(0, Status & ~OF), gpr(a), none},
      {"sahf", "9e", gpr(a), gpr(0, Status & ~OF), gpr(0, Status & ~OF)},
      {"std", "fd", none, gpr(0, DF), gpr(0, DF)},
      {"movsb", "a4", gpr(si | di, DF), gpr(si | di), gpr(si | di)},
      {"rep movsb", "f3 a4", gpr(c | si | di, DF), gpr(c | si | di), none},
      {"rep stosq", "f3 48 ab", gpr(a | c | di, DF), gpr(c | di), none},
      {"rep lodsd", "f3 ad", gpr(c | si, DF), gpr(a | c | si), none},
      {"lodsd", "ad", gpr(si, DF), gpr(a | si), gpr(a)},
      {"repe cmpsb", "f3 a6", gpr(c | si | di, DF | ZF), gpr(c | si | di, Status), none},
      {"repne scasb", "f2 ae", gpr(a | c | di, DF | ZF), gpr(c | di, Status), none},
      {"cmpsb", "a6", gpr(si | di, DF), gpr(si | di, Status), gpr(0, Status)},
      {"scasb", "ae", gpr(a | di, DF), gpr(di, Status), gpr(0, Status)},
      {"outsb", "6e", gpr(d | si, DF), gpr(si), none},
      {"insb", "6c", gpr(d | di, DF), gpr(di), none},
      {"xlatb", "d7", gpr(a | b), gpr(a), none},
      {"enter 8, 0", "c8 08 00 00", gpr(sp | bp), gpr(sp | bp), gpr(sp | bp)},
      {"leave", "c9", gpr(sp | bp), gpr(sp | bp), gpr(sp | bp)},
      {"cmpxchg16b [rdi]", "48 0f c7 0f", gpr(a | b | c | d | di), gpr(a | d, ZF), gpr(0, ZF)},
      {"div rcx", "48 f7 f1", gpr(a | c | d), gpr(a | d, Status), gpr(a | d)},
      {"imul ecx", "f7 e9", gpr(a | c), gpr(a | d, Status), gpr(a | d, CF | OF)},
      {"mulx eax, ebx, ecx", "c4 e2 63 f6 c1", gpr(c | d), gpr(a | b), gpr(a | b)},
      {"maskmovdqu xmm1, xmm2", "66 0f f7 ca", {di, 0, 0, 6}, none, none},
      {"pcmpestri xmm1, xmm2, 0", "66 0f 3a 61 ca 00", {a | d, 0, 0, 6}, gpr(c, Status), gpr(c, Status)},
      {"pcmpistrm xmm1, xmm2, 0", "66 0f 3a 62 ca 00", vec(6), {0, Status, 0, 1}, gpr(0, Status)},
      {"blendvps xmm1, xmm2", "66 0f 38 14 ca", vec(7), vec(2), none},
      {"sha256rnds2 xmm1, xmm2", "0f 38 cb ca", vec(7), vec(2), none},
      {"rdtscp", "0f 01 f9", none, gpr(a | c | d), gpr(a | c | d)},
      {"wrpkru", "0f 01 ef", gpr(a | c | d), none, none},
      {"rdpkru", "0f 01 ee", gpr(c), gpr(a | d), gpr(a | d)},
      {"umwait ecx", "f2 0f ae f1", gpr(a | c | d), gpr(0, Status), gpr(0, Status)},
      {"monitorx", "0f 01 fa", gpr(a | c | d), none, none},
      {"clzero", "0f 01 fc", gpr(a), none, none},
      {"fnstsw ax", "df e0", none, gpr(a), none},
      {"fcomi", "db f1", none, gpr(0, Status), gpr(0, Status)},
      {"movmskps eax, xmm1", "0f 50 c1", vec(2), gpr(a), gpr(a)},
      {"rdrand eax", "0f c7 f0", none, gpr(a, Status), gpr(a, Status)},
      {"cpuid", "0f a2", gpr(a | c), gpr(a | b | c | d), gpr(a | b | c | d)},
      {"rdtsc", "0f 31", none, gpr(a | d), gpr(a | d)},
      {"xgetbv", "0f 01 d0", gpr(c), gpr(a | d), gpr(a | d)},
      {"cmpxchg [rdi], ecx", "0f b1 0f", gpr(a | c | di), gpr(a, Status), gpr(0, Status)},
      {"syscall", "0f 05", gpr(0xffff, AllFlags), gpr(a | c | r11), gpr(c | r11)},
      {"int 0x80", "cd 80", RegSet::all(), RegSet::all(), none},
      {"rdsspq rax", "f3 48 0f 1e c8", none, gpr(a), none},
      {"nop [rax+rax]", "66 0f 1f 44 00 00", none, none, none},
      {"nop", "90", none, none, none},
      {"endbr64", "f3 0f 1e fa", none, none, none},
      {"movaps xmm1, xmm2", "0f 28 ca", vec(4), vec(2), none},
      {"vmovaps xmm1, xmm2", "c5 f8 28 ca", vec(4), vec(2), vec(2)},
      {"vaddps zmm1, zmm3, zmm4", "62 f1 64 48 58 cc", vec(0x18), vec(2), vec(2)},
      {"vaddps zmm1{k2}, zmm3, zmm4", "62 f1 64 4a 58 cc", vec(0x1a, 4), vec(2), none},
      {"vaddps zmm1{k2}{z}, zmm3, zmm4", "62 f1 64 ca 58 cc", vec(0x18, 4), vec(2), vec(2)},
      {"vblendvps, a register in the immediate", "c4 e3 69 4a cb 40", vec(0xffff), vec(2), vec(2)},
      {"vgatherdps xmm0, [rax+xmm1*4], xmm2", "c4 e2 69 92 04 88", {a, 0, 0, 7}, vec(5), none},
      {"kmovq k1, k2", "c4 e1 f8 90 ca", vec(0, 4), vec(0, 2), vec(0, 2)},
      {"vzeroupper", "c5 f8 77", none, vec(0xffff), none},
      {"vzeroall", "c5 fc 77", none, vec(0xffff), vec(0xffff)},
      {"xsave [rdi]", "0f ae 27", {a | d | di, 0, 0xff, ~0u}, none, none},
      {"xrstor [rdi]", "0f ae 2f", gpr(a | d | di), vec(~0u, 0xff), none},
      {"fxsave [rdi]", "0f ae 07", {di, 0, 0xff, ~0u}, none, none},
      {"fxrstor [rdi]", "0f ae 0f", gpr(di), vec(~0u, 0xff), none},
  };
  auto show = [](RegSet s) {
    return fmt::format("gpr {:04x} flags {:02x} mask {:02x} vec {:08x}", s.gpr, s.flags, s.mask, s.vec);
  };
  for (const Case& x : cases) {
    const Shape& s = *decode_hex(x.hex).shape;
    EXPECT_TRUE(s.known) << x.text;
    EXPECT_EQ(show(s.reads), show(x.reads)) << x.text << ": reads";
    EXPECT_EQ(show(s.writes), show(x.writes)) << x.text << ": writes";
    EXPECT_EQ(show(s.kills), show(x.kills)) << x.text << ": kills";
  }
}

// The table that Weir was built with says what would be made now.
TEST(Decode, CommonShapes) {
  size_t count = 0;
  for (const Slot& slot : common_slots) {
    if (!slot.key) continue;
    unsigned size = slot.key & 0xff;
    uint64_t value = slot.key >> (64 - 8 * size);
    uint8_t bytes[32] = {};
    memcpy(bytes, &value, size);
    Layout layout = layout_of(bytes);
    ASSERT_EQ(layout.shape_end, size);
    ASSERT_TRUE(is_fresh_shape(*slot.shape(), std::as_bytes(std::span(bytes))));
    ASSERT_EQ(decode(std::as_bytes(std::span(bytes)), {0x1000}).shape, slot.shape());
    count++;
  }
  EXPECT_GT(count, 10'000u);
}

}  // namespace
}  // namespace weir::x86
