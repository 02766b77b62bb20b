// Lifting: blocks and edges of small pieces of code, written as bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "x86/function.h"

namespace weir::x86 {
namespace {

// Memory made of pieces of hex.
struct Program {
  std::map<uint64_t, std::vector<std::byte>> pieces;

  Program& put(uint64_t at, const std::string& hex) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 3)
      bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    pieces[at] = bytes;
    return *this;
  }

  ReadMemory reader() const {
    return [this](AppPc pc, size_t size) -> std::span<const std::byte> {
      auto piece = pieces.upper_bound(pc.value);
      if (piece == pieces.begin()) return {};
      --piece;
      size_t offset = pc.value - piece->first;
      if (offset >= piece->second.size()) return {};
      return std::span(piece->second).subspan(offset).first(std::min(size, piece->second.size() - offset));
    };
  }

  Function lift_all(uint64_t entry = 0x1000, const LiftOptions& options = {}) const {
    uint64_t end = 0x1000 + pieces.at(0x1000).size();
    return lift({entry}, {{0x1000}, {end}}, reader(), reader(), options);
  }
};

Program program(const std::string& hex) { return Program().put(0x1000, hex); }

// A block in words: "1000-1005 Branch ft=1 tk=2 entry #2".
std::string show(const Block& b) {
  static const char* const ends[] = {"FallThrough", "Jump",    "Branch", "Call",       "IndirectJump",
                                     "Return",      "Syscall", "Trap",   "Undecodable"};
  std::string text = fmt::format("{:x}-{:x} {}", b.begin.value, b.end.value, ends[static_cast<int>(b.ends)]);
  if (b.fallthrough != no_block) text += fmt::format(" ft={}", b.fallthrough);
  if (b.taken != no_block) text += fmt::format(" tk={}", b.taken);
  if (b.is_entry) text += " entry";
  return text + fmt::format(" #{}", b.count);
}

std::vector<std::string> show(const Function& f) {
  std::vector<std::string> lines;
  for (const Block& b : f.blocks) lines.push_back(show(b));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Lift, Diamond) {
  // test edi,edi; je 1008; xor eax,eax; jmp 100a; mov eax,edi; ret
  EXPECT_EQ(show(program("85 ff 74 04 31 c0 eb 02 89 f8 c3").lift_all()),
            (Lines{"1000-1004 Branch ft=1 tk=2 entry #2", "1004-1008 Jump tk=3 #2", "1008-100a FallThrough ft=3 #1",
                   "100a-100b Return #1"}));
}

TEST(Lift, LoopSplitsTheBlockItJumpsInto) {
  // xor eax,eax; inc eax; dec edi; jne 1002; ret
  EXPECT_EQ(show(program("31 c0 ff c0 ff cf 75 fa c3").lift_all()),
            (Lines{"1000-1002 FallThrough ft=1 entry #1", "1002-1008 Branch ft=2 tk=1 #3", "1008-1009 Return #1"}));
}

TEST(Lift, BackwardJumpIntoCodeBeforeTheEntry) {
  // 1000: inc eax; ret; 1003 (entry): jmp 1000
  EXPECT_EQ(show(program("ff c0 c3 eb fb").lift_all(0x1003)),
            (Lines{"1000-1003 Return #2", "1003-1005 Jump tk=0 entry #1"}));
}

TEST(Lift, CallsAndSystemCallsEndBlocks) {
  // call 2000; syscall; call rax; ret
  EXPECT_EQ(show(program("e8 fb 0f 00 00 0f 05 ff d0 c3").lift_all()),
            (Lines{"1000-1005 Call ft=1 entry #1", "1005-1007 Syscall ft=2 entry #1", "1007-1009 Call ft=3 entry #1",
                   "1009-100a Return entry #1"}));
}

TEST(Lift, CallOfTheNextInstruction) {
  EXPECT_EQ(show(program("e8 00 00 00 00 58 c3").lift_all()),
            (Lines{"1000-1005 Call ft=1 entry #1", "1005-1007 Return entry #2"}));
}

TEST(Lift, CallAtTheEnd) { EXPECT_EQ(show(program("55 e8 00 10 00 00").lift_all()), (Lines{"1000-1006 Call entry #2"})); }

TEST(Lift, FallsOffTheEnd) {
  EXPECT_EQ(show(program("89 f8").lift_all()), (Lines{"1000-1002 FallThrough entry #1"}));
  // je 1000, at the end; and an instruction that is cut by it
  EXPECT_EQ(show(program("74 fe").lift_all()), (Lines{"1000-1002 Branch tk=0 entry #1"}));
  EXPECT_EQ(show(program("90 48 8b").lift_all()), (Lines{"1000-1001 Undecodable entry #2"}));
}

TEST(Lift, LeavesTheFunction) {
  // je 2000; jmp 3000
  EXPECT_EQ(show(program("0f 84 fa 0f 00 00 e9 f5 1f 00 00").lift_all()),
            (Lines{"1000-1006 Branch ft=1 entry #1", "1006-100b Jump #1"}));
}

TEST(Lift, OverlappingInstructions) {
  // je 1003; lock cmpxchg [rdi],ecx; ret. The jump goes past the lock prefix.
  EXPECT_EQ(show(program("74 01 f0 0f b1 0f c3").lift_all()),
            (Lines{"1000-1002 Branch ft=1 tk=2 entry #1", "1002-1006 FallThrough ft=3 #1", "1003-1006 FallThrough ft=3 #1",
                   "1006-1007 Return #1"}));
}

TEST(Lift, OverlapThatMeetsInTheMiddleOfABlock) {
  // 1000: jmp 1003; 1002: mov eax, imm32 (b8 90 90 90 90); 1007: inc eax; ret. First as nops from 1003 on.
  Function f = program("74 01 b8 90 90 90 90 ff c0 c3").lift_all();
  EXPECT_EQ(show(f), (Lines{"1000-1002 Branch ft=1 tk=2 entry #1", "1002-1007 FallThrough ft=3 #1",
                            "1003-1007 FallThrough ft=3 #4", "1007-100a Return #2"}));
}

TEST(Lift, Traps) {
  // int3; ud2; nop
  EXPECT_EQ(show(program("cc 0f 0b 90").lift_all()), (Lines{"1000-1001 Trap ft=1 entry #1", "1001-1003 Trap entry #1"}));
}

TEST(Lift, FarReturns) {
  // lretq; iretq: they may lead anywhere, as an indirect jump does
  EXPECT_EQ(show(program("48 cb").lift_all()), (Lines{"1000-1002 IndirectJump entry #1"}));
  EXPECT_EQ(show(program("48 cf").lift_all()), (Lines{"1000-1002 IndirectJump entry #1"}));
}

TEST(Lift, NotDecodable) {
  EXPECT_EQ(show(program("90 06 90").lift_all()), (Lines{"1000-1001 Undecodable entry #2"}));
  EXPECT_EQ(show(program("cb").lift_all()), (Lines{"1000-1001 Undecodable entry #1"}));
  // Unknown, but surely no branch and of known length.
  EXPECT_EQ(show(program("c4 e3 79 ff c0 07 c3").lift_all()), (Lines{"1000-1007 Return entry #2"}));
}

TEST(Lift, UnreadableCode) {
  Program p;
  p.put(0x1ffe, "90 90");
  p.put(0x3000, "c3");
  Function f = lift({0x1ffe}, {{0x1ffe}, {0x3001}}, p.reader(), p.reader());
  EXPECT_EQ(show(f), (Lines{"1ffe-2000 Undecodable entry #3"}));
  f = lift({0x3000}, {{0x1ffe}, {0x3001}}, p.reader(), p.reader());
  EXPECT_EQ(show(f), (Lines{"3000-3001 Return entry #1"}));
  f = lift({0x2800}, {{0x1ffe}, {0x3001}}, p.reader(), p.reader());
  EXPECT_EQ(show(f), (Lines{"2800-2800 Undecodable entry #1"}));
}

TEST(Lift, EntryOutsideTheBounds) {
  EXPECT_TRUE(program("c3").lift_all(0x2000).blocks.empty());
  Program p = program("c3");
  EXPECT_TRUE(lift({0x1000}, {{0x1000}, {0x1000}}, p.reader(), p.reader()).blocks.empty());
}

TEST(Lift, HugeBounds) {
  Program p = program("74 01 c3 c3");
  Function f = lift({0x1000}, {{0}, {1ull << 46}}, p.reader(), p.reader());
  EXPECT_EQ(show(f), (Lines{"1000-1002 Branch ft=1 tk=2 entry #1", "1002-1003 Return #1", "1003-1004 Return #1"}));
}

TEST(Lift, InstructionAcrossTheEndOfTheWindow) {
  // Far more than the 48 KiB behind the entry that are looked at in bounds this large; instructions of 7 bytes.
  std::string hex;
  for (int i = 0; i < 8000; ++i) hex += "48 8d 05 00 00 00 00 ";
  Program p = program(hex + "c3");
  Function f = lift({0x1000}, {{0x1000}, {0x1000 + (4 << 20)}}, p.reader(), p.reader());
  ASSERT_EQ(f.blocks.size(), 1u);
  EXPECT_EQ(f.blocks[0].ends, BlockEnd::FallThrough);
  EXPECT_GE(f.blocks[0].end.value, 0x1000u + (48 << 10));
}

TEST(Lift, LimitOfInstructions) {
  Function f = program("90 90 74 01 c3 c3").lift_all(0x1000, {.max_insns = 3});
  EXPECT_EQ(show(f), (Lines{"1000-1004 Branch entry #3"}));
  f = program("90 90 74 01 c3 c3").lift_all(0x1000, {.max_insns = 1});
  EXPECT_EQ(show(f), (Lines{"1000-1001 FallThrough entry #1"}));
}

constexpr const char* three_cases = "b8 01 00 00 00 c3 b8 02 00 00 00 c3 b8 03 00 00 00 c3";  // 6 bytes each

Lines targets_of(const Function& f) {
  Lines lines;
  for (AppPc pc : f.jump_targets) {
    BlockId id = f.block_at(pc);
    lines.push_back(fmt::format("{:x}{}", pc.value, id != no_block && f.blocks[id].is_entry ? "" : "?"));
  }
  return lines;
}

TEST(JumpTable, PositionIndependent) {
  // cmp edi,2; ja out; lea rdx,[rip+0x2000-…]; mov edi,edi; movsxd rax,[rdx+rdi*4]; add rax,rdx; notrack jmp rax
  Program p =
      program(std::string("83 ff 02 77 25 48 8d 15 f4 0f 00 00 89 ff 48 63 04 ba 48 01 d0 3e ff e0 ") + three_cases);
  // The cases are at 1018, 101e and 1024; behind the table is another that looks like it.
  p.put(0x2000, "18 f0 ff ff 1e f0 ff ff 24 f0 ff ff 19 f0 ff ff");
  Function f = p.lift_all();
  EXPECT_EQ(targets_of(f), (Lines{"1018", "101e", "1024"}));
  EXPECT_EQ(f.blocks.size(), 5u);
}

TEST(JumpTable, ClangOrderAndCopies) {
  // lea rcx,[rip+T]; movsxd rax,[rcx+rdi*4]; add rcx,rax; mov rdx,rcx; jmp rdx — without a bound: up to the first outside
  Program p = program(std::string("48 8d 0d f9 0f 00 00 48 63 04 b9 48 01 c1 48 89 ca ff e2 ") + three_cases);
  p.put(0x2000, "13 f0 ff ff 19 f0 ff ff 1f f0 ff ff 00 00 00 00 13 f0 ff ff");
  EXPECT_EQ(targets_of(p.lift_all()), (Lines{"1013", "1019", "101f"}));
}

TEST(JumpTable, Absolute) {
  Program p = program(std::string("ff 24 fd 00 20 00 00 ") + three_cases);  // jmp [rdi*8+0x2000]
  p.put(0x2000, "07 10 00 00 00 00 00 00 0d 10 00 00 00 00 00 00 13 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  EXPECT_EQ(targets_of(p.lift_all()), (Lines{"1007", "100d", "1013"}));
  // mov rax,[rdi*8+0x2000]; jmp rax, behind and edi,1
  p.put(0x1000, std::string("83 e7 01 48 8b 04 fd 00 20 00 00 ff e0 ") + three_cases);
  p.put(0x2000, "0d 10 00 00 00 00 00 00 13 10 00 00 00 00 00 00 19 10 00 00 00 00 00 00");
  EXPECT_EQ(targets_of(p.lift_all()), (Lines{"100d", "1013"}));
}

TEST(JumpTable, ComputedGotoWithAHoistedBase) {
  // lea rbx,[rip+T]; jmp 100b; (two nops); 100b: movzx eax,[rdi]; jmp [rbx+rax*8]; the cases
  Program p = program(std::string("48 8d 1d f9 0f 00 00 eb 02 90 90 0f b6 07 ff 24 c3 ") + three_cases);
  p.put(0x2000, "11 10 00 00 00 00 00 00 17 10 00 00 00 00 00 00 1d 10 00 00 00 00 00 00");
  EXPECT_EQ(targets_of(p.lift_all()), (Lines{"1011", "1017", "101d"}));
}

TEST(JumpTable, EntriesThatLeaveTheFunction) {
  // cmp edi,2; ja out; jmp [rdi*8+0x2000]: the first case is in a cold part elsewhere
  Program p = program(std::string("83 ff 02 77 19 ff 24 fd 00 20 00 00 ") + three_cases);
  p.put(0x2000, "00 90 00 00 00 00 00 00 0c 10 00 00 00 00 00 00 12 10 00 00 00 00 00 00 18 10 00 00 00 00 00 00");
  EXPECT_EQ(targets_of(p.lift_all()), (Lines{"100c", "1012"}));
  // The same bound, of a value in memory: cmp dword [rsp+8],2
  p.put(0x1000, std::string("83 7c 24 08 02 77 19 ff 24 fd 00 20 00 00 ") + three_cases);
  p.put(0x2000, "00 90 00 00 00 00 00 00 0e 10 00 00 00 00 00 00 14 10 00 00 00 00 00 00 1a 10 00 00 00 00 00 00");
  EXPECT_EQ(targets_of(p.lift_all()), (Lines{"100e", "1014"}));
}

TEST(JumpTable, EndsAtTheNextTable) {
  // lea rsi,[rip+0x2008-…]; then as above: what is at 2008 belongs to another table.
  Program p = program(std::string("48 8d 35 01 10 00 00 48 8d 0d f2 0f 00 00 48 63 04 b9 48 01 c8 ff e0 ") + three_cases);
  p.put(0x2000, "17 f0 ff ff 1d f0 ff ff 23 f0 ff ff 17 f0 ff ff");
  EXPECT_EQ(targets_of(p.lift_all()), (Lines{"1017", "101d"}));
}

TEST(JumpTable, NoTable) {
  EXPECT_TRUE(program("ff e0").lift_all().jump_targets.empty());
  EXPECT_TRUE(program("ff 25 00 00 00 00").lift_all().jump_targets.empty());
  EXPECT_TRUE(program("ff 24 fd 00 20 00 00").lift_all().jump_targets.empty());  // nothing to read there
}

// What every lifted function must be, whatever the bytes.
void check_invariants(const Function& f) {
  size_t next_insn = 0;
  AppPc last_begin{};
  for (BlockId id = 0; id < f.blocks.size(); ++id) {
    const Block& b = f.blocks[id];
    ASSERT_TRUE(id == 0 || last_begin < b.begin);
    last_begin = b.begin;
    ASSERT_EQ(b.first, next_insn);
    ASSERT_GE(b.count, 1u);
    next_insn += b.count;
    ASSERT_EQ(f.block_at(b.begin), id);
    AppPc pc = b.begin;
    for (const Insn& insn : f.insns_of(b)) {
      ASSERT_EQ(insn.pc, pc);
      pc = insn.next();
    }
    ASSERT_EQ(pc, b.end);
    ASSERT_LE(b.end, f.bounds.end);
    if (b.fallthrough != no_block) {
      ASSERT_EQ(f.blocks[b.fallthrough].begin, b.end);
    }
    if (b.taken != no_block) {
      ASSERT_EQ(f.blocks[b.taken].begin, f.insns_of(b).back().target);
    }
    for (const Insn& insn : f.insns_of(b).first(b.count - 1)) ASSERT_EQ(insn.kind(), Kind::Plain);
    // No target of a direct branch lies inside without a block of its own.
    const Insn& last = f.insns_of(b).back();
    bool direct = last.kind() == Kind::Jump || last.kind() == Kind::Branch;
    if (direct && f.bounds.contains(last.target)) {
      ASSERT_NE(b.taken, no_block);
    }
  }
  ASSERT_EQ(next_insn, f.insns.size());
  for (AppPc pc : f.jump_targets) ASSERT_TRUE(f.blocks.at(f.block_at(pc)).is_entry);
}

TEST(Lift, RandomBytes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 300 + 1);
    for (std::byte& b : bytes) {
      uint64_t r = random();
      // Many branches, so that there are many blocks.
      b = r & 1 ? static_cast<std::byte>(r >> 8) : static_cast<std::byte>(0x70 + (r >> 8) % 16);
    }
    ReadMemory read = [&](AppPc pc, size_t size) -> std::span<const std::byte> {
      size_t offset = pc.value - 0x1000;
      if (offset >= bytes.size()) return {};
      return std::span(bytes).subspan(offset).first(std::min(size, bytes.size() - offset));
    };
    AppPc entry{0x1000 + random() % bytes.size()};
    Function f = lift(entry, {{0x1000}, {0x1000 + bytes.size()}}, read, read);
    ASSERT_NE(f.block_at(entry), no_block);
    check_invariants(f);
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace weir::x86
