// Lines and inlined calls (spec 1, S1, S3) of what several compilers make, address by address against llvm-symbolizer and
// addr2line; where debug files are looked for; and what may not go wrong with them.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
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
  std::istringstream lines(output_of(oracle + " -a -i -f -e " + path + " < questions | c++filt --no-verbose"));
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
  // (We tell the namespaces and classes of an inlined function, too.)
  for (size_t i = 0; i + 1 < our.size(); ++i)
    if (our[i].function != their[i].function && !our[i].function.ends_with("::" + their[i].function)) return false;
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

void PrintTo(const Made& made, std::ostream* out) { *out << made.command; }

class S3Inlined : public testing::TestWithParam<Made> {};

TEST_P(S3Inlined, EqualsLlvm) {
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

// addr2line differs where llvm-symbolizer does not: it takes one of several functions that cover an address by their
// order, and has no place for a line 0. The innermost line is what both must agree on.
TEST(S1Lines, EqualBinutils) {
  auto same_line = [](const Chain& our, const Chain& their) {
    return our[0].line == their[0].line && (our[0].line == 0 || our[0].file == their[0].file);
  };
  expect_same(build_cxx("gcc_binutils", "g++ -O2 -g"), binutils, same_line, 0, 100);
  expect_same(build_cxx("clang_binutils", "clang++ -O2 -gdwarf-4"), binutils, same_line, 0, 100);
}

// File -> lines of the rows that have code, according to llvm-dwarfdump: address, line, column, file, …, flags.
std::map<std::string, std::set<uint32_t>> dumped_lines(const std::string& path) {
  std::map<std::string, std::set<uint32_t>> lines;
  std::map<int, std::string> files;
  std::istringstream dump(output_of("llvm-dwarfdump-19 --debug-line " + path));
  uint64_t last_address = 0;
  int last_file = 0;
  uint32_t last_line = 0;
  int index = 0;
  for (std::string line; std::getline(dump, line);) {
    uint64_t address;
    int file, column;
    unsigned number;
    char name[512];
    if (sscanf(line.c_str(), "file_names[%d]:", &index) == 1) continue;
    if (sscanf(line.c_str(), " name: \"%511[^\"]\"", name) == 1) files[index] = fs::path(name).filename();
    if (sscanf(line.c_str(), "0x%lx %u %d %d", &address, &number, &column, &file) != 4) continue;
    if (address != last_address && last_line != 0) lines[files[last_file]].insert(last_line);
    last_address = address, last_file = file, last_line = line.ends_with("end_sequence") ? 0 : number;
  }
  return lines;
}

TEST(S1Lines, OfAFileEqualDwarfdump) {
  for (const char* flags : {"g++ -O2 -gdwarf-4", "g++ -O2 -gdwarf-5", "clang++ -O2 -gdwarf-5"}) {
    std::string path = build_cxx("listed", flags);
    std::set<uint32_t> expected = dumped_lines(path)["program.cc"];
    std::vector<uint32_t> lines = Symbols::open(path)->source_lines_of((scratch() / "program.cc").string());
    ASSERT_GE(expected.size(), 15u);
    EXPECT_EQ(std::set(lines.begin(), lines.end()), expected) << flags;
    EXPECT_TRUE(std::ranges::is_sorted(lines));
  }
  EXPECT_TRUE(Symbols::open(scratch() / "listed")->source_lines_of("/no/such/file.cc").empty());
}

// Rows tile what frames() says address by address.
TEST(S1Lines, RowsAgreeWithFrames) {
  auto symbols = Symbols::open(build_cxx("rows", "g++ -O2 -g"));
  size_t compared = 0;
  for (const Function& f : symbols->functions()) {
    std::vector<Row> rows = symbols->rows(f.range);
    std::vector<Vaddr> addresses;
    for (Vaddr v = f.range.begin; v < f.range.end; v += 1) addresses.push_back(v);
    std::map<Vaddr, Place> by_rows;
    for (const Row& row : rows) {
      ASSERT_LT(row.range.begin, row.range.end);
      for (Vaddr v = row.range.begin; v < row.range.end; v += 1) ASSERT_TRUE(by_rows.emplace(v, row.place).second);
    }
    symbols->frames(addresses, [&](size_t i, std::span<const Frame> frames) {
      auto found = by_rows.find(addresses[i]);
      EXPECT_EQ(frames[0].place, found == by_rows.end() ? Place{} : found->second) << std::hex << addresses[i].value;
      compared += found != by_rows.end();
    });
  }
  EXPECT_GE(compared, 5000u);
}

TEST(S1Lines, DeclarationsEqualLlvm) {
  for (const char* command : {"g++ -O2 -g", "g++ -O2 -g -flto", "clang++ -O2 -gdwarf-5"}) {
    std::string path = build_cxx("declared", command), arguments;
    auto symbols = Symbols::open(path);
    std::vector<const Function*> functions;
    for (const Function& f : symbols->functions())
      if (symbols->declaration(f.range.begin).line != 0) functions.push_back(&f);
    ASSERT_GE(functions.size(), 8u) << command;
    for (const Function* f : functions) arguments += fmt::format(" {:#x}", f->range.begin.value);
    auto answers = nlohmann::json::parse(output_of("llvm-symbolizer-19 --output-style=JSON -e " + path + arguments));
    for (size_t i = 0; i < functions.size(); ++i) {
      auto outermost = answers[i]["Symbol"].back();
      Place place = symbols->declaration(functions[i]->range.begin);
      EXPECT_EQ(place.line, outermost["StartLine"].get<uint32_t>()) << command << " " << functions[i]->name();
      EXPECT_EQ(place.file, fs::path(outermost["StartFileName"].get<std::string>()).lexically_normal()) << command;
    }
  }
}

// ---- separate debug files ----

// The lines of every function of `stripped` are those of `whole`.
void expect_lines_of(Symbols& stripped, const std::string& whole) {
  auto symbols = Symbols::open(whole);
  std::vector<Vaddr> addresses = sample(*symbols, 2000);
  EXPECT_TRUE(ours(stripped, addresses) == ours(*symbols, addresses));
  EXPECT_TRUE(stripped.has_lines());
}

std::string build_id_of(const std::string& path) {
  std::string notes = output_of("readelf -n " + path);
  size_t at = notes.find("Build ID: ");
  return at == notes.npos ? "" : notes.substr(at + 10, notes.find('\n', at) - at - 10);
}

TEST(A8DebugFiles, ByDebuglinkWithItsChecksum) {
  std::string whole = build_cxx("linked", "g++ -O2 -g -Wl,--build-id=none");
  output_of("mkdir -p app/.debug && objcopy --only-keep-debug linked app/.debug/linked.debug");
  output_of("objcopy --strip-all --add-gnu-debuglink=app/.debug/linked.debug linked app/linked");
  auto symbols = Symbols::open(scratch() / "app/linked");
  EXPECT_EQ(symbols->debug_path(), scratch() / "app/.debug/linked.debug");
  expect_lines_of(*symbols, whole);
  // A file with the right name that is another one.
  output_of("printf x >> app/.debug/linked.debug");
  auto other = Symbols::open(scratch() / "app/linked");
  EXPECT_EQ(other->debug_path(), "");
  EXPECT_FALSE(other->has_lines());
}

TEST(A8DebugFiles, ByBuildId) {
  std::string whole = build_cxx("whole", "g++ -O2 -g -gz=zlib"), id = build_id_of(whole);
  std::string file = fmt::format("root/.build-id/{}/{}.debug", id.substr(0, 2), id.substr(2));
  output_of("mkdir -p $(dirname " + file + ") && objcopy --only-keep-debug whole " + file + " && strip -o stripped whole");
  auto symbols = Symbols::open(scratch() / "stripped", {.debug_root = scratch() / "root"});
  EXPECT_EQ(symbols->debug_path(), scratch() / file);
  expect_lines_of(*symbols, whole);
  EXPECT_FALSE(Symbols::open(scratch() / "stripped")->has_lines());
  // Another program's file in its place.
  build_cxx("another", "g++ -O1 -g");
  output_of("cp another " + file);
  EXPECT_FALSE(Symbols::open(scratch() / "stripped", {.debug_root = scratch() / "root"})->has_lines());
}

// A compressed debug file is unpacked once; the copy is used if it is one.
TEST(A8DebugFiles, AreKeptUnpacked) {
  setenv("XDG_CACHE_HOME", (scratch() / "cache").c_str(), 1);
  std::string whole = build_cxx("packed", "g++ -O2 -g -gz=zlib"), id = build_id_of(whole);
  std::string file = fmt::format("packed_root/.build-id/{}/{}.debug", id.substr(0, 2), id.substr(2));
  output_of("mkdir -p $(dirname " + file + ") && objcopy --only-keep-debug packed " + file + " && strip -o bare packed");
  auto expect_lines = [&] {
    auto symbols = Symbols::open(scratch() / "bare", {.debug_root = scratch() / "packed_root"});
    EXPECT_EQ(symbols->debug_path(), scratch() / file);
    expect_lines_of(*symbols, whole);
  };
  auto copies = [] { return output_of("ls cache/weir | grep -c ^debug-"); };
  expect_lines();
  EXPECT_EQ(copies(), "1\n");
  std::string before = output_of("stat -c %i cache/weir/debug-*");
  expect_lines();
  EXPECT_EQ(output_of("stat -c %i cache/weir/debug-*"), before);
  // What is no copy any more is made anew.
  output_of("truncate -s 100 cache/weir/debug-*");
  expect_lines();
  EXPECT_NE(output_of("stat -c %s cache/weir/debug-*"), "100\n");
  // The file has changed.
  output_of("touch -d 2001-01-01 " + file);
  expect_lines();
  EXPECT_EQ(copies(), "2\n");
  // Nothing can be kept.
  output_of("rm -r cache && touch cache");
  expect_lines();
  unsetenv("XDG_CACHE_HOME");
}

TEST(A8DebugFiles, OfTheCLibrary) {
  std::string path = "/lib/x86_64-linux-gnu/libc.so.6";
  if (Symbols::open(path)->debug_path().empty()) GTEST_SKIP() << "libc6-dbg is not installed";
  expect_same(path, llvm, same_chain, 0, 1000);
}

TEST(A8DebugFiles, SharedByDwz) {
  for (std::string n : {"1", "2"}) {
    write_file("shared" + n + ".cc", cxx_program);
    output_of("g++ -O2 -gdwarf-4 -o dwz" + n + " shared" + n + ".cc && cp dwz" + n + " whole" + n);
  }
  output_of("dwz -m common.debug dwz1 dwz2");
  ASSERT_NE(output_of("readelf -SW dwz1").find(".gnu_debugaltlink"), std::string::npos);
  auto symbols = Symbols::open(scratch() / "dwz1");
  expect_lines_of(*symbols, scratch() / "whole1");
  EXPECT_TRUE(symbols->notes().empty());
}

// .gnu_debugdata, as Fedora makes it: the symbols of a stripped program, compressed.
TEST(A8DebugFiles, MiniDebugInfo) {
  std::string whole = build_cxx("mini", "g++ -O2 -g");
  output_of(
      "objcopy -S --remove-section .comment --keep-symbol=main --keep-symbol=_Z5wordsRKNSt7__cxx1112basic_"
      "stringIcSt11char_traitsIcESaIcEEE mini mini.symbols && rm -f mini.symbols.xz && xz mini.symbols && "
      "objcopy --strip-all --add-section .gnu_debugdata=mini.symbols.xz mini mini_stripped");
  auto symbols = Symbols::open(scratch() / "mini_stripped");
  std::set<std::string> names;
  for (const Function& f : symbols->functions()) names.insert(f.linkage_name);
  EXPECT_TRUE(names.contains("main"));
  EXPECT_FALSE(symbols->has_lines());
}

// A server of debuginfod's protocol, in the background while this lives.
struct Server {
  pid_t pid;
  explicit Server(const std::string& program) {
    write_file("server.py", program);
    pid = stoi(output_of("rm -f port; python3 server.py > /dev/null & echo $!"));
    for (int i = 0; i < 3000 && !fs::exists(scratch() / "port"); ++i) usleep(100'000);
    std::string port;
    std::ifstream(scratch() / "port") >> port;
    setenv("DEBUGINFOD_URLS", ("http://127.0.0.1:" + port).c_str(), 1);
    fs::remove_all(scratch() / "downloads");
    setenv("DEBUGINFOD_CACHE_PATH", (scratch() / "downloads").c_str(), 1);
  }
  ~Server() {
    unsetenv("DEBUGINFOD_URLS");
    kill(pid, SIGKILL);
  }
};

constexpr char announce[] =
    "\nopen('port.new','w').write(str(s.server_address[1]))\nimport os; os.rename('port.new','port')\n";

TEST(A8DebugFiles, FromDebuginfodWhereAsked) {
  std::string whole = build_cxx("served", "g++ -O2 -g"), id = build_id_of(whole);
  output_of("mkdir -p buildid/" + id + " && objcopy --only-keep-debug served buildid/" + id +
            "/debuginfo && strip -o served_stripped served");
  unsetenv("DEBUGINFOD_URLS");
  EXPECT_FALSE(Symbols::open(scratch() / "served_stripped")->has_lines());
  EXPECT_EQ(output_of(fmt::format("grep -c libdebuginfod /proc/{}/maps || true", getpid())), "0\n") << "loaded unasked";
  Server server(std::string("import http.server as h\ns=h.HTTPServer(('127.0.0.1',0),h.SimpleHTTPRequestHandler)") +
                announce + "s.serve_forever()\n");
  auto symbols = Symbols::open(scratch() / "served_stripped");
  expect_lines_of(*symbols, whole);
}

// A server that takes the connection and never answers costs as long as the limit says, once.
TEST(A8DebugFiles, DebuginfodDoesNotStall) {
  build_cxx("stalled", "g++ -O1 -g -s");
  Server server(std::string("import socketserver as q,time\ns=q.TCPServer(('127.0.0.1',0),q.BaseRequestHandler)") +
                announce + "time.sleep(1000)\n");
  Options options{.download_limit = std::chrono::seconds(2)};
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Symbols::open(scratch() / "stalled", options)->has_lines());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(120));
}

}  // namespace
}  // namespace weir::symbols
