// The cost of blocks, written as bytes: expectations from first principles (an add takes a cycle, a multiplication three …).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "cost/model.h"
#include "cost/strings.h"

namespace weir::cost {
namespace {

std::vector<std::byte> bytes(const std::string& hex) {
  std::vector<std::byte> out;
  for (size_t i = 0; i + 1 < hex.size(); i += 3)
    out.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

std::string times(int n, const std::string& hex) {
  std::string out;
  for (int i = 0; i < n; i++) out += hex + " ";
  return out;
}

Model model(const std::string& cpu, bool keep = false) {
  auto made = Model::create(cpu, keep);
  EXPECT_TRUE(made) << made.error().what;
  return std::move(*made);
}

// The same block for CPUs that are made differently.
struct Bound {
  const char* what;
  std::string hex;
  uint32_t skylake, znver4;
};

const std::string adds =  // of twelve different registers
    "01 c0 01 c9 01 d2 01 db 01 f6 01 ff 45 01 c0 45 01 c9 45 01 d2 45 01 db 45 01 e4 45 01 ed ";

TEST(Cost, Chains) {
  const std::vector<Bound> table{
      {"nothing waits for a load", "48 8b 07", 1, 1},
      {"five adds, each of the one before", times(5, "48 01 d8"), 5, 5},
      {"twelve adds of different registers", adds, 1, 1},
      {"a load and its use: 5 + 1", "48 8b 07 48 01 c0", 6, 6},
      {"two loads, one through the other", "48 8b 07 48 8b 00", 6, 6},
      {"three multiplications: 3 + 3 + 1", times(3, "48 0f af c0"), 7, 7},
      {"cmp and jne: through the flags", "48 39 d8 75 00", 2, 2},
      {"mul, xor eax,eax, mul: the idiom cuts the chain", "48 0f af c0 31 c0 48 0f af c0", 1, 1},
      {"mul, and eax,eax, mul: 3 + 1 + 1", "48 0f af c0 21 c0 48 0f af c0", 5, 5},
      {"mul, mov, mul: Zen 4 eliminates the move", "48 0f af c0 48 89 c3 48 0f af db", 5, 4},
      {"mul rbx, add rbx,[rsi]: the load goes first, rbx is needed later", "48 0f af db 48 03 1e", 1, 1},
      {"mul rbx, add rbx,rbx", "48 0f af db 48 01 db", 4, 4},
      {"six pushes: the stack pointer costs nothing", "50 51 52 53 55 56", 1, 1},
      {"six pops", "58 59 5a 5b 5d 5e", 1, 1},
      {"mov al waits for nothing, but eax for both", "48 0f af c0 b0 01 01 c3", 4, 4},
  };
  Model skylake = model("skylake"), znver4 = model("znver4");
  for (const Bound& b : table) {
    EXPECT_EQ(skylake.cost(bytes(b.hex)).bounds.chain, b.skylake) << b.what;
    EXPECT_EQ(znver4.cost(bytes(b.hex)).bounds.chain, b.znver4) << b.what;
  }
}

TEST(Cost, Divisions) {
  Model m = model("skylake");
  uint32_t one = m.cost(bytes(times(1, "48 f7 f1"))).bounds.chain;
  uint32_t two = m.cost(bytes(times(2, "48 f7 f1"))).bounds.chain;
  uint32_t four = m.cost(bytes(times(4, "48 f7 f1"))).bounds.chain;
  EXPECT_EQ(one, 1u);
  EXPECT_GT(two, 20u);
  EXPECT_EQ(four - one, 3 * (two - one));
}

TEST(Cost, Ports) {
  // The ports of Skylake: four for adds, one for multiplications, two for loads, one for stores; six micro-ops a cycle.
  Model m = model("skylake");
  EXPECT_EQ(m.cost(bytes(adds)).bounds.ports, 3u);
  EXPECT_EQ(m.cost(bytes(adds)).bounds.dispatch, 2u);
  EXPECT_EQ(m.cost(bytes(adds)).cycles, 3u);
  EXPECT_EQ(m.cost(bytes("0f af c0 0f af c9 0f af d2 0f af db")).bounds.ports, 4u);
  EXPECT_EQ(m.cost(bytes("8b 07 8b 0e 8b 13 8b 1f 8b 37 8b 3e")).bounds.ports, 3u);
  EXPECT_EQ(m.cost(bytes(times(6, "89 07"))).bounds.ports, 6u);
  // What is neither executed nor waited for is bound by the width alone.
  Cost nops = m.cost(bytes(times(24, "90")));
  EXPECT_EQ(nops.bounds.chain, 0u);
  EXPECT_EQ(nops.cycles, 4u);
}

TEST(Cost, MicroOpsSpreadOverTheGroup) {
  // Two ports, 0 and 1, and the group of both (2). Two instructions are for port 0 alone, four may go to either.
  Cpu cpu{"made up", 100, {1, 1, 2}};
  std::vector<Figure> first{{.of = 0, .cycles = 1}, {.of = 2, .cycles = 1}}, either{{.of = 2, .cycles = 1}};
  BlockSum sum(cpu);
  for (int i = 0; i < 2; i++) sum.add({.uses = 2, .known = true}, first);
  EXPECT_EQ(sum.bounds().ports, 2u);
  for (int i = 0; i < 4; i++) sum.add({.uses = 1, .known = true}, either);
  EXPECT_EQ(sum.bounds().ports, 3u);
  sum.clear();
  EXPECT_EQ(sum.bounds().cycles(), 0u);
}

TEST(Cost, LockedInstructionsHoldBackTheRest) {
  Model m = model("skylake");
  EXPECT_EQ(m.cost(bytes("48 83 07 01 48 8b 06")).bounds.chain, 1u);     // add [rdi],1; mov rax,[rsi]
  EXPECT_GE(m.cost(bytes("f0 48 83 07 01 48 8b 06")).bounds.chain, 7u);  // lock
  EXPECT_GE(m.cost(bytes("48 87 07 48 8b 0e")).bounds.chain, 6u);        // xchg [rdi],rax
  EXPECT_EQ(m.cost(bytes("48 87 c3 48 8b 0e")).bounds.chain, 1u);        // xchg rbx,rax
  EXPECT_EQ(m.cost(bytes("f0 48 83 07 01")).unknown, 0u);
}

TEST(Cost, OnlyWhatAModelLooksAtCounts) {
  Model m = model("znver4");
  m.cost(bytes("48 8b 87 10 00 00 00 48 81 c0 00 01 00 00 74 02"));
  size_t known = m.known();
  EXPECT_EQ(known, 3u);
  m.cost(bytes("48 8b 87 20 01 00 00 48 81 c0 00 02 00 00 74 7f"));  // other displacement, immediate and target
  EXPECT_EQ(m.known(), known);
  m.cost(bytes("48 8b 86 20 01 00 00"));  // another register
  EXPECT_EQ(m.known(), known + 1);
}

// Every instruction of a block gets its share, whatever the bytes.
TEST(Cost, BeginningsNeverFallAndEndWithTheBlock) {
  Model m = model("icelake-server");
  std::mt19937_64 random(5);
  size_t unknown = 0, known = 0;
  for (int round = 0; round < 5000; round++) {
    std::vector<std::byte> block(random() % 80 + 1);
    for (std::byte& b : block)
      b = static_cast<std::byte>(random() % 3 ? random() : std::array{0x48, 0x0f, 0x8b, 0x01}[random() % 4]);
    Cost c = m.cost(block);
    ASSERT_FALSE(c.so_far.empty());
    ASSERT_TRUE(std::ranges::is_sorted(c.so_far)) << round;
    ASSERT_EQ(c.so_far.back(), c.cycles);
    ASSERT_EQ(c.cycles, std::max(1u, c.bounds.cycles()));
    ASSERT_GE(c.cycles, c.unknown);
    unknown += c.unknown, known += c.so_far.size() - c.unknown;
  }
  EXPECT_GT(unknown, 100u);
  EXPECT_GT(known, 10'000u);
}

TEST(Cost, NoBytes) {
  Cost c = model("skylake").cost({});
  EXPECT_EQ(c.cycles, 0u);
  EXPECT_TRUE(c.so_far.empty());
}

TEST(Cost, UnknownInstructionsAreOneCycle) {
  Model m = model("skylake");
  Cost c = m.cost(bytes("06"));  // none in 64-bit code
  EXPECT_EQ(c.unknown, 1u);
  EXPECT_EQ(c.cycles, 1u);
  c = m.cost(bytes("01 c0 48 8b"));  // cut off
  EXPECT_EQ(c.unknown, 1u);
  EXPECT_EQ(c.so_far.size(), 2u);
  // Known to LLVM, but not to the model of a CPU that cannot execute it: vpaddd zmm0,zmm0,zmm0.
  EXPECT_EQ(model("znver4").cost(bytes("62 f1 7d 48 fe c0")).unknown, 0u);
  EXPECT_EQ(model("znver3").cost(bytes("62 f1 7d 48 fe c0")).unknown, 1u);
}

TEST(Cost, Cpus) {
  auto cpus = Model::cpus();
  ASSERT_TRUE(cpus);
  for (const char* name : {"skylake", "icelake-server", "alderlake", "znver4"})
    EXPECT_TRUE(std::ranges::count(*cpus, name)) << name;
  EXPECT_FALSE(std::ranges::count(*cpus, "i386"));  // known to LLVM, without a scheduling model
  for (const std::string& name : *cpus) EXPECT_EQ(model(name).cpu(), name);
  for (const char* name : {"i386", "pentium9", "../etc", "host"}) {
    auto none = Model::create(name);
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().what.starts_with(name));
    EXPECT_NE(none.error().what.find("--cpu skylake"), std::string::npos);
    EXPECT_EQ(none.error().what.find('\n'), std::string::npos);
  }
}

TEST(Cost, StringInstructions) {
  auto repetition = [](const char* hex) { return string_instruction(bytes(hex))->repetition; };
  EXPECT_EQ(repetition("f3 a4"), (Repetition{14, 1, 32}));     // rep movsb
  EXPECT_EQ(repetition("f3 48 ab"), (Repetition{14, 1, 4}));   // rep stosq
  EXPECT_EQ(repetition("66 f3 a5"), (Repetition{14, 1, 16}));  // rep movsw
  EXPECT_EQ(repetition("f2 ae"), (Repetition{28, 2, 1}));      // repne scasb
  EXPECT_EQ(repetition("f3 a6").extra(1000), 3000u);           // repe cmpsb
  EXPECT_EQ(repetition("f3 a4").extra(4096), 128u);
  EXPECT_FALSE(string_instruction(bytes("a4"))->repeated);
  for (const char* other : {"f3 0f 6f 07", "48 8b 07", "f3 90", "c5 f8 77", "f3", ""})
    EXPECT_FALSE(string_instruction(bytes(other))) << other;
  for (const char* cpu : {"skylake", "znver4", "alderlake"}) {
    Model m = model(cpu);
    EXPECT_EQ(m.cost(bytes("f3 a4")).cycles, 14u);
    EXPECT_EQ(m.cost(bytes("f2 ae 75 00")).bounds.chain, 29u);
    EXPECT_EQ(m.cost(bytes("ac 01 c3")).bounds.chain, 4u);  // lodsb; add ebx,eax
  }
}

// ---- the file ----

class Kept : public testing::Test {
 protected:
  Kept() {
    setenv("XDG_CACHE_HOME", directory.c_str(), 1);
    std::filesystem::remove_all(directory);
    std::filesystem::create_directory(directory);
  }
  ~Kept() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(directory);
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  // Costs of blocks of one to thirty of these instructions.
  std::vector<uint32_t> costs(Model& m, int first = 1) const {
    std::vector<uint32_t> out;
    for (int n = first; n <= 30; n++)
      out.push_back(m.cost(bytes(times(n, "48 8b 07 48 0f af c3 f0 0f b1 0f c4 e3 79 ff c0 07"))).cycles);
    return out;
  }
  std::string directory = testing::TempDir() + "weir_cost_" + std::to_string(getpid());
};

TEST_F(Kept, SecondRunAsksNothing) {
  for (const char* cpu : {"", "znver3"}) {
    Model first = model(cpu, true);
    std::vector<uint32_t> expected = costs(first);
    EXPECT_EQ(first.asked(), 4u);
    first.save();
    Model second = model(cpu, true);
    EXPECT_EQ(second.cpu(), first.cpu());
    EXPECT_EQ(costs(second), expected);
    EXPECT_EQ(second.asked(), 0u);
  }
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(Kept, AddsToWhatIsThere) {
  Model first = model("znver3", true);
  costs(first);
  first.save();
  Model second = model("znver3", true);
  second.cost(bytes("48 01 d8"));
  second.save();
  Model third = model("znver3", true);
  third.cost(bytes("48 01 d8"));
  costs(third);
  EXPECT_EQ(third.asked(), 0u);
  EXPECT_EQ(third.known(), 5u);
}

TEST_F(Kept, DamageIsNoticed) {
  Model first = model("skylake", true);
  std::vector<uint32_t> expected = costs(first);
  first.save();
  ASSERT_EQ(files().size(), 1u);
  std::ifstream in(files()[0], std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  std::mt19937_64 random(3);
  auto asked_now = [&] {
    Model m = model("skylake", true);
    EXPECT_EQ(m.cpu(), "skylake");
    EXPECT_EQ(costs(m), expected);
    return m.asked();
  };
  auto put = [&](size_t at, char c) {
    std::fstream(files()[0], std::ios::binary | std::ios::in | std::ios::out).seekp(static_cast<off_t>(at)).put(c);
  };
  EXPECT_EQ(asked_now(), 0u);
  size_t asked = 0;
  for (size_t i = 0; i < good.size(); i++) {
    if (i > 700 && !good[i] && random() % 200) continue;  // most of the table is empty
    put(i, static_cast<char>(good[i] ^ (1 << random() % 8)));
    asked += asked_now();
    put(i, good[i]);
  }
  EXPECT_GT(asked, 100u);
  for (const std::string& bad :
       {std::string(), good.substr(0, 100), good.substr(0, good.size() - 4), std::string(good.size(), '\xff')}) {
    std::ofstream(files()[0], std::ios::binary | std::ios::trunc) << bad;
    EXPECT_EQ(asked_now(), 4u);
  }
}

TEST_F(Kept, NoPlaceIsNoError) {
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  Model m = model("skylake", true);
  costs(m);
  m.save();
  unsetenv("XDG_CACHE_HOME");
  std::string home = getenv("HOME") ? getenv("HOME") : "";
  unsetenv("HOME");
  Model homeless = model("skylake", true);
  costs(homeless);
  homeless.save();
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace weir::cost
