// Functions and their names (A8) against nm, objdump and c++filt; and files that are missing, cut off, replaced or
// garbage, which must give fewer answers and nothing worse.
#include "symbols/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "compiled.h"
#include "symbols/demangle.h"

namespace weir::symbols {
namespace {

using namespace weir::test;

constexpr char libc[] = "/lib/x86_64-linux-gnu/libc.so.6";

constexpr char program[] = R"(#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int one(int n) { return n + 1; }
static int two(int n) { return n + 2; }
static int (*choose(void))(int) { return getenv("TWO") ? two : one; }
int chosen(int) __attribute__((ifunc("choose")));
__attribute__((noinline)) int known(int n) { if (n > 1000) abort(); return chosen(n) * 3; }
int __known(int) __attribute__((alias("known")));
int ___known(int) __attribute__((weak, alias("known")));
int main(int argc, char** argv) { puts(argv[0]); return known(argc) + (int)strlen(argv[0]) + __known(2); }
)";

std::string build_program(const std::string& name, const std::string& flags) {
  return build(name, "program.c", program, "gcc -O2 " + flags + " -o " + name + " program.c");
}

// Address -> names of code, and of what is weak, which may be data.
std::map<uint64_t, std::set<std::string>> nm(const std::string& arguments, const char* types = "tTwWi") {
  std::map<uint64_t, std::set<std::string>> names;
  std::istringstream lines(output_of("nm " + arguments));
  for (std::string line; std::getline(lines, line);) {
    uint64_t address;
    char type, name[4096];
    if (sscanf(line.c_str(), "%lx %c %4095s", &address, &type, name) != 3 || !strchr(types, type)) continue;
    names[address].insert(std::string(name).substr(0, std::string_view(name).find('@', 1)));
  }
  return names;
}

const Function* find(Symbols& symbols, std::string_view name) {
  auto found = std::ranges::find(symbols.functions(), name, &Function::name);
  return found == symbols.functions().end() ? nullptr : &*found;
}

void expect_sorted(const std::vector<Function>& functions) {
  Vaddr end;
  for (const Function& f : functions) {
    ASSERT_LE(end, f.range.begin);
    ASSERT_LT(f.range.begin, f.range.end);
    ASSERT_FALSE(f.name().empty());
    end = f.range.end;
  }
}

// Every function has one of the names that nm has for its address (or just behind it: some FDEs of glibc begin with the
// padding before their function), and every address that nm has a name for is in a function.
void expect_names(const std::string& path, const std::string& arguments, size_t at_least) {
  auto symbols = Symbols::open(path);
  auto names = nm(arguments);
  expect_sorted(symbols->functions());
  size_t named = 0;
  for (const Function& f : symbols->functions()) {
    if (f.kind == Kind::PltEntry || f.linkage_name.empty()) continue;
    auto at = names.lower_bound(f.range.begin.value);
    ASSERT_TRUE(at != names.end() && at->first < f.range.begin.value + 16 && at->second.contains(f.linkage_name))
        << f.linkage_name;
    ++named;
  }
  EXPECT_GE(named, at_least);
  for (const auto& [address, all] : nm(arguments, "tTi")) EXPECT_TRUE(symbols->function_at({address})) << *all.begin();
}

TEST(A8Functions, EqualNm) {
  std::string path = build_program("plain", "-g");
  expect_names(path, path, 8);
  std::string fixed = build_program("fixed", "-static");
  expect_names(fixed, fixed, 1000);
}

TEST(A8Functions, OfALibraryEqualNm) {
  auto symbols = Symbols::open(libc, {.debug_root = "/nowhere"});
  auto names = nm(std::string("-D ") + libc);
  expect_sorted(symbols->functions());
  size_t named = 0;
  for (const Function& f : symbols->functions()) {
    if (f.kind == Kind::PltEntry || f.linkage_name.empty()) continue;
    ASSERT_TRUE(names[f.range.begin.value].contains(f.linkage_name)) << f.linkage_name;
    ++named;
  }
  EXPECT_GE(named, 1500u);
  EXPECT_TRUE(find(*symbols, "read"));     // not __read, which is global where read is weak
  EXPECT_TRUE(find(*symbols, "qsort_r"));  // without its version
}

// Whether functions are listed, or found one by one, they are the same; and so are the holes between them. The first pass finds few, by passes over the
// tables, the second many, by sorted ones.
TEST(A8Functions, AroundAnAddressAreThoseOfTheList) {
  constexpr char broken[] =
      ".globl a, b\n.type a, @function\n.type b, @function\n.text\na: .cfi_startproc\n nop\nb: nop\n nop\n .cfi_endproc\n"
      ".size a, 9\n.byte 1, 2, 3\nc: .cfi_startproc\n .cfi_endproc\n.byte 4, 5, 6, 7\nd: .cfi_startproc\n ret\n "
      ".cfi_endproc\n"
      ".section .other, \"ax\"\n.byte 1, 2\ne: .cfi_startproc\n ret\n .cfi_endproc\n.byte 3, 4\n";
  std::vector<std::string> paths{libc,
                                 "/lib64/ld-linux-x86-64.so.2",
                                 "/proc/self/exe",
                                 build_program("around", ""),
                                 build_program("around_s", "-s"),
                                 build_program("around_static", "-static")};
  for (std::string flags :
       {"", "-s", "-Wl,--no-eh-frame-hdr", "-Wl,-z,lazy,-z,ibtplt", "-Wl,--section-start=.other=0x900000"})
    paths.push_back(build(fmt::format("around_{}", paths.size()), "around.s", broken,
                          fmt::format("gcc -shared {} -o around_{} around.s", flags, paths.size())));
  for (const std::string& path : paths) {
    Options options{.debug_root = "/nowhere"};
    auto listed = Symbols::open(path, options);
    std::vector<Vaddr> addresses;
    Vaddr end;
    for (const Function& f : listed->functions()) {
      for (int64_t at : {-1, 0, 1}) addresses.push_back(f.range.begin + at), addresses.push_back(f.range.end + at);
      addresses.push_back(f.range.begin + static_cast<int64_t>(f.range.size() / 2));
      addresses.push_back(end + (f.range.begin - end) / 2);
      end = f.range.end;
    }
    ASSERT_FALSE(addresses.empty());
    std::ranges::shuffle(addresses, std::mt19937_64(1));
    for (size_t some : {size_t{50}, size_t{5000}}) {
      auto found = Symbols::open(path, options);
      for (Vaddr v : std::span(addresses).first(std::min(some, addresses.size()))) {
        Symbols::Around a = listed->around(v), b = found->around(v);
        ASSERT_EQ(!a.function, !b.function) << path << " " << v.value;
        ASSERT_EQ(a.hole, b.hole) << path << " " << v.value;
        if (!a.function) continue;
        ASSERT_EQ(a.function->range, b.function->range) << path << " " << v.value;
        ASSERT_EQ(a.function->name(), b.function->name()) << path;
        ASSERT_EQ(a.function->linkage_name, b.function->linkage_name) << path;
        ASSERT_EQ(a.function->kind, b.function->kind) << path;
      }
    }
  }
}

// What is counted is what is named: bounds are those of the engine.
TEST(A8Functions, BoundsEqualTheEngines) {
  for (std::string path : {std::string(libc), build_program("bounds", ""), build_program("bounds_s", "-s")}) {
    auto symbols = Symbols::open(path, {.debug_root = "/nowhere"});
    auto image = elf::Image::from_memory(read_bytes(path), path);
    ASSERT_TRUE(image);
    for (const Function& f : symbols->functions()) {
      auto bounds = (*image)->function_bounds(f.range.begin);
      ASSERT_TRUE(bounds) << f.name();
      EXPECT_EQ(*bounds, f.range) << f.name();
    }
  }
}

TEST(A8Functions, StrippedCodeIsNamedByOffset) {
  std::string path = build_program("stripped", "-s");
  auto whole = Symbols::open(build_program("whole", "")), symbols = Symbols::open(path);
  const Function* known = find(*whole, "known");
  ASSERT_TRUE(known);
  const Function* f = symbols->function_at(known->range.begin);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->range, known->range);
  EXPECT_EQ(f->linkage_name, "");
  EXPECT_EQ(f->name(), fmt::format("stripped+{:#x}", known->range.begin.value));
  EXPECT_EQ(symbols->name_at({0x10}), "stripped+0x10");
}

TEST(A8Functions, AliasesHaveOneNameAndPiecesTheirOwn) {
  auto symbols = Symbols::open(build_program("pieces", ""));
  EXPECT_TRUE(find(*symbols, "known"));
  EXPECT_FALSE(find(*symbols, "__known"));
  EXPECT_TRUE(find(*symbols, "known [cold]"));
  const Function* resolver = find(*symbols, "chosen [resolver]");
  ASSERT_TRUE(resolver);
  EXPECT_EQ(resolver->kind, Kind::Resolver);
}

TEST(A8Functions, ClonesHaveTheirAuthorsName) {
  struct {
    const char *linkage_name, *name, *clone;
  } rows[] = {{"work", "work", ""},
              {"work.constprop.0", "work", "constprop.0"},
              {"work.isra.0.part.12", "work", "isra.0.part.12"},
              {"work.lto_priv.3.cold", "work", "lto_priv.3.cold"},
              {"_ZN3foo3barEi.llvm.123456", "_ZN3foo3barEi", "llvm.123456"},
              {"main.main", "main.main", ""},
              {"work._omp_fn.0", "work._omp_fn.0", ""},
              {".cold", ".cold", ""},
              {"a.0", "a.0", ""},
              {"", "", ""}};
  for (const auto& row : rows) {
    AuthorName author = split_clone(row.linkage_name);
    EXPECT_EQ(author.name, row.name);
    EXPECT_EQ(author.clone, row.clone);
  }
  EXPECT_EQ((Function{.range = {}, .linkage_name = "_ZN3foo3barEi.part.0"}).name(), "foo::bar(int) [part.0]");
}

// objdump names the entries of PLTs by disassembling them.
TEST(A8Functions, PltEntriesEqualObjdump) {
  int variant = 0;
  for (std::string flags : {"-Wl,-z,lazy", "-Wl,-z,now", "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy",
                            "-fno-plt -Wl,-z,now", "-no-pie -fno-pie -Wl,-z,lazy"}) {
    std::string path = build_program(fmt::format("plt{}", variant++), flags);
    auto symbols = Symbols::open(path);
    std::istringstream lines(output_of("objdump -d " + path));
    size_t compared = 0;
    for (std::string line; std::getline(lines, line);) {
      uint64_t address;
      char name[256];
      if (!line.ends_with("@plt>:") || sscanf(line.c_str(), "%lx <%255[^@]", &address, name) != 2 || name[0] == '*')
        continue;
      const Function* f = symbols->function_at({address});
      ASSERT_TRUE(f) << flags << line;
      EXPECT_EQ(f->name(), std::string(name) + "@plt") << flags;
      EXPECT_EQ(f->kind, Kind::PltEntry);
      EXPECT_EQ(f->range.begin.value, address);
      ++compared;
    }
    EXPECT_GE(compared, 1u) << flags;
    EXPECT_EQ(find(*symbols, "puts@plt") != nullptr, flags.find("-fno-plt") == flags.npos) << flags;
    // An IFUNC: no symbol, but the address of its resolver.
    EXPECT_EQ(find(*symbols, "chosen@plt") != nullptr, flags.find("-fno-plt") == flags.npos) << flags;
  }
}

TEST(A8Functions, Vdso) {
  auto base = reinterpret_cast<const std::byte*>(getauxval(AT_SYSINFO_EHDR));
  if (!base) GTEST_SKIP() << "no vDSO";
  Elf64_Ehdr header;
  memcpy(&header, base, sizeof header);
  size_t size = std::max<size_t>(header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr), 4096);
  auto symbols = Symbols::from_memory({base, base + size}, "[vdso]");
  EXPECT_TRUE(symbols->notes().empty());
  EXPECT_GE(symbols->functions().size(), 3u);
  EXPECT_TRUE(find(*symbols, "clock_gettime") || find(*symbols, "__vdso_clock_gettime"));
}

// ---- names ----

// A file of names, as c++filt turns them.
std::vector<std::string> filtered(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  write_file("names", text);
  std::vector<std::string> result;
  std::istringstream lines(output_of("c++filt --no-verbose < names"));
  for (std::string line; std::getline(lines, line);) result.push_back(line);
  return result;
}

TEST(A8Names, OfCxxEqualFilt) {
  std::vector<std::string> names;
  for (const auto& [address, all] : nm("-D /usr/lib/x86_64-linux-gnu/libstdc++.so.6"))
    names.insert(names.end(), all.begin(), all.end());
  std::vector<std::string> expected = filtered(names);
  ASSERT_GE(names.size(), 4000u);
  ASSERT_EQ(names.size(), expected.size());
  for (size_t i = 0; i < names.size(); ++i) ASSERT_EQ(demangle(names[i]), expected[i]);
}

TEST(A8Names, OfRustInBothManglings) {
  EXPECT_EQ(demangle("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"), "core::ptr::drop_in_place");
  EXPECT_EQ(demangle("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
  EXPECT_EQ(demangle("_RNvMs_NtCs4fqI2P2rA04_4core3stre4trim"), "<str>::trim");
}

TEST(A8Names, StayAsTheyAreWhereTheyAreNone) {
  for (std::string name : {"", "main", "_Z", "_R", "_Zmain", "_ZN", "main.main", "_RNv"}) EXPECT_EQ(demangle(name), name);
  EXPECT_EQ(demangle("_ZN3foo3barEi.cold"), "foo::bar(int) [clone .cold]");
}

// f(pair<int, int>, pair<that, that>, pair<that, that>, …): each parameter is twice as long as the one before.
std::string doubling(int levels) {
  std::string name = "_Z1fSt4pairIiiE";
  for (int i = 0; i < levels; ++i) name += fmt::format("S_IS{0}_S{0}_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
  return name;
}

TEST(A8Names, ThatWouldFillTheMemoryStayMangled) {
  EXPECT_TRUE(demangle(doubling(4)).starts_with("f(std::pair<int, int>, std::pair<std::pair<int, int>, "));
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(demangle(doubling(30)), doubling(30));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));  // (a billion names take minutes)
}

// ---- bad files ----

// Everything can be asked, and the answers hold what symbols.h promises.
void ask_everything(Symbols& symbols) {
  expect_sorted(symbols.functions());
  std::vector<Vaddr> addresses{{0}, {1}, {0x1000}};
  for (const Function& f : symbols.functions()) addresses.push_back(f.range.begin);
  addresses.push_back({UINT64_MAX - 1});
  std::ranges::sort(addresses);
  size_t taken = 0;
  symbols.frames(addresses, [&](size_t, std::span<const Frame> frames) { taken += !frames.empty(); });
  EXPECT_EQ(taken, addresses.size());
  for (Vaddr v : addresses) symbols.declaration(v);
  for (const Function& f : symbols.functions()) symbols.rows(f.range);
  symbols.rows({{0}, {UINT64_MAX}});
  symbols.source_lines_of("program.c");
  EXPECT_FALSE(symbols.name_at({0x1234}).empty());
}

TEST(A8BadFiles, MissingOnesNameByOffset) {
  mkfifo((scratch() / "fifo").c_str(), 0600);
  write_file("empty", "");
  write_file("text", std::string(5000, 'x'));
  for (std::string path : {(scratch() / "missing").string(), (scratch() / "fifo").string(), (scratch() / "empty").string(),
                           (scratch() / "text").string(), scratch().string(), std::string("/dev/zero"), std::string()}) {
    auto symbols = Symbols::open(path);
    EXPECT_TRUE(symbols->functions().empty());
    EXPECT_EQ(symbols->name_at({0x1234}), fs::path(path).filename().string() + "+0x1234");
    EXPECT_EQ(symbols->notes().size(), 1u) << path;
    ask_everything(*symbols);
  }
}

TEST(A8BadFiles, ReplacedOnesCountAsMissing) {
  std::string path = build_program("replaced", "-g");
  std::string notes = output_of("readelf -n " + path);
  std::string id = notes.substr(notes.find("Build ID: ") + 10, 40);
  EXPECT_FALSE(Symbols::open(path, {.build_id = id})->functions().empty());
  build_program("replaced", "-g -O1");
  auto symbols = Symbols::open(path, {.build_id = id});
  EXPECT_TRUE(symbols->functions().empty());
  ASSERT_EQ(symbols->notes().size(), 1u);
  EXPECT_NE(symbols->notes()[0].find("is not the file that ran"), std::string::npos);
}

TEST(A8BadFiles, DeletedOnesAreReadThroughTheirDescriptor) {
  std::string path = build_program("deleted", "-g");
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  fs::remove(path);
  auto symbols = Symbols::open(std::move(file), path);
  EXPECT_TRUE(find(*symbols, "known"));
  EXPECT_TRUE(symbols->has_lines());
  EXPECT_EQ(Symbols::open(Fd(), path)->notes().size(), 1u);
}

TEST(A8BadFiles, TruncatedWhileOpen) {
  std::string path = build_program("shrinking", "-g -static");
  for (size_t left : {0u, 4096u, 100'000u}) {
    output_of("cp shrinking shrunk");
    auto symbols = Symbols::open(scratch() / "shrunk");
    EXPECT_TRUE(symbols->notes().empty());
    fs::resize_file(scratch() / "shrunk", left);
    ask_everything(*symbols);
  }
}

TEST(A8BadFiles, CutOff) {
  auto bytes = read_bytes(build_program("cut", "-g"));
  for (size_t size = 0; size < bytes.size(); size += 97)
    ask_everything(*Symbols::from_memory({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)}, "cut"));
}

TEST(A8BadFiles, Garbage) {
  std::string small =
      "int f(int n) { return n * 3; } static inline int g(int n) { return n + 1; } int h(int n) { return g(f(n)); }";
  for (std::string flags : {"-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gz=zlib"}) {
    auto bytes = read_bytes(build("small", "small.c", small,
                                  "gcc -O2 -shared -fPIC -nostdlib -Wl,-z,noseparate-code " + flags + " -o small small.c"));
    std::vector<size_t> places;
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] != std::byte{0}) places.push_back(i);
    std::mt19937 random(1);
    constexpr uint8_t nasty[] = {0, 1, 2, 7, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff};
    for (int round = 0; round < 3000; ++round) {
      auto mutant = bytes;
      for (unsigned n = 1 + random() % 8; n > 0; --n)
        mutant[places[random() % places.size()]] =
            static_cast<std::byte>(random() % 2 ? nasty[random() % std::size(nasty)] : random());
      ask_everything(*Symbols::from_memory(std::move(mutant), "mutant"));
    }
  }
}

}  // namespace
}  // namespace weir::symbols
