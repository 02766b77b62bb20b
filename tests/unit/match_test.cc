// How functions and images are found again in another build (store/match.h).
#include "store/match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fixture/fixture.h"
#include "store/write.h"

namespace weir::store {
namespace {

namespace fs = std::filesystem;

Body body_of(std::initializer_list<uint8_t> bytes, uint64_t offset = 0x1000) {
  BodyReader read;
  std::vector<std::byte> code;
  for (uint8_t b : bytes) code.push_back(std::byte{b});
  read.add(offset, code);
  return read.end();
}

TEST(Match, NamesWithoutVersions) {
  std::pair<const char*, const char*> same[] = {
      {"libfoo.so.1.2", "libfoo.so.1.3"},
      {"libfoo-2.0.so.0", "libfoo.so.1"},
      {"python3.11", "python3.12"},
      {"libpython3.11.so.1.0", "libpython3.12.so.1.0"},
      {"_json.cpython-311-x86_64-linux-gnu.so", "_json.cpython-312-x86_64-linux-gnu.so"},
      {"ld-2.36.so", "ld.so"},
  };
  for (auto [a, b] : same) EXPECT_EQ(without_version(a), without_version(b)) << a;
  EXPECT_EQ(without_version("libfoo.so.1.2"), "libfoo.so");
  EXPECT_EQ(without_version("_json.cpython-311-x86_64-linux-gnu.so"), "_json.cpython-x86_64-linux-gnu.so");
  EXPECT_NE(without_version("libfoo.so.1"), without_version("libbar.so.1"));
  EXPECT_EQ(without_version("123"), "123");
}

TEST(Match, BodiesWithoutAddresses) {
  // mov eax, 5; lea rdi, [rip+N]; call N; jne N; mov eax, imm32 (an address); ret
  Body here =
      body_of({0xb8, 5, 0, 0, 0, 0x48, 0x8d, 0x3d, 1, 2, 3, 0, 0xe8, 9, 9, 9, 0, 0x75, 4, 0xb8, 0, 0x10, 0x40, 0, 0xc3});
  Body there = body_of({0xb8, 5, 0,    0,    0, 0x48, 0x8d, 0x3d, 7,    7, 7,    0,    0xe8, 1,   1,
                        1,    0, 0x0f, 0x85, 1, 2,    0,    0,    0xb8, 0, 0x20, 0x50, 0,    0xc3},
                       0x7770);
  EXPECT_EQ(here.instructions, 6u);
  EXPECT_EQ(here.whole, there.whole);
  EXPECT_EQ(similarity(here, there), 1);
  Body other_constant =
      body_of({0xb8, 6, 0, 0, 0, 0x48, 0x8d, 0x3d, 1, 2, 3, 0, 0xe8, 9, 9, 9, 0, 0x75, 4, 0xb8, 0, 0x10, 0x40, 0, 0xc3});
  EXPECT_NE(here.whole, other_constant.whole);
  EXPECT_GT(similarity(here, other_constant), 0.7);
  EXPECT_LT(similarity(here, body_of({0x90, 0x90, 0x0f, 0x0b})), 0.2);
  // add rax, rbx and add rcx, rdx: another choice of registers is no other work.
  Body one = body_of({0x48, 0x01, 0xd8}), two = body_of({0x48, 0x01, 0xd1});
  EXPECT_NE(one.whole, two.whole);
  EXPECT_EQ(similarity(one, two), 1);
  EXPECT_EQ(similarity({}, {}), 0);
}

class MatchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "weir-match-test.XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    directory = name;
  }
  void TearDown() override { fs::remove_all(directory); }
  Reader put(const profile::Profile& p, const char* name) {
    EXPECT_TRUE(write(p, directory / name));
    return *Reader::open(directory / name);
  }
  fs::path directory;
};

// Names of the pairs that ran on both sides, as "old>new".
std::vector<std::string> names_of(const Match& m) {
  std::vector<std::string> names;
  for (const FunctionPair& f : m.functions)
    if (m.before.functions[f.before].ran && m.now.functions[f.now].ran)
      names.push_back(m.before.functions[f.before].info.name + ">" + m.now.functions[f.now].info.name);
  std::ranges::sort(names);
  return names;
}

TEST_F(MatchTest, AnotherFileNameAndAnotherBuild) {
  profile::Profile before = fixture::tables(), now = before;
  now.images[0].path = "/opt/other";
  now.images[0].build_id = "another";
  for (auto& f : now.functions) f.offset += 0x333;
  Reader a = put(before, "a.weir"), b = put(now, "b.weir");
  auto m = match({&b}, {&a});
  ASSERT_TRUE(m);
  EXPECT_EQ(names_of(*m), (std::vector<std::string>{"A>A", "B>B", "C>C", "D>D", "main>main", "start>start"}));
  ASSERT_EQ(m->renamed_images.size(), 1u);
  EXPECT_EQ(m->renamed_images[0].now, "/opt/other");
  for (const FunctionPair& f : m->functions) EXPECT_FALSE(f.is_renamed || f.is_moved);
}

// Several runs of one program have each function once, whatever its id in them.
TEST_F(MatchTest, SeveralRuns) {
  profile::Profile first = fixture::tables(), second = first;
  second.functions[5].name = second.functions[5].linkage_name = "E";
  Reader a = put(first, "a.weir"), b = put(second, "b.weir");
  auto side = Subject::load({&a, &b});
  ASSERT_TRUE(side);
  EXPECT_EQ(side->functions.size(), first.functions.size() + 1);
  EXPECT_EQ(side->index_of_id[0].at(0), side->index_of_id[1].at(0));
  EXPECT_NE(side->index_of_id[0].at(5), side->index_of_id[1].at(5));
}

TEST_F(MatchTest, TheUserKnowsBetter) {
  Reader a = put(fixture::tables(), "a.weir"), b = put(fixture::tables(), "b.weir");
  auto m = match({&b}, {&a}, {"B=C", "tables=tables"});
  ASSERT_TRUE(m) << m.error().what;
  std::vector<std::string> names = names_of(*m);
  EXPECT_NE(std::ranges::find(names, "B>C"), names.end());
  EXPECT_FALSE(match({&b}, {&a}, {"B=nothing"}));
  EXPECT_FALSE(match({&b}, {&a}, {"B"}));
}

}  // namespace
}  // namespace weir::store
