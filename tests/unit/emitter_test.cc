// What the emitter writes is disassembled by Zydis, and must be what the method is called: for all registers, and a spread of
// displacements and immediates. (opcodes_test.py sees to it that no method is left out.)
#include "instrument/emitter.h"

#include <Zydis/Zydis.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::instrument {
namespace {

using x86::Gpr;
using Condition = Emitter::Condition;

constexpr uint64_t base = 0x7000'0000;
constexpr const char* names64[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                   "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
constexpr const char* names32[] = {"eax", "ecx", "edx",  "ebx",  "esp",  "ebp",  "esi",  "edi",
                                   "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"};
constexpr int32_t numbers[] = {0, 1, -1, 5, 127, 128, -128, -129, 0x1234, -0x8000, INT32_MAX, INT32_MIN};

std::vector<Gpr> registers() {
  std::vector<Gpr> all;
  for (int r = 0; r < 16; r++) all.push_back(static_cast<Gpr>(r));
  return all;
}

std::string signed_text(int64_t n) { return n < 0 ? fmt::format("-{:#x}", -n) : fmt::format("+{:#x}", n); }
std::string hex(uint64_t n) { return fmt::format("{:#x}", n); }
std::string hex_signed(int64_t n) { return n < 0 ? fmt::format("-{:#x}", -n) : hex(static_cast<uint64_t>(n)); }

struct Disassembler {
  ZydisDecoder decoder;
  ZydisFormatter formatter;

  Disassembler() {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_TRUE);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_SIGNEDNESS, ZYDIS_SIGNEDNESS_AUTO);
    for (auto padding : {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
                         ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING})
      ZydisFormatterSetProperty(&formatter, padding, ZYDIS_PADDING_DISABLED);
  }
};

// The instructions that `emit` has written, which must be all that it has written.
template <class F>
std::string written(F emit, size_t* size = nullptr) {
  static const Disassembler zydis;
  std::byte code[512];
  memset(code, 0x06, sizeof code);
  Emitter e(code, {base});
  emit(e);
  std::string all;
  for (uint32_t at = 0; at < e.offset();) {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    char text[256];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis.decoder, code + at, sizeof code - at, &insn, operands)))
      return all + "(bad)";
    ZydisFormatterFormatInstruction(&zydis.formatter, &insn, operands, insn.operand_count_visible, text, sizeof text,
                                    base + at, nullptr);
    at += insn.length;
    all += (all.empty() ? "" : "; ") + std::string(text);
    if (at > e.offset()) all += "(too long)";
  }
  EXPECT_EQ(code[e.offset()], std::byte{0x06}) << all;
  if (size) *size = e.offset();
  return all;
}

struct Operand {
  Memory memory;
  std::string text;  // but for the size
};

std::string displaced(const std::string& inside, int32_t n) { return "[" + inside + (n ? signed_text(n) : "") + "]"; }

// Every kind of operand, with every register in it.
std::vector<Operand> operands() {
  std::vector<Operand> all;
  for (Gpr b : registers()) {
    if ((b & 7) != x86::RBP) all.push_back({at(b), displaced(names64[b], 0)});
    for (int32_t n : numbers) {
      all.push_back({at(b, n), displaced(names64[b], n)});
      all.push_back({at_wide(b, n), displaced(names64[b], n)});
    }
    for (Gpr i : registers()) {
      if (i == x86::RSP) continue;
      all.push_back({sum(b, i), displaced(fmt::format("{}+{}*1", names64[b], names64[i]), 0)});
      if ((b & 7) == x86::RBP) continue;
      for (int scale : {1, 2, 4, 8})
        all.push_back({indexed(b, i, scale), displaced(fmt::format("{}+{}*{}", names64[b], names64[i], scale), 0)});
    }
    if (b == x86::RSP) continue;
    for (int32_t n : {1, 128, INT32_MAX})
      for (int scale : {1, 2, 4, 8})
        all.push_back({scaled(b, scale, n), displaced(fmt::format("{}*{}", names64[b], scale), n)});
  }
  for (int32_t n : {1, 128, INT32_MAX}) all.push_back({absolute(n), fmt::format("[{:#x}]", n)});
  for (int64_t n : {0, -100, 0x7fff'0000})
    all.push_back({relative(static_cast<int32_t>(n)), fmt::format("[{:#x}]", base + n)});
  for (size_t i = 0, n = all.size(); i < n; i++)
    if (all[i].memory.displacement_size == 4 && !all[i].memory.is_relative)
      all.push_back({thread(all[i].memory), all[i].text});
  all.push_back({thread(0x1'0008u), "[0x10008]"});
  return all;
}

// (Zydis names no segment that nobody has written.)
std::string shown(const char* size, const Operand& o) {
  return fmt::format("{} ptr {}{}", size, o.memory.is_thread ? "gs:" : "", o.text);
}

TEST(Emitter, OperandsInMemory) {
  const std::vector<Operand> all = operands();
  for (Gpr r : registers()) {
    const char *r64 = names64[r], *r32 = names32[r];
    for (const Operand& o : all) {
      const Memory& m = o.memory;
      std::string q = shown("qword", o), d = shown("dword", o);
      auto is = [&](const std::string& name, auto emit) { ASSERT_EQ(written(emit), name); };
      is(fmt::format("mov {}, {}", r64, q), [&](Emitter& e) { e.mov(r, m); });
      is(fmt::format("mov {}, {}", q, r64), [&](Emitter& e) { e.mov(m, r); });
      is(fmt::format("mov {}, {}", r32, d), [&](Emitter& e) { e.mov32(r, m); });
      is(fmt::format("mov {}, {}", d, r32), [&](Emitter& e) { e.mov32(m, r); });
      is(fmt::format("add {}, {}", q, r64), [&](Emitter& e) { e.add(m, r); });
      is(fmt::format("add {}, {}", r64, q), [&](Emitter& e) { e.add(r, m); });
      is(fmt::format("sub {}, {}", q, r64), [&](Emitter& e) { e.sub(m, r); });
      is(fmt::format("sub {}, {}", r64, q), [&](Emitter& e) { e.sub(r, m); });
      is(fmt::format("xor {}, {}", r64, q), [&](Emitter& e) { e.xor_(r, m); });
      is(fmt::format("cmp {}, {}", q, r64), [&](Emitter& e) { e.cmp(m, r); });
      is(fmt::format("cmp {}, {}", r64, q), [&](Emitter& e) { e.cmp(r, m); });
      is(fmt::format("cmp {}, {}", d, r32), [&](Emitter& e) { e.cmp32(m, r); });
      is(fmt::format("cmp {}, {}", r32, d), [&](Emitter& e) { e.cmp32(r, m); });
      if (!m.is_thread) is(fmt::format("lea {}, {}", r64, o.text), [&](Emitter& e) { e.lea(r, m); });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Emitter, OperandsInMemoryAndImmediates) {
  for (const Operand& o : operands()) {
    const Memory& m = o.memory;
    std::string q = shown("qword", o), d = shown("dword", o);
    auto is = [&](const std::string& name, auto emit) { ASSERT_EQ(written(emit), name); };
    for (int32_t n : numbers) {
      is(fmt::format("mov {}, {}", q, hex_signed(n)), [&](Emitter& e) { e.mov(m, n); });
      is(fmt::format("mov {}, {}", d, hex_signed(n)), [&](Emitter& e) { e.mov32(m, static_cast<uint32_t>(n)); });
      is(fmt::format("cmp {}, {}", d, hex_signed(n)), [&](Emitter& e) { e.cmp32(m, static_cast<uint32_t>(n)); });
      is(fmt::format("add {}, {}", q, hex_signed(n)), [&](Emitter& e) { e.add(m, n); });
      if (n == static_cast<int8_t>(n))
        is(fmt::format("cmp {}, {}", d, hex_signed(n)), [&](Emitter& e) { e.cmp32_short(m, static_cast<int8_t>(n)); });
    }
    is("inc " + q, [&](Emitter& e) { e.inc(m); });
    is("dec " + q, [&](Emitter& e) { e.dec(m); });
    is("jmp " + q, [&](Emitter& e) { e.jmp(m); });
    if (HasFatalFailure()) return;
  }
}

TEST(Emitter, Registers) {
  auto is = [&](const std::string& name, auto emit) { EXPECT_EQ(written(emit), name); };
  for (Gpr r : registers()) {
    const char *r64 = names64[r], *r32 = names32[r];
    for (Gpr q : registers()) {
      is(fmt::format("mov {}, {}", r64, names64[q]), [&](Emitter& e) { e.mov(r, q); });
      is(fmt::format("mov {}, {}", r32, names32[q]), [&](Emitter& e) { e.mov32(r, q); });
      for (int32_t n : numbers)
        is(fmt::format("imul {}, {}, {}", r32, names32[q], hex_signed(n)),
           [&](Emitter& e) { e.imul32(r, q, static_cast<uint32_t>(n)); });
    }
    for (uint64_t n : {uint64_t{0}, uint64_t{1}, 0x1234'5678'9abc'def0u, ~uint64_t{0}})
      is(fmt::format("mov {}, {}", r64, hex_signed(static_cast<int64_t>(n))), [&](Emitter& e) { e.movabs(r, n); });
    for (uint32_t n : {0u, 1u, 0x8000'0000u})
      is(fmt::format("mov {}, {}", r32, hex_signed(static_cast<int32_t>(n))), [&](Emitter& e) { e.mov32(r, n); });
    for (int n : {-128, -8, -1, 0, 127}) {
      is(fmt::format("and {}, {}", r64, hex_signed(n)), [&](Emitter& e) { e.and_(r, static_cast<int8_t>(n)); });
    }
    for (uint8_t n : {1, 4, 31}) {
      is(fmt::format("shl {}, {:#x}", r64, n), [&](Emitter& e) { e.shl(r, n); });
      is(fmt::format("shr {}, {:#x}", r32, n), [&](Emitter& e) { e.shr32(r, n); });
    }
    is(fmt::format("jmp {}", r64), [&](Emitter& e) { e.jmp(r); });
  }
  for (int32_t n : numbers)
    is(fmt::format("add eax, {}", hex_signed(n)), [&](Emitter& e) { e.add_eax(static_cast<uint32_t>(n)); });
  for (int n : {-128, 0, 127})
    is(fmt::format("add al, {}", hex_signed(n)), [&](Emitter& e) { e.add_al(static_cast<int8_t>(n)); });
  is("lahf", [](Emitter& e) { e.lahf(); });
  is("sahf", [](Emitter& e) { e.sahf(); });
  is("seto al", [](Emitter& e) { e.seto_al(); });
  is("ret", [](Emitter& e) { e.ret(); });
  is("ret 0x1234", [](Emitter& e) { e.ret(0x1234); });
  is("syscall", [](Emitter& e) { e.syscall(); });
  is("nop", [](Emitter& e) { e.nop(); });
}

// What probes compute with.
TEST(Emitter, Operations) {
  auto is = [&](const std::string& name, auto emit) { ASSERT_EQ(written(emit), name); };
  constexpr const char* names8[] = {"al",  "cl",  "dl",   "bl",   "spl",  "bpl",  "sil",  "dil",
                                    "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b"};
  auto names16 = [](Gpr r) { return r < 8 ? std::string(names32[r] + 1) : std::string("r") + std::to_string(r) + "w"; };
  constexpr const char* arithmetic[] = {"add", "or", "", "", "and", "sub", "xor", "cmp"};
  constexpr Emitter::Arithmetic kinds[] = {Emitter::Add,      Emitter::Or,  Emitter::And,
                                           Emitter::Subtract, Emitter::Xor, Emitter::Compare};
  constexpr const char* shifts[] = {"", "", "", "", "shl", "shr", "", "sar"};
  for (Gpr r : registers()) {
    const char *r64 = names64[r], *r32 = names32[r];
    for (Gpr q : registers()) {
      is(fmt::format("xchg {}, {}", names64[q], r64), [&](Emitter& e) { e.xchg(r, q); });
      is(fmt::format("movzx {}, {}", r32, names8[q]), [&](Emitter& e) { e.movzx_byte(r, q); });
      is(fmt::format("movsx {}, {}", r64, names16(q)), [&](Emitter& e) { e.movsx_word(r, q); });
      is(fmt::format("movsxd {}, {}", r64, names32[q]), [&](Emitter& e) { e.movsxd(r, q); });
      is(fmt::format("test {}, {}", r64, names64[q]), [&](Emitter& e) { e.test(r, q); });
      is(fmt::format("imul {}, {}", r64, names64[q]), [&](Emitter& e) { e.imul(r, q); });
      is(fmt::format("popcnt {}, {}", r64, names64[q]), [&](Emitter& e) { e.popcnt(r, q); });
      for (auto kind : kinds)
        is(fmt::format("{} {}, {}", arithmetic[kind], r64, names64[q]), [&](Emitter& e) { e.arithmetic(kind, r, q); });
      for (int32_t n : numbers)
        is(fmt::format("imul {}, {}, {}", r64, names64[q], hex_signed(n)), [&](Emitter& e) { e.imul(r, q, n); });
    }
    for (int32_t n : numbers) {
      for (auto kind : kinds)
        is(fmt::format("{} {}, {}", arithmetic[kind], r64, hex_signed(n)), [&](Emitter& e) { e.arithmetic(kind, r, n); });
      is(fmt::format("and {}, {}", r32, hex_signed(n)), [&](Emitter& e) { e.and32(r, static_cast<uint32_t>(n)); });
      bool is_low = n >= 0;
      is(fmt::format("mov {}, {}", is_low ? r32 : r64, hex_signed(n)),
         [&](Emitter& e) { e.set(r, static_cast<uint64_t>(int64_t{n})); });
    }
    is(fmt::format("mov {}, 0x123456789abcdef0", r64), [&](Emitter& e) { e.set(r, 0x1234'5678'9abc'def0); });
    for (uint8_t n : {1, 4, 63}) {
      for (auto kind : {Emitter::Left, Emitter::Right, Emitter::RightSigned})
        is(fmt::format("{} {}, {:#x}", shifts[kind], r64, n), [&](Emitter& e) { e.shift(kind, r, n); });
      is(fmt::format("bt {}, {:#x}", r64, n), [&](Emitter& e) { e.bt(r, n); });
    }
    is(fmt::format("shl {}, cl", r64), [&](Emitter& e) { e.shift_by_cl(Emitter::Left, r); });
    is(fmt::format("rdfsbase {}", r64), [&](Emitter& e) { e.rdfsbase(r); });
    for (uint8_t n = 0; n < 16; n++) {
      is(fmt::format("pmovmskb {}, xmm{}", r32, n), [&](Emitter& e) { e.pmovmskb(r, Xmm{n}); });
      is(fmt::format("vmovmskps {}, xmm{}", r32, n), [&](Emitter& e) { e.vmovmsk(r, Xmm{n}, false, false); });
      is(fmt::format("vmovmskpd {}, ymm{}", r32, n), [&](Emitter& e) { e.vmovmsk(r, Xmm{n}, true, true); });
    }
    for (uint8_t n = 0; n < 8; n++) {
      is(fmt::format("pmovmskb {}, mm{}", r32, n), [&](Emitter& e) { e.pmovmskb_mmx(r, n); });
      is(fmt::format("kmovw {}, k{}", r32, n), [&](Emitter& e) { e.kmovw(r, Mask{n}); });
    }
    if (HasFatalFailure()) return;
  }
  is("lodsb", [](Emitter& e) { e.lodsb(); });
  EXPECT_EQ(Emitter::Below, 2);
  std::vector<Operand> all = operands();
  for (Gpr b : registers())
    for (int32_t n : {1, 128})
      all.push_back({address(b, x86::RCX, 8, n), displaced(fmt::format("{}+rcx*8", names64[b]), n)});
  for (const Operand& o : all) {
    const Memory& m = o.memory;
    for (Gpr r : registers()) {
      if (!m.is_thread) is(fmt::format("lea {}, {}", names32[r], o.text), [&](Emitter& e) { e.lea32(r, m); });
      is(fmt::format("movzx {}, {}", names32[r], shown("byte", o)), [&](Emitter& e) { e.load(r, m, 1); });
      is(fmt::format("movzx {}, {}", names32[r], shown("word", o)), [&](Emitter& e) { e.load(r, m, 2); });
      is(fmt::format("mov {}, {}", names32[r], shown("dword", o)), [&](Emitter& e) { e.load(r, m, 4); });
      is(fmt::format("mov {}, {}", names64[r], shown("qword", o)), [&](Emitter& e) { e.load(r, m, 8); });
      is(fmt::format("movsxd {}, {}", names64[r], shown("dword", o)), [&](Emitter& e) { e.movsxd(r, m); });
      is(fmt::format("mov {}, {}", shown("byte", o), names8[r]), [&](Emitter& e) { e.store(m, r, 1); });
      if (!m.is_thread) is(fmt::format("mov {}, {}", shown("word", o), names16(r)), [&](Emitter& e) { e.store(m, r, 2); });
      is(fmt::format("mov {}, {}", shown("dword", o), names32[r]), [&](Emitter& e) { e.store(m, r, 4); });
      is(fmt::format("mov {}, {}", shown("qword", o), names64[r]), [&](Emitter& e) { e.store(m, r, 8); });
      is(fmt::format("vmovdqu {}, ymm{}", shown("ymmword", o), int(r)),
         [&](Emitter& e) { e.vmovdqu_ymm(m, Xmm{uint8_t(r)}); });
      if (HasFatalFailure()) return;
    }
  }
}

// How long instructions are is what bounds and marks rely on.
TEST(Emitter, Lengths) {
  auto length = [](auto emit) {
    size_t size = 0;
    written(emit, &size);
    return size;
  };
  EXPECT_EQ(length([](Emitter& e) { e.mov(x86::RCX, thread(8)); }), 9u);
  EXPECT_EQ(length([](Emitter& e) { e.lea(x86::RCX, at(x86::RCX, 127)); }), 4u);
  EXPECT_EQ(length([](Emitter& e) { e.lea(x86::RCX, at(x86::RCX, 128)); }), 7u);
  EXPECT_EQ(length([](Emitter& e) { e.lea(x86::RCX, at_wide(x86::RCX, 1)); }), 7u);
  EXPECT_EQ(length([](Emitter& e) { e.lea(x86::RCX, at(x86::RCX, 0)); }), 4u);
  EXPECT_EQ(length([](Emitter& e) { e.lea(x86::RCX, at(x86::RCX)); }), 3u);
  EXPECT_EQ(length([](Emitter& e) { e.lea(x86::RSP, at(x86::RSP, 8)); }), 5u);
  EXPECT_EQ(length([](Emitter& e) { e.add(thread(8), 127); }), 10u);
  EXPECT_EQ(length([](Emitter& e) { e.add(thread(8), 128); }), 13u);
  EXPECT_EQ(length([](Emitter& e) { e.cmp32(thread(8), 0u); }), 12u);
  EXPECT_EQ(length([](Emitter& e) { e.cmp32_short(thread(8), 0); }), 9u);
}

TEST(Emitter, Transfers) {
  auto is = [&](const std::string& name, auto emit) { EXPECT_EQ(written(emit), name); };
  auto ahead = [&](const std::string& name, int size, auto emit) {
    is(fmt::format("{} {}; nop; nop", name, hex(base + static_cast<uint64_t>(size) + 1)), [&](Emitter& e) {
      uint32_t displacement = emit(e);
      e.nop();
      e.comes_here(displacement);
      e.nop();
    });
  };
  auto ahead_short = [&](const std::string& name, auto emit) {
    is(fmt::format("{} {}; nop; nop", name, hex(base + 3)), [&](Emitter& e) {
      uint32_t displacement = emit(e);
      e.nop();
      e.comes_here_short(displacement);
      e.nop();
    });
  };
  ahead("jmp", 5, [](Emitter& e) { return e.jmp(); });
  ahead("call", 5, [](Emitter& e) { return e.call(); });
  ahead_short("jmp", [](Emitter& e) { return e.jmp_short(); });
  ahead_short("jrcxz", [](Emitter& e) { return e.jrcxz(); });
  constexpr const char* conditions[] = {"jo", "jno", "jb", "jnb", "jz", "jnz", "jbe", "jnbe",
                                        "js", "jns", "jp", "jnp", "jl", "jnl", "jle", "jnle"};
  for (uint8_t c = 0; c < 16; c++) {
    ahead(conditions[c], 6, [&](Emitter& e) { return e.jcc(c); });
    ahead_short(conditions[c], [&](Emitter& e) { return e.jcc_short(c); });
  }
  EXPECT_STREQ(conditions[Condition::AboveOrEqual], "jnb");
  EXPECT_STREQ(conditions[Condition::Equal], "jz");
  EXPECT_STREQ(conditions[Condition::NotEqual], "jnz");
  EXPECT_STREQ(conditions[Condition::BelowOrEqual], "jbe");
  for (Gpr r : registers())
    is(fmt::format("lea {}, [{}]; nop; nop", names64[r], hex(base + 8)), [&](Emitter& e) {
      uint32_t displacement = e.lea_ahead(r);
      e.nop();
      e.comes_here(displacement);
      e.nop();
    });
  is("nop; nop; jmp 0x70000001; jmp 0x70000001", [](Emitter& e) {
    e.nop(), e.nop();
    e.jmp_to(1), e.jmp_short_to(1);
  });
  is("nop; jmp 0x70001000; jmp 0x6ffffff0", [](Emitter& e) {
    e.nop();
    e.jmp(CachePc{base + 0x1000}), e.jmp(CachePc{base - 16});
  });
  is("jz 0x70000003; nop; ret", [](Emitter& e) { e.skip_if(Emitter::Equal, [&] { e.nop(); }), e.ret(); });
  is("nop; lea rcx, [0x70002000]", [](Emitter& e) { e.nop(), e.lea(x86::RCX, e.place({base + 0x2000})); });
  is("jmp 0x70000010; nop", [](Emitter& e) { e.leads_to(e.jmp(), 16), e.nop(); });
  is("jmp 0x70000010; nop", [](Emitter& e) { e.leads_to_short(e.jmp_short(), 16), e.nop(); });
  is("jmp 0x6fffff05; nop", [](Emitter& e) { e.set_displacement(e.jmp(), -0x100), e.nop(); });
}

TEST(Emitter, Vectors) {
  auto is = [&](const std::string& name, auto emit) { ASSERT_EQ(written(emit), name); };
  for (const Operand& o : operands()) {
    const Memory& m = o.memory;
    // A displacement of 8 bits counts units: others must be written wide.
    auto counts = [&](int unit) { return m.displacement_size != 1 || m.displacement % unit == 0; };
    std::string x = shown("xmmword", o), z = shown("zmmword", o), q = shown("qword", o);
    for (uint8_t n : {0, 7, 8, 15, 16, 23, 24, 30, 31}) {
      if (counts(16)) {
        is(fmt::format("vmovdqu64 {}, xmm{}", x, n), [&](Emitter& e) { e.vmovdqu64(m, Xmm{n}); });
        is(fmt::format("vmovdqu64 xmm{}, {}", n, x), [&](Emitter& e) { e.vmovdqu64(Xmm{n}, m); });
      }
      if (counts(64)) {
        is(fmt::format("vmovdqu64 {}, zmm{}", z, n), [&](Emitter& e) { e.vmovdqu64(m, Zmm{n}); });
        is(fmt::format("vmovdqu64 zmm{}, {}", n, z), [&](Emitter& e) { e.vmovdqu64(Zmm{n}, m); });
        is(fmt::format("vmovdqu8 zmm{} {{k5}} {{z}}, {}", n, z), [&](Emitter& e) { e.vmovdqu8(Zmm{n}, Mask{5}, m); });
        is(fmt::format("vpcmpb k3, zmm{}, {}, 0x4", n, z), [&](Emitter& e) { e.vpcmpneqb(Mask{3}, Mask{0}, Zmm{n}, m); });
        is(fmt::format("vpcmpb k7 {{k6}}, zmm{}, {}, 0x4", n, z),
           [&](Emitter& e) { e.vpcmpneqb(Mask{7}, Mask{6}, Zmm{n}, m); });
      }
      if (counts(8)) {
        is(fmt::format("vmovhps xmm{}, xmm{}, {}", n, 31 - n, q),
           [&](Emitter& e) { e.vmovhps(Xmm{n}, Xmm{static_cast<uint8_t>(31 - n)}, m); });
        is(fmt::format("vpaddq xmm{}, xmm{}, {} {{1to2}}", n, 31 - n, q),
           [&](Emitter& e) { e.vpaddq(Xmm{n}, Xmm{static_cast<uint8_t>(31 - n)}, m); });
      }
      if (HasFatalFailure()) return;
    }
    for (uint8_t k = 0; k < 8; k++) {
      is(fmt::format("kmovq {}, k{}", q, k), [&](Emitter& e) { e.kmovq(m, Mask{k}); });
      is(fmt::format("kmovq k{}, {}", k, q), [&](Emitter& e) { e.kmovq(Mask{k}, m); });
    }
    if (HasFatalFailure()) return;
  }
  for (Gpr r : registers()) {
    for (uint8_t k = 0; k < 8; k++) {
      is(fmt::format("kmovq k{}, {}", k, names64[r]), [&](Emitter& e) { e.kmovq(Mask{k}, r); });
      is(fmt::format("kmovq {}, k{}", names64[r], k), [&](Emitter& e) { e.kmovq(r, Mask{k}); });
    }
    for (uint8_t n = 0; n < 32; n++) {
      is(fmt::format("vmovq {}, xmm{}", names64[r], n), [&](Emitter& e) { e.vmovq(r, Xmm{n}); });
      is(fmt::format("vpextrq {}, xmm{}, 0x1", names64[r], n), [&](Emitter& e) { e.vpextrq(r, Xmm{n}, 1); });
    }
    if (HasFatalFailure()) return;
  }
}

TEST(EmitterDeath, WhatCannotBeWritten) {
  EXPECT_DEATH(written([](Emitter& e) { e.leads_to_short(e.jmp_short(), 130); }), "internal error");
  EXPECT_DEATH(written([](Emitter& e) { e.set_displacement(e.jmp(), int64_t{1} << 31); }), "internal error");
  EXPECT_DEATH(written([](Emitter& e) { e.vmovdqu64(at(x86::RAX, 8), Xmm{1}); }), "internal error");
  EXPECT_DEATH(written([](Emitter& e) { e.inc(thread(at(x86::RAX, 8))); }), "internal error");
}

template <size_t n>
std::vector<std::byte> of(const uint8_t (&bytes)[n]) {
  auto b = std::as_bytes(std::span(bytes));
  return {b.begin(), b.end()};
}

TEST(Emitter, PartsOfTheProgram) {
  auto is = [&](const std::string& name, auto emit) { EXPECT_EQ(written(emit), name); };
  const uint8_t fs[] = {0x64}, none[1] = {};
  auto far_away = of({0x84, 0xd8, 0x10, 0, 0, 0});  // [rax + rbx*8 + 16], with 32 bits
  for (Gpr r : registers()) {
    is(fmt::format("mov {}, qword ptr fs:[r8+rbx*8+0x10]", names64[r]), [&](Emitter& e) {
      e.mov(r, {fs, 0x41, far_away});
    });
    is(fmt::format("mov {}, dword ptr [rax+r11*8+0x10]", names32[r]), [&](Emitter& e) {
      e.mov32(r, {std::span(none, 0), 0x42, far_away});
    });
    is(fmt::format("lea {}, [rax+rbx*8+0x10]", names64[r]), [&](Emitter& e) {
      e.lea(r, {std::span(none, 0), 0, far_away});
    });
  }
  auto register_r9 = of({0xd1});
  is("mov rcx, r9", [&](Emitter& e) { e.mov(x86::RCX, {std::span(none, 0), 0x41, register_r9}); });
  const uint8_t shl_by[] = {0x48, 0xc1};
  auto by = of({7});
  is("shl qword ptr [rbp], 0x7", [&](Emitter& e) { e.copy_with(shl_by, 4, at(x86::RBP, 0), by); });
  is("shl qword ptr [rax], 0x7", [&](Emitter& e) { e.copy(of({0x48, 0xc1, 0x20, 7})); });
}

// A thread may be reached by another segment, with displacements that relocations complete.
TEST(Emitter, PlacesOfThreads) {
  std::vector<uint32_t> places;
  EXPECT_EQ(written([&](Emitter& e) {
              e.reach_thread(0x64, places);
              e.mov(x86::RAX, thread(8u)), e.inc(thread(at_wide(x86::RAX, 16))), e.mov(x86::RAX, at(x86::RCX, 8));
              e.vmovdqu64(thread(32u), Xmm{31});
              e.add(thread(24u), 5);
            }),
            "mov rax, qword ptr fs:[0x8]; inc qword ptr fs:[rax+0x10]; mov rax, qword ptr [rcx+0x8]; "
            "vmovdqu64 xmmword ptr fs:[0x20], xmm31; add qword ptr fs:[0x18], 0x5");
  EXPECT_EQ(places, (std::vector<uint32_t>{5, 13, 29, 38}));
}

TEST(Emitter, Numbers) {
  std::byte code[64] = {};
  Emitter e(code, {base});
  EXPECT_TRUE(e.has_room(64) && !e.has_room(65));
  e.nop();
  e.align(8);
  EXPECT_EQ(e.offset(), 8u);
  EXPECT_EQ(e.pc().value, base + 8);
  EXPECT_EQ(e.pc_at(3).value, base + 3);
  e.quad(0x1122'3344'5566'7788);
  EXPECT_EQ(code[8], std::byte{0x88});
  EXPECT_EQ(e.offset(), 16u);
  EXPECT_TRUE(Emitter::reaches({base}, {base + 0x7000'0000}));
  EXPECT_FALSE(Emitter::reaches({base}, {base + 0x8000'0000}));
}

}  // namespace
}  // namespace weir::instrument
