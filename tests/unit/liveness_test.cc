// Liveness of small functions, written as bytes.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "x86/liveness.h"

namespace weir::x86 {
namespace {

Function lift_bytes(const std::vector<std::byte>& bytes, size_t entry) {
  ReadMemory read = [&](AppPc pc, size_t size) -> std::span<const std::byte> {
    size_t offset = pc.value - 0x1000;
    if (offset >= bytes.size()) return {};
    return std::span(bytes).subspan(offset).first(std::min(size, bytes.size() - offset));
  };
  return lift({0x1000 + entry}, {{0x1000}, {0x1000 + bytes.size()}}, read, read);
}

Function lift_hex(const std::string& hex, size_t entry = 0) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 3)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return lift_bytes(bytes, entry);
}

bool live(RegSet set, Gpr reg) { return set.gpr >> reg & 1; }

TEST(Liveness, EverythingIsLiveBeforeAReturn) {
  Function f = lift_hex("c3");
  Liveness l = liveness(f);
  EXPECT_EQ(l.live_in[0], RegSet::all());
  EXPECT_EQ(l.live_out[0], RegSet::all());
}

TEST(Liveness, OverwrittenIsDead) {
  // mov eax,ecx; add edx,eax; ret
  Function f = lift_hex("89 c8 01 c2 c3");
  Liveness l = liveness(f);
  std::vector<RegSet> inside = l.inside(f, 0);
  ASSERT_EQ(inside.size(), 4u);
  EXPECT_FALSE(live(inside[0], RAX));
  EXPECT_TRUE(live(inside[1], RAX));
  EXPECT_TRUE(live(inside[0], RCX));
  EXPECT_EQ(inside[0].flags, DF);  // add sets the others
  EXPECT_EQ(inside[2], RegSet::all());
  EXPECT_EQ(inside[3], RegSet::all());
  EXPECT_EQ(inside[0], l.live_in[0]);
}

TEST(Liveness, PartialAndConditionalWritesKillNothing) {
  // mov al,cl; cmove edx,ecx; shl ebx,cl; ret
  Function f = lift_hex("88 c8 0f 44 d1 d3 e3 c3");
  EXPECT_EQ(liveness(f).live_in[0], RegSet::all());
}

TEST(Liveness, BranchJoinsBothSides) {
  // cmp edi,esi; je L; mov eax,ecx; ret; L: mov edx,ecx; mov eax,edx; ret
  Function f = lift_hex("39 f7 74 03 89 c8 c3 89 ca 89 d0 c3");
  Liveness l = liveness(f);
  ASSERT_EQ(f.blocks.size(), 3u);
  EXPECT_FALSE(live(l.live_in[1], RAX));
  EXPECT_TRUE(live(l.live_in[1], RDX));
  EXPECT_FALSE(live(l.live_in[2], RDX));
  EXPECT_FALSE(live(l.live_in[0], RAX));  // dead on both sides
  EXPECT_TRUE(live(l.live_in[0], RDX));   // live on one
  EXPECT_EQ(l.live_in[0].flags, DF);
  EXPECT_EQ(l.live_out[0].flags, AllFlags);  // the return behind each side
}

TEST(Liveness, LoopCarriesAValueAround) {
  // xor eax,eax; L: add eax,ecx; mov ecx,edx; dec edi; jne L; mov esi,eax; xor ecx,ecx; xor edx,edx; jmp to itself
  Function f = lift_hex("31 c0 01 c8 89 d1 ff cf 75 f8 89 c6 31 c9 31 d2 eb fe");
  Liveness l = liveness(f);
  ASSERT_EQ(f.blocks.size(), 4u);
  EXPECT_EQ(l.live_in[3], RegSet{});  // an endless loop reads nothing
  EXPECT_TRUE(live(l.live_in[1], RAX));
  EXPECT_TRUE(live(l.live_in[1], RCX));
  EXPECT_TRUE(live(l.live_in[1], RDX));
  EXPECT_TRUE(live(l.live_out[1], RCX));
  EXPECT_FALSE(live(l.live_in[0], RAX));
  EXPECT_FALSE(live(l.live_in[2], RCX));
  EXPECT_FALSE(live(l.live_in[0], RSI));
}

TEST(Liveness, CallsReadEverything) {
  // mov eax,ecx; call; mov eax,edx; (endless loop)
  Function f = lift_hex("89 c8 e8 00 10 00 00 89 d0 eb fe");
  Liveness l = liveness(f);
  ASSERT_EQ(f.blocks.size(), 3u);
  std::vector<RegSet> inside = l.inside(f, 0);
  EXPECT_EQ(inside[1], RegSet::all());
  EXPECT_FALSE(live(inside[0], RAX));
  EXPECT_FALSE(live(l.live_out[0], RAX));  // behind the call: it is written before it is read
  EXPECT_TRUE(live(l.live_out[0], RDX));
  EXPECT_EQ(l.live_out[0], l.live_in[1]);
}

TEST(Liveness, SystemCallsReadEverything) {
  // syscall; (endless loop)
  Function f = lift_hex("0f 05 eb fe");
  Liveness l = liveness(f);
  EXPECT_EQ(l.live_in[0], RegSet::all());
  EXPECT_EQ(l.live_out[0], RegSet{});
}

TEST(Liveness, EdgesOfWhatIsKnown) {
  for (const char* hex : {
           "31 c0 ff e1",                    // an indirect jump
           "31 c0 e9 00 10 00 00",           // a jump out
           "31 c0 0f 84 00 10 00 00 eb fe",  // a branch out
           "31 c0 90",                       // falls off the end
           "31 c0 0f 0b",                    // a trap
           "31 c0 06",                       // not decodable
           "31 c0 e8 00 10 00 00",           // a call at the end
       }) {
    Function f = lift_hex(hex);
    Liveness l = liveness(f);
    EXPECT_EQ(l.live_out[0], RegSet::all()) << hex;
    RegSet expected = RegSet::all().without(RegSet{1 << RAX, AllFlags & ~DF, 0, 0});
    EXPECT_EQ(l.live_in[0], expected) << hex;
  }
}

TEST(Liveness, UnknownInstructionsReadEverything) {
  // xor eax,eax; an opcode of VEX map 3 that is not assigned; (endless loop)
  Function f = lift_hex("31 c0 c4 e3 79 ff c0 07 eb fe");
  std::vector<RegSet> inside = liveness(f).inside(f, 0);
  EXPECT_EQ(inside[1], RegSet::all());
  EXPECT_FALSE(live(inside[0], RAX));
}

TEST(Liveness, EveryEdgeAgainstTheOrder) {
  // add eax,edx; jmp to the jump itself; then 300 blocks, each a jump to the one before it, entered at the last.
  std::string hex = "01 d0 eb fe e9 f7 ff ff ff ";
  for (int i = 1; i < 300; ++i) hex += "e9 f6 ff ff ff ";
  Function f = lift_hex(hex, 4 + 5 * 299);
  ASSERT_EQ(f.blocks.size(), 302u);
  Liveness l = liveness(f);
  EXPECT_EQ(l.live_in.back(), (RegSet{1 << RAX | 1 << RDX, 0, 0, 0}));
}

// The same by the definition, without any order: the sets grow until nothing changes.
std::vector<RegSet> by_definition(const Function& f) {
  std::vector<RegSet> in(f.blocks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockId id = 0; id < f.blocks.size(); ++id) {
      const Block& b = f.blocks[id];
      auto in_of = [&](BlockId to) { return to == no_block ? RegSet::all() : in[to]; };
      bool calls = b.ends == BlockEnd::Call || b.ends == BlockEnd::Syscall;
      bool unknown = calls || b.ends == BlockEnd::Return || b.ends == BlockEnd::IndirectJump || b.ends == BlockEnd::Trap ||
                     b.ends == BlockEnd::Undecodable;
      RegSet now = b.ends == BlockEnd::Branch ? in_of(b.taken) | in_of(b.fallthrough)
                   : b.ends == BlockEnd::Jump ? in_of(b.taken)
                   : unknown                  ? RegSet::all()
                                              : in_of(b.fallthrough);
      for (uint32_t i = b.count; i-- > 0;) {
        const Shape& s = *f.insns[b.first + i].shape;
        now = now.without(s.kills) | s.reads;
        if (i + 1 == b.count && unknown) now = RegSet::all();
      }
      changed |= !(now == in[id]);
      in[id] = now;
    }
  }
  return in;
}

TEST(Liveness, RandomFunctions) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 5'000; ++round) {
    std::vector<std::byte> bytes(random() % 300 + 1);
    for (std::byte& b : bytes) {
      uint64_t r = random();
      b = r & 1 ? static_cast<std::byte>(r >> 8) : static_cast<std::byte>(0x70 + (r >> 8) % 16);
    }
    Function f = lift_bytes(bytes, random() % bytes.size());
    Liveness l = liveness(f);
    ASSERT_EQ(l.live_in, by_definition(f));
    for (BlockId id = 0; id < f.blocks.size(); ++id) {
      std::vector<RegSet> inside = l.inside(f, id);
      ASSERT_EQ(inside.front(), l.live_in[id]);
      ASSERT_EQ(inside.back(), l.live_out[id]);
    }
    Gpr reg = static_cast<Gpr>(random() % 16);
    Liveness at_entries = liveness_at_entries(f, reg);
    for (BlockId id = 0; id < f.blocks.size(); ++id) {
      bool is_exact = f.blocks[id].is_entry && f.blocks.size() <= 6;
      bool said = live(at_entries.live_in[id], reg), is = live(l.live_in[id], reg);
      ASSERT_TRUE(is_exact ? said == is : said || !is);
    }
  }
}

TEST(Liveness, EmptyFunction) {
  Liveness l = liveness(Function{});
  EXPECT_TRUE(l.live_in.empty());
}

}  // namespace
}  // namespace weir::x86
