// The bounds of functions against readelf, for system files and for programs made for one peculiarity each; and broken
// files, which must give fewer answers and nothing worse.
#include "elf/image.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

namespace weir::elf {
namespace {

namespace fs = std::filesystem;
using Ranges = std::vector<VRange>;

// A directory for what the tests compile, gone at the end.
const fs::path& scratch() {
  struct Directory {
    fs::path path;
    Directory() {
      std::string name = fs::temp_directory_path() / "image_test.XXXXXX";
      CHECK(mkdtemp(name.data()));
      path = name;
    }
    ~Directory() { fs::remove_all(path); }
  };
  static Directory directory;
  return directory.path;
}

std::string output_of(const std::string& command) {
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  CHECK(pipe);
  std::string text;
  char buffer[65536];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  CHECK(pclose(pipe) == 0);
  return text;
}

// gcc on `source`, assembly if it begins with a dot.
std::string build(const std::string& name, const std::string& source, const std::string& flags) {
  std::string path = scratch() / name, file = path + (source.starts_with(".") ? ".s" : ".c");
  std::ofstream(file) << source;
  output_of("gcc -O1 " + flags + " -o " + path + " " + file);
  return path;
}

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  auto data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::unique_ptr<Image> open_image(const std::string& path) {
  auto image = Image::open(Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
  CHECK(image);
  return std::move(*image);
}

std::unique_ptr<Image> image_of(std::vector<std::byte> bytes) {
  auto image = Image::from_memory(std::move(bytes), "bytes");
  CHECK(image);
  return std::move(*image);
}

template <class T>
void put(std::vector<std::byte>& bytes, size_t at, T value) {
  CHECK(at + sizeof value <= bytes.size());
  memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<std::byte> without_sections(std::vector<std::byte> bytes) {
  put<uint64_t>(bytes, offsetof(Elf64_Ehdr, e_shoff), 0);
  put<uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shnum), 0);
  put<uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shstrndx), 0);
  return bytes;
}

Ranges readelf_fdes(const std::string& path) {
  Ranges ranges;
  std::istringstream lines(output_of("readelf --debug-dump=frames,no-follow-links " + path));
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.find(" pc=");
    uint64_t begin, end;
    if (at == std::string::npos || sscanf(line.c_str() + at, " pc=%" SCNx64 "..%" SCNx64, &begin, &end) != 2) continue;
    if (begin < end) ranges.push_back({{begin}, {end}});
  }
  return ranges;
}

// Sections whose names begin with .plt -> size of an entry.
std::map<VRange, uint64_t> readelf_plts(const std::string& path) {
  std::map<VRange, uint64_t> plts;
  std::istringstream lines(output_of("readelf -SW " + path));
  for (std::string line; std::getline(lines, line);) {
    uint64_t begin, size, entry;
    const char* name = strstr(line.c_str(), "] .plt");
    if (!name || sscanf(name, "] %*s PROGBITS %" SCNx64 " %*x %" SCNx64 " %" SCNx64, &begin, &size, &entry) != 3) continue;
    plts[{{begin}, {begin + size}}] = entry == 8 ? 8 : 16;
  }
  return plts;
}

// Name -> range of the FUNCs with a size.
std::map<std::string, VRange> readelf_functions(const std::string& path) {
  std::map<std::string, VRange> functions;
  std::istringstream lines(output_of("readelf -sW " + path));
  for (std::string line; std::getline(lines, line);) {
    uint64_t value, size;
    char type[32], section[32], name[256];
    if (sscanf(line.c_str(), " %*d: %" SCNx64 " %" SCNu64 " %31s %*s %*s %31s %255s", &value, &size, type, section, name) ==
            5 &&
        (type == std::string("FUNC") || type == std::string("IFUNC")) && section != std::string("UND") && size != 0)
      functions[name] = {{value}, {value + size}};
  }
  return functions;
}

// `bounds` is the answer for every address in it that is tried.
void expect_function(const Image& image, VRange bounds) {
  for (Vaddr v : {bounds.begin, bounds.begin + static_cast<int64_t>(bounds.size() / 2), bounds.end + -1}) {
    auto found = image.function_bounds(v);
    ASSERT_TRUE(found) << std::hex << v.value;
    ASSERT_EQ(found->begin.value, bounds.begin.value) << std::hex << v.value;
    ASSERT_EQ(found->end.value, bounds.end.value) << std::hex << v.value;
  }
}

// Every FDE that readelf finds in `path`, at the first, a middle and the last address; entry by entry in a PLT.
void expect_fdes(const Image& image, const std::string& path, size_t at_least) {
  Ranges fdes = readelf_fdes(path);
  auto plts = readelf_plts(path);
  ASSERT_GE(fdes.size(), at_least);
  for (VRange fde : fdes) {
    auto plt = std::ranges::find_if(plts, [&](const auto& p) { return p.first.contains(fde.begin); });
    if (plt == plts.end()) {
      ASSERT_NO_FATAL_FAILURE(expect_function(image, fde));
      continue;
    }
    int64_t size = static_cast<int64_t>(plt->second);
    for (Vaddr entry = plt->first.begin; entry < plt->first.end; entry += size)
      ASSERT_NO_FATAL_FAILURE(expect_function(image, {entry, entry + size}));
  }
}

constexpr char hello[] = R"(#include <stdio.h>
__attribute__((noinline)) int twice(int n) { return printf("%d\n", n) * 2; }
int main(int argc, char** argv) { return twice(argc) + puts(argv[0]); })";

TEST(Image, SystemFiles) {
  expect_fdes(*open_image("/lib/x86_64-linux-gnu/libc.so.6"), "/lib/x86_64-linux-gnu/libc.so.6", 3000);
  expect_fdes(*open_image("/bin/bash"), "/bin/bash", 1000);
  expect_fdes(*open_image("/lib64/ld-linux-x86-64.so.2"), "/lib64/ld-linux-x86-64.so.2", 100);
}

TEST(Image, Static) {
  std::string path = build("static", hello, "-static");
  auto image = open_image(path);
  expect_fdes(*image, path, 1000);
  expect_function(*image, readelf_functions(path).at("main"));
}

TEST(Image, Stripped) {
  std::string path = build("stripped", hello, "-s");
  expect_fdes(*open_image(path), path, 4);
}

// Without section headers the PLT is one function, as its FDE says; all else is as before.
TEST(Image, WithoutSectionHeaders) {
  std::string path = build("sectionless", hello, "-s");
  auto image = image_of(without_sections(read_bytes(path)));
  Ranges fdes = readelf_fdes(path);
  ASSERT_GE(fdes.size(), 4u);
  for (VRange fde : fdes) expect_function(*image, fde);
}

TEST(Image, PltOfIndirectBranchTracking) {
  std::string path = build("ibt", hello, "-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy");
  ASSERT_GE(readelf_plts(path).size(), 2u);
  expect_fdes(*open_image(path), path, 5);
}

TEST(Image, UnwindTableWithoutIndex) {
  std::string path = build("no_index", hello, "-static -Wl,--no-eh-frame-hdr");
  ASSERT_EQ(output_of("readelf -lW " + path).find("GNU_EH_FRAME"), std::string::npos);
  expect_fdes(*open_image(path), path, 1000);
}

// An unusual encoding of the index, no section headers: .eh_frame is found by the index's header and read through.
TEST(Image, UnwindTableWithUnusualIndex) {
  std::string path = build("unusual", hello, "-s");
  auto bytes = without_sections(read_bytes(path));
  auto usual = image_of(bytes);
  auto header = std::ranges::find(usual->segments(), uint32_t{PT_GNU_EH_FRAME}, &Segment::type);
  ASSERT_NE(header, usual->segments().end());
  ASSERT_EQ(std::to_integer<int>(bytes[header->offset + 3]), 0x3b);
  put<uint8_t>(bytes, header->offset + 3, 0x1b);
  auto image = image_of(bytes);
  for (VRange fde : readelf_fdes(path)) expect_function(*image, fde);
}

TEST(Image, SymbolsWhereThereIsNoFde) {
  std::string path = build("symbols", hello, "-fno-asynchronous-unwind-tables -fno-pie -no-pie");
  auto image = open_image(path);
  expect_fdes(*image, path, 1);
  auto functions = readelf_functions(path);
  for (const char* name : {"main", "twice"}) expect_function(*image, functions.at(name));
  // crt1.o's functions have neither FDE nor size: each ends where the next begins.
  uint64_t clones = stoull(output_of("nm " + path + " | grep ' deregister_tm_clones'"), nullptr, 16);
  uint64_t next = stoull(output_of("nm " + path + " | grep ' register_tm_clones'"), nullptr, 16);
  expect_function(*image, {{clones}, {next}});
}

// Symbols of a library whose section headers are gone: by the hash table of the dynamic segment.
TEST(Image, DynamicSymbolsWithoutSectionHeaders) {
  for (std::string style : {"gnu", "sysv", "both"}) {
    std::string path = build("dynamic_" + style, "int f(int n) { return n * 3; } int g(int n) { return n * 5; }",
                             "-shared -fPIC -nostdlib -fno-asynchronous-unwind-tables -Wl,--hash-style=" + style);
    auto functions = readelf_functions(path);
    auto image = image_of(without_sections(read_bytes(path)));
    for (const char* name : {"f", "g"}) expect_function(*image, functions.at(name));
  }
}

TEST(Image, HandWrittenAssembly) {
  std::string path = build("assembly", R"(.text
.globl _start
_start:  nop              # 0: no type, no size
         nop
second:  nop              # 2: ends with its section
         .byte 0xcc, 0xcc
.section .text.other,"ax"
.type sized,@function
.balign 16
sized:   nop              # 0
inside:  nop              # a label does not split it
         nop
.size sized, 3
         nop              # padding
framed:  .cfi_startproc   # 4
         nop
within:  nop
         .cfi_endproc
after:   nop              # 6
.data
number:  .quad 1
)",
                           "-nostdlib -static -Wl,-N,--unique=.text.other");
  auto image = open_image(path);
  auto address = [&](const char* name) {
    return Vaddr{stoull(output_of("nm " + path + " | grep ' " + name + "$'"), nullptr, 16)};
  };
  Vaddr start = address("_start"), sized = address("sized");
  expect_function(*image, {start, start + 2});
  expect_function(*image, {start + 2, start + 5});
  expect_function(*image, {sized, sized + 3});
  EXPECT_FALSE(image->function_bounds(sized + 3));
  expect_function(*image, {sized + 4, sized + 6});
  expect_function(*image, {sized + 6, sized + 7});
  EXPECT_FALSE(image->function_bounds(address("number")));
}

// More gaps between FDEs than are scanned for one by one: the answers stay the same when the symbols are sorted.
TEST(Image, ManyGaps) {
  std::string source = ".text\n";
  for (int i = 0; i < 100; ++i)
    source += fmt::format(
        ".cfi_startproc\nnop\n.cfi_endproc\nl{0}: nop\nnop\n.type s{0},@function\ns{0}: nop\n"
        ".size s{0},1\nnop\nu{0}: nop\nnop\n",
        i);
  std::string path = build("gaps", source, "-shared -nostdlib");
  auto image = open_image(path);
  auto functions = readelf_functions(path);
  for (int i = 0; i < 100; ++i) {
    VRange sized = functions.at(fmt::format("s{}", i));
    expect_function(*image, {sized.begin + -3, sized.begin + -2});
    expect_function(*image, {sized.begin + -2, sized.begin});
    expect_function(*image, sized);
    EXPECT_FALSE(image->function_bounds(sized.end));
    expect_function(*image, {sized.end + 1, sized.end + 3});
  }
}

TEST(Image, Vdso) {
  auto base = reinterpret_cast<const std::byte*>(getauxval(AT_SYSINFO_EHDR));
  if (!base) GTEST_SKIP() << "no vDSO";
  Elf64_Ehdr header;
  memcpy(&header, base, sizeof header);
  size_t size = std::max<size_t>(header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr), 4096);
  std::vector<std::byte> bytes(base, base + size);
  std::string path = scratch() / "vdso";
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(base), static_cast<std::streamsize>(size));
  auto image = image_of(bytes);
  for (VRange fde : readelf_fdes(path)) expect_function(*image, fde);
  auto functions = readelf_functions(path);
  auto time = std::ranges::find_if(functions, [](const auto& f) { return f.first.starts_with("__vdso_time"); });
  ASSERT_NE(time, functions.end());
  EXPECT_EQ(image->function_bounds(time->second.begin)->begin, time->second.begin);
}

TEST(Image, BuildId) {
  std::string path = "/lib/x86_64-linux-gnu/libc.so.6";
  auto image = open_image(path);
  EXPECT_EQ(image->path(), path);
  EXPECT_EQ(image->bytes().size(), fs::file_size(path));
  std::string notes = output_of("readelf -n " + path);
  ASSERT_FALSE(image->build_id().empty());
  EXPECT_NE(notes.find("Build ID: " + image->build_id() + "\n"), std::string::npos);
  EXPECT_TRUE(open_image(build("no_id", hello, "-Wl,--build-id=none"))->build_id().empty());
}

TEST(Image, AddressSanitizer) {
  EXPECT_FALSE(open_image("/lib/x86_64-linux-gnu/libc.so.6")->uses_address_sanitizer());
  EXPECT_FALSE(open_image(build("plain", hello, ""))->uses_address_sanitizer());
  EXPECT_TRUE(open_image(build("sanitized", hello, "-fsanitize=address"))->uses_address_sanitizer());
}

TEST(Image, RefusesWhatItCannotRead) {
  auto bytes = read_bytes("/bin/bash");
  auto error_with = [&](size_t at, auto value) {
    auto broken = bytes;
    put(broken, at, value);
    auto image = Image::from_memory(broken, "file");
    return image ? std::string("none") : image.error().what;
  };
  EXPECT_EQ(error_with(0, 'x'), "file: not an ELF file");
  EXPECT_EQ(error_with(EI_CLASS, uint8_t{ELFCLASS32}), "file: not a 64-bit ELF file (class 1)");
  EXPECT_EQ(error_with(EI_DATA, uint8_t{ELFDATA2MSB}), "file: a big-endian ELF file, not one for x86-64");
  EXPECT_EQ(error_with(offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_AARCH64}),
            "file: an ELF file for another machine (number 183), not for x86-64");
  EXPECT_EQ(error_with(offsetof(Elf64_Ehdr, e_phoff), UINT64_MAX), "file: program headers outside the file");
  EXPECT_FALSE(Image::from_memory({}, "empty"));
  EXPECT_FALSE(Image::open(Fd(::open("/dev/null", O_RDONLY)), "/dev/null"));
  EXPECT_FALSE(Image::open(Fd(), "closed"));
}

TEST(Image, DropsSegmentsThatWrap) {
  auto bytes = read_bytes("/bin/bash");
  size_t before = image_of(bytes)->segments().size();
  put(bytes, sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_vaddr), UINT64_MAX - 8);
  EXPECT_EQ(image_of(bytes)->segments().size(), before - 1);
}

// Asks a file that may be broken for everything; answers must still be inside an executable segment.
void expect_sane(std::vector<std::byte> bytes, std::mt19937& random) {
  size_t size = bytes.size();
  auto opened = Image::from_memory(std::move(bytes), "mutant");
  if (!opened) return;
  const Image& image = **opened;
  EXPECT_LE(image.build_id().size(), 2 * size);
  image.uses_address_sanitizer();
  for (const Segment& s : image.segments().first(std::min<size_t>(image.segments().size(), 16))) {
    EXPECT_TRUE(s.file_size == 0 || s.offset + s.file_size <= size);
    for (int i = 0; i < 4; ++i) {
      Vaddr v = s.vaddr + static_cast<int64_t>(random() % (s.file_size + 2)) + -1;
      auto bounds = image.function_bounds(v);
      if (!bounds) continue;
      EXPECT_TRUE(bounds->contains(v));
      EXPECT_TRUE(std::ranges::any_of(image.segments(), [&](const Segment& code) {
        return code.type == PT_LOAD && code.flags & PF_X && code.vaddr <= bounds->begin &&
               bounds->end.value - code.vaddr.value <= code.file_size;
      }));
    }
  }
}

TEST(Image, BrokenFiles) {
  std::string source =
      "int f(int n) { return n * 3; } int g(int n) { return n + f(n); }"
      "__asm__(\".text\\nh: nop\\nk: nop\\n\");";
  auto bytes = read_bytes(build("small", source, "-shared -fPIC -nostdlib -Wl,-z,noseparate-code"));
  ASSERT_LT(bytes.size(), 20'000u);
  // Bytes that are not zero are the ones that mean something.
  std::vector<size_t> places;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != std::byte{0}) places.push_back(i);
  std::mt19937 random(1);
  constexpr uint64_t nasty[] = {0, 1, 7, 0x7f, 0x80, 0xff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX - 15, UINT64_MAX};
  for (int round = 0; round < 20'000; ++round) {
    auto mutant = round % 4 == 0 ? without_sections(bytes) : bytes;
    for (unsigned n = random() % 8; n > 0; --n) {
      size_t at = places[random() % places.size()];
      if (random() % 2) mutant[at] = static_cast<std::byte>(random());
      else if (size_t aligned = at & ~size_t{7}; aligned + 8 <= mutant.size())
        put(mutant, aligned, nasty[random() % std::size(nasty)]);
    }
    if (round % 8 == 1) mutant.resize(random() % mutant.size());
    expect_sane(std::move(mutant), random);
  }
}

}  // namespace
}  // namespace weir::elf
