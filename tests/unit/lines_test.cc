// Lines and inlined calls (S1, S3) of what several compilers make, address by address against llvm-symbolizer and
// addr2line; where debug files are looked for; and what may not go wrong with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "compiled.h"
#include "symbols/symbols.h"

namespace weir::symbols {
namespace {

using namespace weir::test;

constexpr char cxx_program[] = R"(#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
namespace shapes {
template <class T> struct Point { T x, y; T norm() const { return x * x + y * y; } };
struct Shape { virtual ~Shape() = default; virtual int area() const = 0; };
struct Square : Shape { int side; explicit Square(int n) : side(n) {} int area() const override { return side * side; } };
static inline int clamp(int v, int low, int high) {
  if (v < low) return low;
  return std::min(v, high);
}
}
namespace {
int sum(const std::vector<int>& v) { int s = 0; for (int x : v) s += shapes::clamp(x, -9, 99); return s; }
}
__attribute__((noinline)) int words(const std::string& text) {
  std::map<std::string, int> count;
  std::string word;
  for (char c : text) {
    if (c != ' ') { word += c; continue; }
    count[word]++;
    word.clear();
  }
  if (count.empty()) throw std::runtime_error("no words in " + text);
  return static_cast<int>(count.size());
}
int main(int argc, char** argv) {
  std::vector<int> v;
  for (int i = 0; i < argc * 10; i++) v.push_back(shapes::Point<int>{i, argc}.norm());
  std::sort(v.begin(), v.end(), [](int a, int b) { return shapes::clamp(a, 0, 50) > shapes::clamp(b, 0, 50); });
  shapes::Square square(argc);
  const shapes::Shape& shape = square;
  try {
    return std::printf("%d %d %d\n", sum(v), shape.area(), words(argv[0])) > 0 ? 0 : 1;
  } catch (const std::exception& e) {
    return std::puts(e.what()) < 0;
  }
}
)";

constexpr char rust_program[] = R"(use std::collections::HashMap;
struct Counter { map: HashMap<String, usize> }
impl Counter {
    #[inline] fn add(&mut self, word: &str) { *self.map.entry(word.to_string()).or_insert(0) += 1; }
    fn best(&self) -> Option<(&String, &usize)> { self.map.iter().max_by_key(|(_, n)| **n) }
}
fn main() {
    let mut c = Counter { map: HashMap::new() };
    for a in std::env::args() { for w in a.split('/') { c.add(w); } }
    println!("{:?}", c.best());
}
)";

constexpr char go_program[] = R"(package main
import ("fmt"; "os"; "strings")
type point struct{ x, y int }
func (p point) norm() int { return p.x*p.x + p.y*p.y }
func total(n int) (s int) { for i := 0; i < n; i++ { s += point{i, n}.norm() }; return }
func main() { fmt.Println(total(len(os.Args)), strings.Repeat("x", 3)) }
)";

// A frame with strings of its own, files normalised: what is compared.
struct Seen {
  std::string function, file;
  uint32_t line = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};
using Chain = std::vector<Seen>;

std::ostream& operator<<(std::ostream& out, const Chain& chain) {
  for (const Seen& s : chain) out << "\n    " << s.function << " at " << s.file << ":" << s.line;
  return out;
}

std::vector<Chain> ours(Symbols& symbols, const std::vector<Vaddr>& addresses) {
  std::vector<Chain> chains(addresses.size());
  symbols.frames(addresses, [&](size_t i, std::span<const Frame> frames) {
    for (const Frame& f : frames) chains[i].push_back({std::string(f.function), std::string(f.place.file), f.place.line});
  });
  return chains;
}

// An oracle prints, for each address, the address, and a line with a function and one with a place for each frame. Names
// are left mangled and given to c++filt, since the demanglers of LLVM and GNU differ in their blanks.
std::vector<Chain> theirs(const std::string& oracle, const std::string& path, const std::vector<Vaddr>& addresses) {
  std::string questions;
  for (Vaddr v : addresses) questions += fmt::format("{:#x}\n", v.value);
  write_file("questions", questions);
  std::istringstream lines(output_of(oracle + " -a -i -f -e " + path + " < questions | c++filt"));
  // c++filt shows hashes and types of constants in names of Rust.
  const std::regex details("::h[0-9a-f]{16}|\\[[0-9a-f]{8,16}\\]|: ([iu](8|16|32|64|128|size)|bool|char)\\b");
  std::vector<Chain> chains;
  for (std::string line, place; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      chains.emplace_back();
      continue;
    }
    std::getline(lines, place);
    place = place.substr(0, place.find(" (discriminator"));
    size_t colon = place.rfind(':');
    std::string file = place.substr(0, colon);
    line = std::regex_replace(line, details, "");
    chains.back().push_back({line, file == "??" ? "" : fs::path(file).lexically_normal().string(),
                             static_cast<uint32_t>(atoi(place.c_str() + colon + 1))});
  }
  CHECK(chains.size() == addresses.size());
  return chains;
}

const std::string llvm = "llvm-symbolizer-19 --output-style=GNU --no-demangle";
const std::string binutils = "addr2line";

// Addresses all over the code, also inside instructions.
std::vector<Vaddr> sample(Symbols& symbols, size_t most) {
  std::vector<Vaddr> all, some;
  for (const Function& f : symbols.functions())
    if (f.kind != Kind::PltEntry)
      for (Vaddr v = f.range.begin; v < f.range.end; v += 3) all.push_back(v);
  for (size_t i = 0; i < all.size(); i += std::max<size_t>(1, all.size() / most)) some.push_back(all[i]);
  return some;
}

using Same = bool (*)(const Chain& our, const Chain& their);

bool same_places(const Chain& our, const Chain& their) {
  // Without DWARF llvm-symbolizer shows the object file that a symbol came from.
  if (our.size() == 1 && their.size() == 1 && our[0].line == 0 && their[0].line == 0 && our[0].file.empty()) return true;
  return std::ranges::equal(our, their, [](const Seen& a, const Seen& b) { return a.file == b.file && a.line == b.line; });
}

// The function itself is named after its symbol by us and by its DWARF by others ("f.cold" and "f"): it is compared in
// the tests of functions.
bool same_chain(const Chain& our, const Chain& their) {
  if (!same_places(our, their)) return false;
  for (size_t i = 0; i + 1 < our.size(); ++i)
    if (our[i].function != their[i].function) return false;
  return true;
}

// Compares thousands of addresses; at most `allowed` in a thousand may differ.
void expect_same(const std::string& path, const std::string& oracle, Same same, double allowed, size_t least_inlined) {
  auto symbols = Symbols::open(path);
  std::vector<Vaddr> addresses = sample(*symbols, 20'000);
  std::vector<Chain> our = ours(*symbols, addresses), their = theirs(oracle, path, addresses);
  size_t wrong = 0, inlined = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    inlined += our[i].size() > 1;
    if (same(our[i], their[i])) continue;
    if (++wrong <= 2)
      std::cout << fs::path(path).filename().string() << std::hex << " 0x" << addresses[i].value << std::dec << "\n  ours"
                << our[i] << "\n  " << oracle.substr(0, 9) << their[i] << "\n";
  }
  std::cout << fmt::format("{}: {} of {} addresses differ from {}; {} are inlined\n", fs::path(path).filename().string(),
                           wrong, addresses.size(), oracle.substr(0, oracle.find(' ')), inlined);
  EXPECT_GE(addresses.size(), 500u);
  EXPECT_GE(inlined, least_inlined);
  EXPECT_LE(static_cast<double>(wrong) * 1000, allowed * static_cast<double>(addresses.size()));
}

std::string build_cxx(const std::string& name, const std::string& command) {
  return build(name, "program.cc", cxx_program, command + " -o " + name + " program.cc");
}

struct Made {
  const char* name;
  const char* command;
};

class S3Inlined : public testing::TestWithParam<Made> {};

TEST_P(S3Inlined, EqualsLlvmAndBinutils) {
  std::string path = build_cxx(GetParam().name, GetParam().command);
  expect_same(path, llvm, same_chain, 0, 100);
}

INSTANTIATE_TEST_SUITE_P(Compilers, S3Inlined,
                         testing::Values(Made{"gcc_dwarf5", "g++ -O2 -g"}, Made{"gcc_dwarf4", "g++ -O2 -gdwarf-4"},
                                         Made{"gcc_O1", "g++ -O1 -g"}, Made{"gcc_O3_static", "g++ -O3 -g -static"},
                                         Made{"gcc_compressed", "g++ -O2 -g -gz=zlib"}, Made{"gcc_lto", "g++ -O2 -g -flto"},
                                         Made{"gcc_sections", "g++ -O2 -g -ffunction-sections -Wl,--gc-sections"},
                                         Made{"gcc_split", "g++ -O2 -g -gsplit-dwarf"},
                                         Made{"clang_dwarf5", "clang++ -O2 -gdwarf-5"},
                                         Made{"clang_dwarf4", "clang++ -O2 -gdwarf-4"},
                                         Made{"clang_lines", "clang++ -O2 -gmlt"},
                                         Made{"clang_split", "clang++ -O2 -gdwarf-5 -gsplit-dwarf"}),
                         [](const auto& info) { return info.param.name; });

TEST(S3Languages, Rust) {
  for (std::string flags : {"", "-C symbol-mangling-version=v0"}) {
    std::string name = flags.empty() ? "rust" : "rust_v0";
    std::string path = build(name, "program.rs", rust_program, "rustc -g -O " + flags + " -o " + name + " program.rs");
    expect_same(path, llvm, same_chain, 0, 100);
  }
}

TEST(S3Languages, Go) {
  write_file("program.go", go_program);
  output_of("HOME=$PWD GOFLAGS=-mod=mod GO111MODULE=off go build -o go_program program.go");
  expect_same(scratch() / "go_program", llvm, same_chain, 0, 100);
}

}  // namespace
}  // namespace weir::symbols
