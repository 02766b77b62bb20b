// Memory operands against Zydis, over all encodings; and, where Zydis tells too little, against a table that was written by hand from
// Intel's and AMD's manuals. What the processor itself says: operands_fault_test.cc.
#include <Zydis/Zydis.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "accesses.h"
#include "x86/operands.h"

namespace weir::x86 {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += hex[i + 2 < hex.size() ? i + 2 : i] == ' ' ? 3 : 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (std::byte b : bytes) hex += fmt::format("{:02x} ", std::to_integer<int>(b));
  return hex;
}

constexpr const char* gpr_names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                     "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

std::string index_of(const MemoryOperand& o) {
  if (o.extent == Extent::Indexed) return fmt::format("v{}.{}", o.index, o.index_size);
  return o.index_size == 1 ? "al" : gpr_names[o.index];
}

std::string address_of(const MemoryOperand& o) {
  std::string sum = o.is_rip_relative ? "rip:" : "";
  if (o.base != no_register) sum += gpr_names[o.base];
  if (o.index != no_register) sum += fmt::format("{}{}*{}", sum.empty() ? "" : "+", index_of(o), o.scale);
  if (o.displacement != 0 || sum.empty() || o.is_rip_relative)
    sum += fmt::format("{}{:#x}",
                       o.displacement < 0                 ? "-"
                       : sum.empty() || o.is_rip_relative ? ""
                                                          : "+",
                       o.displacement < 0 ? -o.displacement : o.displacement);
  const char* segment = o.segment == Segment::Fs ? "fs:" : o.segment == Segment::Gs ? "gs:" : "";
  return fmt::format("{}[{}]{}", segment, sum, o.wraps_at_32_bits ? "32" : "");
}

std::string mask_of(const MemoryOperand& o) {
  const char* file = o.mask_in == MaskIn::K ? "k" : o.mask_in == MaskIn::Vector ? "v" : "mm";
  return fmt::format(" {}x{} by {}{}.{}", o.size / o.element, o.element, file, o.mask, o.mask_bits);
}

std::string show(const MemoryOperand& o) {
  constexpr const char* accesses[] = {"named ", "read ", "write ", "read-write "};
  constexpr const char* extents[] = {"", " rep", " line", " masked", " packed", " indexed", " bits", " state", " rows"};
  std::string text = accesses[static_cast<int>(o.access)] + fmt::format("{} ", o.size) + address_of(o);
  text += extents[static_cast<int>(o.extent)];
  if (o.element) text += mask_of(o);
  if (o.bit_offset != no_register) text += fmt::format(" {}", gpr_names[o.bit_offset]);
  return text;
}

std::string show(const MemoryOperands& all) {
  std::string text;
  for (const MemoryOperand& o : all) text += (text.empty() ? "" : ", ") + show(o);
  return text;
}

std::string operands_of(const std::string& hex) {
  std::vector<std::byte> bytes = from_hex(hex);
  Insn insn = decode(bytes, {0x1000});
  EXPECT_TRUE(insn.shape->known && insn.shape->length == bytes.size()) << hex;
  return show(memory_operands(insn, bytes));
}

TEST(Operands, ByHand) {
  struct Case {
    const char* text;
    const char* hex;
    const char* operands;
  };
  const Case cases[] = {
      {"mov rax, [rbx+rcx*4+16]", "48 8b 44 8b 10", "read 8 [rbx+rcx*4+0x10]"},
      {"mov [r13+r12*8-128], al", "43 88 44 e5 80", "write 1 [r13+r12*8-0x80]"},
      {"mov eax, [rcx*2+0x12345678]", "8b 04 4d 78 56 34 12", "read 4 [rcx*2+0x12345678]"},
      {"mov eax, [-1]", "8b 04 25 ff ff ff ff", "read 4 [-0x1]"},
      {"mov eax, [rip+16]", "8b 05 10 00 00 00", "read 4 [rip:0x1016]"},
      {"mov eax, [eip-0x2000]", "67 8b 05 00 e0 ff ff", "read 4 [rip:0xfffff007]32"},
      {"mov eax, fs:[0x28]", "64 8b 04 25 28 00 00 00", "read 4 fs:[0x28]"},
      {"mov gs:[rax], ax", "65 66 89 00", "write 2 gs:[rax]"},
      {"mov eax, [ebx+ecx]", "67 8b 04 0b", "read 4 [rbx+rcx*1]32"},
      {"mov eax, [ecx*2+16] (REX.B)", "67 41 8b 04 4d 10 00 00 00", "read 4 [rcx*2+0x10]32"},
      {"movabs al, [0x8877665544332211]", "a0 11 22 33 44 55 66 77 88", "read 1 [-0x778899aabbccddef]"},
      {"movabs [0x1122334455667788], rax", "48 a3 88 77 66 55 44 33 22 11", "write 8 [0x1122334455667788]"},
      {"mov al, [0xff223344] (a32)", "67 a0 44 33 22 ff", "read 1 [-0xddccbc]32"},
      {"lea rax, [rbx+8]", "48 8d 43 08", ""},
      {"nop [rax+rax]", "0f 1f 04 00", ""},
      {"endbr64", "f3 0f 1e fa", ""},
      {"ud1 eax, [rax]", "0f b9 00", ""},
      {"add [rax], ecx", "01 08", "read-write 4 [rax]"},
      {"lock cmpxchg16b [rdi]", "f0 48 0f c7 0f", "read-write 16 [rdi]"},
      {"cmp [rax], ecx", "39 08", "read 4 [rax]"},
      {"xchg [rax], ecx", "87 08", "read-write 4 [rax]"},
      // the stack
      {"push rax", "50", "write 8 [rsp-0x8]"},
      {"push ax", "66 50", "write 2 [rsp-0x2]"},
      {"push 1", "6a 01", "write 8 [rsp-0x8]"},
      {"push fs", "0f a0", "write 8 [rsp-0x8]"},
      {"push [rsp+8]", "ff 74 24 08", "read 8 [rsp+0x8], write 8 [rsp-0x8]"},
      {"push fs:[rax]", "64 ff 30", "read 8 fs:[rax], write 8 [rsp-0x8]"},
      {"push [eax]", "67 ff 30", "read 8 [rax]32, write 8 [rsp-0x8]"},
      {"pop rax", "58", "read 8 [rsp]"},
      {"pop [rsp+8]", "8f 44 24 08", "read 8 [rsp], write 8 [rsp+0x10]"},
      {"pop word [rsp]", "66 8f 04 24", "read 2 [rsp], write 2 [rsp+0x2]"},
      {"pop [rsp*… no: rax+8]", "8f 40 08", "read 8 [rsp], write 8 [rax+0x8]"},
      {"pop [r12+8]", "41 8f 44 24 08", "read 8 [rsp], write 8 [r12+0x8]"},
      {"pushfq", "9c", "write 8 [rsp-0x8]"},
      {"popfq", "9d", "read 8 [rsp]"},
      {"call", "e8 00 00 00 00", "write 8 [rsp-0x8]"},
      {"call rax", "ff d0", "write 8 [rsp-0x8]"},
      {"call [rsp+8]", "ff 54 24 08", "read 8 [rsp+0x8], write 8 [rsp-0x8]"},
      {"call [rip]", "ff 15 00 00 00 00", "read 8 [rip:0x1006], write 8 [rsp-0x8]"},
      {"jmp [rax*8+8]", "ff 24 c5 08 00 00 00", "read 8 [rax*8+0x8]"},
      {"ret", "c3", "read 8 [rsp]"},
      {"ret 16", "c2 10 00", "read 8 [rsp]"},
      {"leave", "c9", "read 8 [rbp]"},
      {"leave (a32)", "67 c9", "read 8 [rbp]"},
      {"enter 16, 0", "c8 10 00 00", "write 8 [rsp-0x8]"},
      {"enter 16, 1", "c8 10 00 01", "write 16 [rsp-0x10]"},
      {"enter 16, 3", "c8 10 00 03", "write 32 [rsp-0x20], read 16 [rbp-0x10]"},
      {"enter 16, 35", "c8 10 00 23", "write 32 [rsp-0x20], read 16 [rbp-0x10]"},
      {"enterw 0, 2", "66 c8 00 00 02", "write 6 [rsp-0x6], read 2 [rbp-0x2]"},
      {"iretq", "48 cf", "read 40 [rsp]"},
      {"lretq", "48 cb", "read 16 [rsp]"},
      {"uiret", "f3 0f 01 ec", "read 24 [rsp]"},
      // strings
      {"movsb", "a4", "read 1 [rsi], write 1 [rdi]"},
      {"movsq fs:", "64 48 a5", "read 8 fs:[rsi], write 8 [rdi]"},
      {"rep movsd", "f3 a5", "read 4 [rsi] rep, write 4 [rdi] rep"},
      {"rep stosq", "f3 48 ab", "write 8 [rdi] rep"},
      {"rep stosb (a32)", "67 f3 aa", "write 1 [rdi]32 rep"},
      {"repe cmpsw", "f3 66 a7", "read 2 [rsi] rep, read 2 [rdi] rep"},
      {"repne scasb", "f2 ae", "read 1 [rdi] rep"},
      {"lodsd gs:", "65 ad", "read 4 gs:[rsi]"},
      {"insb", "6c", "write 1 [rdi]"},
      {"rep outsd", "f3 6f", "read 4 [rsi] rep"},
      {"xlat", "d7", "read 1 [rbx+al*1]"},
      {"xlat fs: (a32)", "67 64 d7", "read 1 fs:[rbx+al*1]32"},
      // bit strings
      {"bt [rax], ecx", "0f a3 08", "read 4 [rax] bits rcx"},
      {"lock bts [rax+8], rdx", "f0 48 0f ab 50 08", "read-write 8 [rax+0x8] bits rdx"},
      {"btc [rax], cx", "66 0f bb 08", "read-write 2 [rax] bits rcx"},
      {"btr dword [rax], 77", "0f ba 30 4d", "read-write 4 [rax]"},
      // state
      {"fxsave [rax]", "0f ae 00", "write 512 [rax] state"},
      {"fxrstor64 [rax]", "48 0f ae 08", "read 512 [rax] state"},
      {"xsave [rax]", "0f ae 20", "read-write 0 [rax] state"},
      {"xsavec [rax+64]", "0f c7 60 40", "write 0 [rax+0x40] state"},
      {"xrstor64 [rax]", "48 0f ae 28", "read 0 [rax] state"},
      {"fnsave [rax]", "dd 30", "write 108 [rax]"},
      {"frstor (o16)", "66 dd 20", "read 94 [rax]"},
      {"fldenv [rax]", "d9 20", "read 28 [rax]"},
      {"fnstenv (o16)", "66 d9 30", "write 14 [rax]"},
      {"fld tbyte [rax]", "db 28", "read 10 [rax]"},
      {"fbstp [rax]", "df 30", "write 10 [rax]"},
      {"fnstcw [rax]", "d9 38", "write 2 [rax]"},
      {"fisttp qword [rax]", "dd 08", "write 8 [rax]"},
      {"sgdt [rax]", "0f 01 00", "write 10 [rax]"},
      {"lidt [rax]", "0f 01 18", "read 10 [rax]"},
      {"sldt [rax]", "0f 00 00", "write 2 [rax]"},
      {"invpcid rax, [rcx]", "66 0f 38 82 01", "read 16 [rcx]"},
      {"ldtilecfg [rax]", "c4 e2 78 49 00", "read 64 [rax]"},
      {"tileloadd tmm0, [rax+rcx*2]", "c4 e2 7b 4b 04 48", "read 0 [rax+rcx*2] rows"},
      // named, not accessed
      {"prefetcht0 [rax]", "0f 18 08", "named 64 [rax] line"},
      {"prefetchw [rax]", "0f 0d 08", "named 64 [rax] line"},
      {"clflush [rax]", "0f ae 38", "named 64 [rax] line"},
      {"clflushopt [rax]", "66 0f ae 38", "named 64 [rax] line"},
      {"clwb [rax]", "66 0f ae 30", "named 64 [rax] line"},
      {"cldemote [rax]", "0f 1c 00", "named 64 [rax] line"},
      {"monitor", "0f 01 c8", "named 64 [rax] line"},
      {"monitorx fs: (a32)", "67 64 0f 01 fa", "named 64 fs:[rax]32 line"},
      {"umonitor rcx", "f3 0f ae f1", "named 64 [rcx] line"},
      {"clzero", "0f 01 fc", "write 64 [rax] line"},
      {"clzero (a32)", "67 0f 01 fc", "write 64 [rax]32 line"},
      // whole lines
      {"movdir64b rcx, [rax+8]", "66 0f 38 f8 48 08", "read 64 [rax+0x8], write 64 [rcx]"},
      {"movdir64b rsp, [rax]", "66 0f 38 f8 20", "read 64 [rax], write 64 [rsp]"},
      {"movdir64b ecx, [eax]", "67 66 0f 38 f8 08", "read 64 [rax]32, write 64 [rcx]32"},
      {"enqcmd r9, [rax]", "f2 44 0f 38 f8 08", "read 64 [rax], write 64 [r9]"},
      {"movdiri [rax], ecx", "0f 38 f9 08", "write 4 [rax]"},
      // masks in vectors
      {"maskmovq mm1, mm2", "0f f7 ca", "write 8 [rdi] masked 8x1 by mm2.8"},
      {"maskmovdqu xmm1, xmm10 (a32, gs:)", "65 67 66 41 0f f7 ca", "write 16 gs:[rdi]32 masked 16x1 by v10.16"},
      {"vmaskmovdqu xmm1, xmm2", "c5 f9 f7 ca", "write 16 [rdi] masked 16x1 by v2.16"},
      {"vmaskmovps ymm1, ymm2, [rax]", "c4 e2 6d 2c 08", "read 32 [rax] masked 8x4 by v2.8"},
      {"vmaskmovpd [rax], xmm2, xmm1", "c4 e2 69 2f 08", "write 16 [rax] masked 2x8 by v2.2"},
      {"vpmaskmovq [rax], ymm12, ymm1", "c4 e2 9d 8e 08", "write 32 [rax] masked 4x8 by v12.4"},
      // gathers, scatters
      {"vgatherdps ymm1, [rax+ymm2*4], ymm3", "c4 e2 65 92 0c 90", "read 32 [rax+v2.4*4] indexed 8x4 by v3.8"},
      {"vgatherqps xmm1, [rax+ymm2*4], xmm3", "c4 e2 65 93 0c 90", "read 16 [rax+v2.8*4] indexed 4x4 by v3.4"},
      {"vgatherqps xmm1, [rax+xmm2*4], xmm3", "c4 e2 61 93 0c 90", "read 8 [rax+v2.8*4] indexed 2x4 by v3.2"},
      {"vgatherdpd ymm1, [rax+xmm2*8], ymm3", "c4 e2 e5 92 0c d0", "read 32 [rax+v2.4*8] indexed 4x8 by v3.4"},
      {"vpgatherqq ymm1, [ymm2+64], ymm3", "c4 e2 e5 91 0c 15 40 00 00 00", "read 32 [v2.8*1+0x40] indexed 4x8 by v3.4"},
      {"vpgatherdd zmm1{k3}, [rax+zmm22*4]", "62 f2 7d 43 90 0c b0", "read 64 [rax+v22.4*4] indexed 16x4 by k3.16"},
      {"vpscatterdd [rax+zmm2*4]{k1}, zmm1", "62 f2 7d 49 a0 0c 90", "write 64 [rax+v2.4*4] indexed 16x4 by k1.16"},
      {"vscatterqps [rax+zmm2*4]{k1}, ymm1", "62 f2 7d 49 a3 0c 90", "write 32 [rax+v2.8*4] indexed 8x4 by k1.8"},
      {"vscatterdpd [rax+ymm2*8+8]{k1}, zmm1", "62 f2 fd 49 a2 4c d0 01", "write 64 [rax+v2.4*8+0x8] indexed 8x8 by k1.8"},
      {"vgatherpf0dps [rax+zmm2*4]{k1}", "62 f2 7d 49 c6 0c 90", "named 64 [rax+v2.4*4] indexed 16x4 by k1.16"},
      // AVX-512
      {"vmovdqu32 zmm1, [rax+64]", "62 f1 7e 48 6f 48 01", "read 64 [rax+0x40]"},
      {"vmovdqu8 [rax-32]{k2}, ymm1", "62 f1 7f 2a 7f 48 ff", "write 32 [rax-0x20] masked 32x1 by k2.32"},
      {"vmovdqu64 zmm1{k2}{z}, [rax]", "62 f1 fe ca 6f 08", "read 64 [rax] masked 8x8 by k2.8"},
      {"vaddps zmm1, zmm2, [rax+4]{1to16}", "62 f1 6c 58 58 48 01", "read 4 [rax+0x4]"},
      {"vaddps zmm1{k3}, zmm2, [rax]{1to16}", "62 f1 6c 5b 58 08", "read 4 [rax] masked 1x4 by k3.16"},
      {"vaddsd xmm1{k3}, xmm2, [rax+8]", "62 f1 ef 0b 58 48 01", "read 8 [rax+0x8] masked 1x8 by k3.1"},
      {"vmovss [rax]{k1}, xmm1", "62 f1 7e 09 11 08", "write 4 [rax] masked 1x4 by k1.1"},
      {"vcvtpd2ps xmm1{k1}, [rax] (16 bytes)", "62 f1 fd 09 5a 08", "read 16 [rax] masked 2x8 by k1.2"},
      {"vcvtps2pd zmm1{k1}, [rax]", "62 f1 7c 49 5a 08", "read 32 [rax] masked 8x4 by k1.8"},
      {"vcvtps2pd zmm1{k1}, [rax]{1to8}", "62 f1 7c 59 5a 08", "read 4 [rax] masked 1x4 by k1.8"},
      {"vpmovqb [rax]{k1}, zmm1", "62 f2 7e 49 32 08", "write 8 [rax] masked 8x1 by k1.8"},
      {"vcvtps2ph [rax]{k1}, zmm1, 0", "62 f3 7d 49 1d 08 00", "write 32 [rax] masked 16x2 by k1.16"},
      {"vextractf64x2 [rax]{k1}, zmm1, 0", "62 f3 fd 49 19 08 00", "write 16 [rax] masked 2x8 by k1.2"},
      {"vbroadcastf32x4 zmm1{k1}, [rax]", "62 f2 7d 49 1a 08", "read 16 [rax] masked 4x4 by k1.16"},
      {"vpbroadcastb zmm1{k1}, [rax]", "62 f2 7d 49 78 08", "read 1 [rax] masked 1x1 by k1.64"},
      {"vpcmpd k1{k2}, zmm1, [rax], 0", "62 f3 75 4a 1f 08 00", "read 64 [rax] masked 16x4 by k2.16"},
      {"vcompressps [rax]{k1}, zmm1", "62 f2 7d 49 8a 08", "write 64 [rax] packed 16x4 by k1.16"},
      {"vcompressps [rax], zmm1", "62 f2 7d 48 8a 08", "write 64 [rax]"},
      {"vpexpandb zmm1{k1}{z}, [rax+1]", "62 f2 7d c9 62 48 01", "read 64 [rax+0x1] packed 64x1 by k1.64"},
      {"vpermd zmm1{k1}, zmm2, [rax]: all is read", "62 f2 6d 49 36 08", "read 64 [rax]"},
      {"kmovq k1, [rax]", "c4 e1 f8 90 08", "read 8 [rax]"},
      // AMD's
      {"vphaddbw xmm1, [rax]", "8f e9 78 c1 08", "read 16 [rax]"},
      {"pfadd mm1, [rax+8]", "0f 0f 48 08 9e", "read 8 [rax+0x8]"},
      {"movntss [rax], xmm1", "f3 0f 2b 08", "write 4 [rax]"},
      {"femms", "0f 0e", ""},
      // shadow stacks and bounds
      {"wrssq [rax], rcx", "48 0f 38 f6 08", "write 8 [rax]"},
      {"rstorssp [rax]", "f3 0f 01 28", "read-write 8 [rax]"},
      {"bndmov [rax], bnd0", "66 0f 1b 00", ""},
      {"bndldx bnd0, [rax+rcx]", "0f 1a 04 08", ""},
      {"bndcl bnd0, [rax]", "f3 0f 1a 00", ""},
      // VIA's
      {"xcryptcbc", "f3 0f a7 d0",
       "read-write 16 [rax], read 16 [rdx], read 240 [rbx] state, read 16 [rsi] rep, write 16 [rdi] rep"},
  };
  for (const Case& c : cases) EXPECT_EQ(operands_of(c.hex), c.operands) << c.text << ": " << c.hex;
}

// What is not an instruction, and what is not known, has no operands.
TEST(Operands, OfNothing) {
  EXPECT_EQ(decode(from_hex("06"), {}).shape->operand_count(), 0u);
  std::vector<std::byte> unknown = from_hex("0f 38 0f 44 24 08");
  Insn insn = decode(unknown, {});
  EXPECT_FALSE(insn.shape->known);
  EXPECT_EQ(memory_operands(insn, unknown).size(), 0u);
}

// The address that Zydis computes from registers, and what it says of size and direction.
class Zydis {
 public:
  Zydis() { ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

  bool decode(std::span<const std::byte> bytes) {
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, bytes.data(), bytes.size(), &insn, operands)) &&
           insn.mnemonic != ZYDIS_MNEMONIC_JKZD && insn.mnemonic != ZYDIS_MNEMONIC_JKNZD;
  }
  std::string name() const { return ZydisMnemonicGetString(insn.mnemonic); }

  // Those that are accessed, in the order of reading, then writing only.
  std::vector<const ZydisDecodedOperand*> memory() const {
    std::vector<const ZydisDecodedOperand*> all;
    for (bool reads : {true, false})
      for (const ZydisDecodedOperand& op : std::span(operands, insn.operand_count)) {
        bool accessed = op.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                        (op.mem.type == ZYDIS_MEMOP_TYPE_MEM || op.mem.type == ZYDIS_MEMOP_TYPE_VSIB);
        if (accessed && bool(op.actions & ZYDIS_OPERAND_ACTION_MASK_READ) == reads) all.push_back(&op);
      }
    return all;
  }

  uint64_t address(const ZydisDecodedOperand& op, AppPc pc, const Registers& r) const {
    // Zydis cuts it under an address-size prefix; the processor does not (see operands_fault_test.cc).
    bool is_stack = op.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT && op.mem.segment == ZYDIS_REGISTER_SS;
    if (is_stack && op.mem.base == ZYDIS_REGISTER_RSP) return r.gpr[RSP];
    if (is_stack && op.mem.base == ZYDIS_REGISTER_RBP) return r.gpr[RBP];
    static ZydisRegisterContext context;
    for (int i = 0; i < 16; ++i) {
      context.values[ZYDIS_REGISTER_RAX + i] = r.gpr[i];
      context.values[ZYDIS_REGISTER_EAX + i] = static_cast<uint32_t>(r.gpr[i]);
    }
    ZydisDecodedOperand scalar = op;
    // [disp32 + …], which Zydis 4.0 takes for [r13d + …] under an address-size prefix and REX.B.
    bool has_no_base = insn.attributes & ZYDIS_ATTRIB_HAS_SIB && insn.raw.modrm.mod == 0 && insn.raw.sib.base == 5;
    if (has_no_base && op.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
      scalar.mem.base = ZYDIS_REGISTER_NONE, scalar.mem.disp = {true, insn.raw.disp.value};
    if (op.mem.type == ZYDIS_MEMOP_TYPE_VSIB)
      scalar.mem.index = ZYDIS_REGISTER_NONE, scalar.mem.type = ZYDIS_MEMOP_TYPE_MEM;
    uint64_t address = 0;
    EXPECT_TRUE(ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(&insn, &scalar, pc.value, &context, &address)));
    return address;
  }

  ZydisDecodedInstruction insn;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

 private:
  ZydisDecoder decoder_;
};

// What Zydis does not tell, or not as it is; ByHand has them.
bool is_imprecise(const Zydis& z) {
  static const std::set<std::string> names = {"nop",      "ud0",      "ud1",   "enter",  "clzero", "monitor",
                                              "monitorx", "umonitor", "uiret", "enqcmd", "enqcmds"};
  return names.contains(z.name()) || z.insn.meta.category == ZYDIS_CATEGORY_PADLOCK ||
         z.insn.meta.category == ZYDIS_CATEGORY_MPX;
}

// How Zydis' address of an operand differs from the address in terms of the registers before the instruction.
int64_t moved_by(const Zydis& z, const ZydisDecodedOperand& op) {
  bool is_hidden = op.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
  int64_t size = op.size / 8;
  bool pushes = z.name().starts_with("push") || z.name() == "call";
  if (pushes && is_hidden) return -size;
  bool is_stack = op.mem.base == ZYDIS_REGISTER_RSP || op.mem.base == ZYDIS_REGISTER_ESP;
  return !is_hidden && is_stack && z.name() == "pop" ? size : 0;
}

class AllEncodings : public testing::Test {
 protected:
  void compare(std::span<const std::byte> bytes) {
    if (!z_.decode(bytes)) return;
    AppPc pc{0x7000'1000};
    Insn insn = decode(bytes, pc);
    ASSERT_TRUE(insn.shape->known);
    MemoryOperands all = memory_operands(insn, bytes);
    // The same where nothing follows: from memory of its own, so that ASan watches.
    std::vector<std::byte> alone(bytes.begin(), bytes.begin() + insn.shape->length);
    ASSERT_TRUE(std::ranges::equal(all, memory_operands(insn, alone)));
    check_shape(*insn.shape, all);
    if (is_imprecise(z_)) return;
    auto expected = z_.memory();
    ASSERT_EQ(all.size(), expected.size()) << z_.name();
    for (size_t n = 0; n < all.size(); ++n) compare(all[n], *expected[n], pc);
    compared_ += all.size();
    names_.insert(z_.name());
  }

  // The shape's own words: whether it reads and writes memory.
  void check_shape(const Shape& shape, const MemoryOperands& all) {
    for (const MemoryOperand& o : all) {
      bool counts = z_.insn.meta.category != ZYDIS_CATEGORY_PADLOCK && z_.name() != "enter" && z_.name() != "uiret" &&
                    z_.name() != "clzero" && !z_.name().starts_with("enqcmd");
      if (!counts) continue;
      ASSERT_TRUE(shape.reads_memory || !reads(o.access)) << z_.name();
      ASSERT_TRUE(shape.writes_memory || !writes(o.access)) << z_.name();
    }
  }

  void compare(const MemoryOperand& o, const ZydisDecodedOperand& op, AppPc pc) {
    SCOPED_TRACE(z_.name() + ": " + show(o));
    // The address, without what further depends on registers.
    MemoryOperand plain = o;
    plain.extent = Extent::Plain, plain.bit_offset = no_register, plain.segment = Segment::None;
    if (o.extent == Extent::Indexed || o.index_size == 1) plain.index = no_register;
    uint64_t cut = o.wraps_at_32_bits ? 0xffffffff : ~uint64_t{0};
    ASSERT_EQ(bytes_of(plain, registers_)[0].address, (z_.address(op, pc, registers_) + moved_by(z_, op)) & cut);
    ASSERT_EQ(o.segment == Segment::Fs, op.mem.segment == ZYDIS_REGISTER_FS);
    ASSERT_EQ(o.segment == Segment::Gs, op.mem.segment == ZYDIS_REGISTER_GS);
    ASSERT_EQ(o.is_implicit, op.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT);
    if (o.access == Access::None) return compare_hint(o);
    ASSERT_EQ(reads(o.access), (op.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0);
    ASSERT_EQ(writes(o.access), (op.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0);
    unsigned size = op.size / 8;
    bool is_open = o.extent == Extent::Rows || (o.extent == Extent::State && o.size == 0);
    if (!is_open) {
      ASSERT_EQ(o.extent == Extent::Indexed ? o.element : o.size, size);
    }
    compare_extent(o, op);
  }

  void compare_hint(const MemoryOperand& o) {
    ASSERT_TRUE(z_.name().find("prefetch") != std::string::npos || z_.name().find("gatherpf") != std::string::npos ||
                z_.name().find("scatterpf") != std::string::npos || z_.name().starts_with("cl") || z_.name() == "invlpg");
    ASSERT_TRUE(o.extent == Extent::Line || o.extent == Extent::Indexed);
  }

  void compare_extent(const MemoryOperand& o, const ZydisDecodedOperand& op) {
    std::string name = z_.name();
    bool masks_in_k = z_.insn.avx.mask.reg > ZYDIS_REGISTER_K0 && z_.insn.avx.mask.reg <= ZYDIS_REGISTER_K7;
    switch (o.extent) {
      case Extent::Repeated:
        ASSERT_TRUE(z_.insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE));
        break;
      case Extent::Masked:
      case Extent::Packed:
        ASSERT_TRUE(masks_in_k || name.find("maskmov") != std::string::npos);
        ASSERT_EQ(o.size % o.element, 0u);
        ASSERT_GE(o.mask_bits, o.size / o.element);
        ASSERT_TRUE(!masks_in_k || o.mask == z_.insn.avx.mask.reg - ZYDIS_REGISTER_K0);
        break;
      case Extent::Indexed: {
        ASSERT_EQ(op.mem.type, ZYDIS_MEMOP_TYPE_VSIB);
        ASSERT_EQ(o.index, ZydisRegisterGetId(op.mem.index));
        ASSERT_EQ(o.scale, op.mem.scale);
        unsigned width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, op.mem.index) / 8;
        ASSERT_LE(o.mask_bits * o.index_size, width);
        break;
      }
      case Extent::BitString: ASSERT_TRUE(name.starts_with("bt")); break;
      case Extent::State: ASSERT_TRUE(name.starts_with("x") || name.starts_with("fx")); break;
      case Extent::Rows: ASSERT_TRUE(name.starts_with("tile")); break;
      default: break;
    }
    // What the mask leaves out is not written.
    ASSERT_FALSE(masks_in_k && writes(o.access) && o.extent == Extent::Plain);
  }

  // All forms of ModRM and SIB behind this: with displacements of all sizes, with and without base and index; registers.
  void with_operands(std::string opening, int regs = 8) {
    for (int n = 0, reg = static_cast<int>(random_() & 7); n < regs; ++n, reg = (reg + 1) & 7)
      for (int modrm : {0x00, 0x43, 0x84, 0x04, 0x44, 0x05, 0x85, 0xc1}) {
        std::string code = opening;
        code += static_cast<char>(modrm | reg << 3);
        while (code.size() < 24) code += static_cast<char>(random_());
        compare(std::as_bytes(std::span(code)).first(15));
        if (HasFatalFailure()) FAIL() << to_hex(std::as_bytes(std::span(code)).first(15));
      }
  }

  void SetUp() override {
    for (uint64_t& r : registers_.gpr) r = random_();
    registers_.fs = random_(), registers_.gs = random_();
  }

  std::mt19937_64 random_{7};
  Zydis z_;
  Registers registers_{};
  size_t compared_ = 0;
  std::set<std::string> names_;
};

TEST_F(AllEncodings, Legacy) {
  for (const char* prefixes :
       {"", "\x66", "\xf2", "\xf3", "\x67", "\x64", "\x65", "\xf0", "\x48", "\x43", "\x66\x48", "\x66\x4f", "\xf3\x48",
        "\xf2\x48", "\xf3\x67\x45", "\x64\x67", "\x66\xf3", "\x65\x4d", "\x2e\x36"})
    for (const char* map : {"", "\x0f", "\x0f\x38", "\x0f\x3a"})
      for (int opcode = 0; opcode < 256; ++opcode) {
        with_operands(std::string(prefixes) + map + static_cast<char>(opcode));
        if (HasFatalFailure()) return;
      }
  EXPECT_GT(names_.size(), 500u);
  EXPECT_GT(compared_, 100'000u);
}

TEST_F(AllEncodings, AMD3DNow) {
  for (int opcode = 0; opcode < 256; ++opcode)
    for (int modrm : {0x00, 0x43, 0x84, 0x04, 0x44, 0x05, 0x85}) {
      uint8_t with_sib[2] = {static_cast<uint8_t>(modrm), 0x48};
      std::string code = "\x0f\x0f";
      code += static_cast<char>(modrm);
      int behind = modrm >> 6 == 1 ? 1 : modrm >> 6 == 2 || modrm == 5 ? 4 : 0;
      if ((modrm & 7) == 4) code += static_cast<char>(with_sib[1]);
      for (int i = 0; i < behind; ++i) code += static_cast<char>(random_());
      code += static_cast<char>(opcode);
      code.resize(15);
      compare(std::as_bytes(std::span(code)));
      if (HasFatalFailure()) FAIL() << to_hex(std::as_bytes(std::span(code)));
    }
  EXPECT_GT(names_.size(), 20u);
}

TEST_F(AllEncodings, VexAndXop) {
  for (int map : {1, 2, 3, 8, 9, 10})
    for (int last = 0; last < 256; last += map < 8 ? 1 : 4)  // W, vvvv, L, pp
      for (int opcode = 0; opcode < 256; ++opcode) {
        bool has_third = (last >> 3 & 15) == 15 || (last >> 3 & 15) == 5;  // none, or one
        if (!has_third) continue;
        char first = static_cast<char>((random_() & 0xe0) | map);
        with_operands({map < 8 ? '\xc4' : '\x8f', first, static_cast<char>(last), static_cast<char>(opcode)});
        if (HasFatalFailure()) return;
      }
  EXPECT_GT(names_.size(), 400u);
}

TEST_F(AllEncodings, Evex) {
  for (int map : {1, 2, 3, 5, 6})
    for (int w_pp = 0; w_pp < 8; ++w_pp)
      for (int length_b = 0; length_b < 8; ++length_b)
        for (int opcode = 0; opcode < 256; ++opcode)
          for (int vvvv : {15, 5}) {
            char first = static_cast<char>((random_() & 0xf0) | map);
            char second = static_cast<char>((w_pp & 4) << 5 | vvvv << 3 | 4 | (w_pp & 3));
            char third = static_cast<char>(length_b << 4 | 8 | (random_() & 0x87));
            with_operands({'\x62', first, second, third, static_cast<char>(opcode)}, 2);
            if (HasFatalFailure()) return;
          }
  EXPECT_GT(names_.size(), 550u);
}

}  // namespace
}  // namespace weir::x86
