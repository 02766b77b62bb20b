// Where functions of a name are, against nm; and files that are cut off or garbage, which must give fewer answers and nothing worse.
#include "symbols/named.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "compiled.h"

namespace weir::symbols {
namespace {

using namespace weir::test;

constexpr char libc[] = "/lib/x86_64-linux-gnu/libc.so.6";

std::unique_ptr<elf::Image> open_image(const std::string& path) {
  auto image = elf::Image::open(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
  EXPECT_TRUE(image) << path;
  return image ? std::move(*image) : nullptr;
}

std::set<uint64_t> places(const elf::Image& image, const NamePattern& pattern) {
  std::set<uint64_t> found;
  for (const NamedFunction& f : find_named(image, std::span(&pattern, 1), {.debug_root = "/nowhere"}))
    found.insert(f.begin.value);
  return found;
}

// "malloc@@GLIBC_2.2.5" -> where, of functions alone.
std::map<std::string, uint64_t> nm(const std::string& arguments) {
  std::map<std::string, uint64_t> names;
  std::istringstream lines(output_of("nm " + arguments));
  for (std::string line; std::getline(lines, line);) {
    uint64_t address;
    char type, name[4096];
    if (sscanf(line.c_str(), "%lx %c %4095s", &address, &type, name) == 3 && strchr("tTwW", type)) names[name] = address;
  }
  return names;
}

TEST(Named, VersionsOfTheCLibrary) {
  auto image = open_image(libc);
  std::map<std::string, std::set<uint64_t>> by_name;
  size_t seen = 0;
  for (auto& [text, address] : nm(std::string("-D --defined-only ") + libc)) {
    size_t at = text.find('@');
    if (at == text.npos || text[0] == '_') continue;
    std::string symbol = text.substr(0, at), version = text.substr(text.find_first_not_of('@', at));
    std::set<uint64_t> found = places(*image, {.symbol = symbol, .version = version});
    if (!found.empty()) {  // (data has the type of weak symbols, too)
      EXPECT_EQ(found, std::set{address}) << text;
      seen++;
    }
    by_name[symbol].insert(address);
    if (seen > 1000) break;
  }
  EXPECT_GT(seen, 900u);
  EXPECT_EQ(places(*image, {.symbol = "malloc"}).size(), 1u);
  EXPECT_EQ(places(*image, {.symbol = "malloc", .version = "GLIBC_2.14"}).size(), 0u);
  EXPECT_EQ(places(*image, {.symbol = "malloc", .image = "libc.so.6"}).size(), 1u);
  EXPECT_EQ(places(*image, {.symbol = "malloc", .image = "libm.so.6"}).size(), 0u);
  EXPECT_EQ(places(*image, {.symbol = "mallo?"}), places(*image, {.symbol = "malloc"}));
}

TEST(Named, APatternFindsWhatEachOfItsNamesFinds) {
  auto image = open_image(libc);
  std::set<uint64_t> expected;
  for (auto& [text, address] : nm(std::string("-D --defined-only ") + libc))
    if (text.starts_with("pthread_mutex_") && text.find('@') != text.npos) expected.insert(address);
  EXPECT_GT(expected.size(), 5u);
  EXPECT_EQ(places(*image, {.symbol = "pthread_mutex_*"}), expected);
  EXPECT_EQ(places(*image, {.symbol = "p*_mutex_*"}).contains(*expected.begin()), true);
  EXPECT_TRUE(places(*image, {.symbol = "pthread_mutex_*_x"}).empty());
}

// One's own: local symbols, an alias, a name that is the end of another, variants of an IFUNC in three forms of code.
constexpr char program[] = R"(
__attribute__((noinline, noipa)) static int own_local(int n) { return n + 1; }
__attribute__((noinline, noipa)) int pre_own_local(int n) { return n + 2; }
int another(int) __attribute__((alias("pre_own_local")));
__attribute__((noinline, noipa)) static int first(int n) { return n + 3; }
__attribute__((noinline, noipa)) int second(int n) { return n + 4; }
static int (*choose(void))(int) { extern int which(void); return which() ? first : second; }
__attribute__((noinline, noipa)) int which(void) { return 1; }
int chosen(int) __attribute__((ifunc("choose")));
int main(int c, char** v) { return own_local(c) + pre_own_local(c) + chosen(c); }
)";

TEST(Named, LocalsAliasesAndVariants) {
  for (std::string flags : {"", "-no-pie", "-static", "-shared -fPIC", "-Wl,--hash-style=sysv"}) {
    std::string path = build("named", "named.c", program, "gcc -O2 " + flags + " -o named named.c");
    auto image = open_image(path);
    auto names = nm(path);
    EXPECT_EQ(places(*image, {.symbol = "own_local"}), std::set{names["own_local"]}) << flags;
    EXPECT_EQ(places(*image, {.symbol = "another"}), std::set{names["pre_own_local"]}) << flags;
    EXPECT_EQ(places(*image, {.symbol = "*own_local"}), (std::set{names["own_local"], names["pre_own_local"]})) << flags;
    auto chosen = places(*image, {.symbol = "chosen"});
    EXPECT_TRUE(chosen.contains(names["first"]) && chosen.contains(names["second"])) << flags;
    EXPECT_FALSE(chosen.contains(names["choose"]) || chosen.contains(names["own_local"])) << flags;
  }
}

TEST(Named, BrokenFilesAreNoDanger) {
  std::string path = build("named", "named.c", program, "gcc -O2 -shared -fPIC -o named named.c");
  auto whole = open_image(path);
  std::vector<std::byte> bytes(whole->bytes().begin(), whole->bytes().end());
  const NamePattern patterns[] = {{.symbol = "own_local"}, {.symbol = "chosen"}, {.symbol = "*o*"}};
  std::mt19937 random(1);
  for (int i = 0; i < 3000; i++) {
    std::vector<std::byte> broken = bytes;
    if (i % 10 == 0) broken.resize(random() % broken.size());
    for (size_t n = 0; n < 1 + random() % 64 && !broken.empty(); n++) {
      size_t at = random() % 3 ? random() % std::min<size_t>(broken.size(), 4096) : random() % broken.size();
      broken[at] = static_cast<std::byte>(random());
    }
    auto image = elf::Image::from_memory(std::move(broken), path);
    if (image) find_named(**image, patterns, {.debug_root = "/nowhere"});
  }
}

}  // namespace
}  // namespace weir::symbols
