// Unwind tables against elfutils, which runs the same call frame information: every address of system files, and programs made for
// one peculiarity each. And broken tables and files, which must give fewer answers and nothing worse.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <random>

#include "compiled.h"
#include "elf/contents.h"
#include "symbols/debug_frame.h"
#include "symbols/object.h"
#include "unwind/table.h"

namespace weir::unwind {
namespace {

using rt::Rule;

// The vector has no alignment to speak of, a table has.
struct Compiled {
  std::vector<std::byte> bytes;
  Statistics statistics;
  uint64_t entry = 0;  // the image's
  const rt::TableHead& head() const { return *reinterpret_cast<const rt::TableHead*>(bytes.data()); }
  const Rule& rule(uint64_t v) const { return rt::find_rule(head(), v); }
};

std::unique_ptr<elf::Image> open_image(const std::string& path) {
  auto image = elf::Image::open(open_to_read(path), path);
  CHECK(image);
  return std::move(*image);
}

Compiled compiled(const elf::Image& image, std::span<const std::byte> debug_frame = {}) {
  Compiled out;
  memcpy(&out.entry, image.bytes().data() + offsetof(Elf64_Ehdr, e_entry), sizeof out.entry);
  auto bytes = compile(image, debug_frame, &out.statistics);
  CHECK(bytes);
  out.bytes = std::move(*bytes);
  CHECK(is_sound(out.bytes));
  return out;
}

// ---- What elfutils says, as a rule --------------------------------------------------------------------------------------
// The register of a breg; none: it is something else.
constexpr uint64_t no_register = UINT64_MAX;
uint64_t register_of(const Dwarf_Op& op) {
  if (op.atom == DW_OP_bregx) return op.number;
  return op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31 ? op.atom - DW_OP_breg0 : no_register;
}
bool is_breg(const Dwarf_Op& op, uint64_t reg) { return register_of(op) == reg; }
int64_t offset_of(const Dwarf_Op& op) { return static_cast<int64_t>(op.atom == DW_OP_bregx ? op.number2 : op.number); }

Rule expected_cfa(Dwarf_Frame* frame) {
  Dwarf_Op* ops = nullptr;
  size_t n = 0;
  Rule rule{.kind = Rule::Unsupported};
  if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0) return rule;
  if (n == 1 && register_of(ops[0]) < 16) {
    rule.kind = is_breg(ops[0], 7)   ? Rule::Rsp
                : is_breg(ops[0], 6) ? Rule::Rbp
                : is_breg(ops[0], 3) ? Rule::Rbx
                                     : Rule::Reg;
    if (rule.kind == Rule::Reg) rule.reg = static_cast<uint8_t>(register_of(ops[0]));
    rule.offset = static_cast<int32_t>(offset_of(ops[0]));
  } else if (n >= 2 && n <= 3 && ops[1].atom == DW_OP_deref && (is_breg(ops[0], 7) || is_breg(ops[0], 6)) &&
             (n == 2 || ops[2].atom == DW_OP_plus_uconst)) {
    rule.kind = is_breg(ops[0], 7) ? Rule::AtRsp : Rule::AtRbp;
    rule.offset = static_cast<int32_t>(offset_of(ops[0]));
    rule.add = static_cast<int16_t>(n == 3 ? ops[2].number : 0);
  } else if (n == 7 && is_breg(ops[0], 7) && register_of(ops[1]) < 16 && offset_of(ops[1]) == 0 &&
             ops[2].atom == DW_OP_lit8 && ops[3].atom == DW_OP_mul && ops[4].atom == DW_OP_plus &&
             ops[5].atom == DW_OP_deref && ops[6].atom == DW_OP_plus_uconst) {
    rule.kind = Rule::AtIndex;
    rule.offset = static_cast<int32_t>(offset_of(ops[0]));
    rule.reg = static_cast<uint8_t>(register_of(ops[1])), rule.scale = 8;
    rule.add = static_cast<int16_t>(ops[6].number);
  } else if (n == 9 && is_breg(ops[0], 7) && offset_of(ops[0]) == 8 && is_breg(ops[1], 16) && ops[2].atom == DW_OP_lit15 &&
             ops[3].atom == DW_OP_and && ops[5].atom == DW_OP_ge && ops[6].atom == DW_OP_lit3 && ops[7].atom == DW_OP_shl) {
    rule.kind = Rule::Plt;
    rule.offset = ops[4].atom - DW_OP_lit0;
  }
  return rule;
}

// A register's place: CFA + offset, a breg, or none.
struct Place {
  enum { Same, Undefined, AtCfa, AtRegister, Other } kind;
  int64_t offset = 0;
  uint64_t reg = 0;
};
Place place_of(Dwarf_Frame* frame, int reg) {
  Dwarf_Op memory[3], *ops = nullptr;
  size_t n = 0;
  if (dwarf_frame_register(frame, reg, memory, &ops, &n) != 0) return {Place::Other};
  if (n == 0) return {ops == memory ? Place::Undefined : Place::Same};
  if (ops[n - 1].atom == DW_OP_stack_value) return {Place::Other};
  if (ops[0].atom == DW_OP_call_frame_cfa && n == 1) return {Place::AtCfa, 0};
  if (ops[0].atom == DW_OP_call_frame_cfa && n == 2 && ops[1].atom == DW_OP_plus_uconst)
    return {Place::AtCfa, static_cast<int64_t>(ops[1].number)};
  for (uint64_t r : {6, 7})
    if (n == 1 && is_breg(ops[0], r)) return {Place::AtRegister, offset_of(ops[0]), r};
  // (With an expression elfutils pushes the CFA first.)
  for (uint64_t r : {6, 7})
    if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && is_breg(ops[1], r))
      return {Place::AtRegister, offset_of(ops[1]), r};
  return {Place::Other};
}

Rule expected(Dwarf_Frame* frame) {
  bool is_signal = false;
  Dwarf_Addr start, end;
  dwarf_frame_info(frame, &start, &end, &is_signal);
  Place ra = place_of(frame, 16), bp = place_of(frame, 6), sp = place_of(frame, 7);
  if (ra.kind == Place::Undefined) return {.kind = Rule::End};
  Rule rule = expected_cfa(frame), unsupported{.kind = Rule::Unsupported};
  if (rule.kind == Rule::Unsupported) return unsupported;
  if (is_signal && ra.kind == Place::AtRegister && ra.offset == 168 && sp.offset == 160 && bp.offset == 120)
    return {.kind = Rule::Signal, .is_interrupted = 1};
  if (ra.kind != Place::AtCfa || ra.offset != -8) return unsupported;
  if (sp.kind == Place::AtCfa || sp.kind == Place::AtRegister) return unsupported;
  if (bp.kind == Place::Same) rule.rbp = Rule::Same;
  else if (bp.kind == Place::AtCfa) rule.rbp = Rule::SavedCfa, rule.rbp_offset = static_cast<int32_t>(bp.offset);
  else if (bp.kind == Place::AtRegister && bp.reg == 6)
    rule.rbp = Rule::SavedRbp, rule.rbp_offset = static_cast<int32_t>(bp.offset);
  else rule.rbp = Rule::Lost;
  Place bx = place_of(frame, 3);
  // (elfutils has rax among the registers that a function keeps, in rbx's place.)
  if (bx.kind != Place::Same && bx.kind != Place::Undefined)
    rule.rbx_offset = bx.kind == Place::AtCfa ? static_cast<int16_t>(bx.offset) : Rule::rbx_lost;
  rule.is_interrupted = is_signal;
  return rule;
}

std::string text_of(const Rule& r) {
  return fmt::format("kind {} offset {} add {} rbp {} at {} rbx at {}{}", static_cast<int>(r.kind), r.offset, r.add,
                     static_cast<int>(r.rbp), r.rbp_offset, r.rbx_offset, r.is_interrupted ? " interrupted" : "");
}

struct Compared {
  uint64_t addresses = 0, with_rule = 0, by_kind[Rule::KindCount] = {};
};

// Every address of the text, in the table and in elfutils' hands.
Compared compare(const Compiled& table, Dwarf_CFI* cfi) {
  Compared out;
  uint64_t begin = table.head().text_begin, wrong = 0;
  for (uint64_t v = begin; v < begin + table.head().text_size && wrong < 10;) {
    Dwarf_Frame* frame = nullptr;
    Rule want{.kind = Rule::None};
    uint64_t until = v + 1;
    if (dwarf_cfi_addrframe(cfi, v, &frame) == 0) {
      Dwarf_Addr start = 0, end = 0;
      dwarf_frame_info(frame, &start, &end, nullptr);
      want = expected(frame);
      until = std::max<uint64_t>(until, end);
    }
    for (; v < until; ++v) {
      ++out.addresses, ++out.by_kind[want.kind];
      const Rule& have = table.rule(v);
      // Nobody has called the entry point, whatever call frame information knows of it.
      bool is_entry = v - table.entry < 128 && want.kind == Rule::None && have.kind == Rule::End;
      // Of an unsupported rule the table says no more.
      if (have == want || is_entry) continue;
      ADD_FAILURE() << fmt::format("{:x}: {}, elfutils: {}", v, text_of(have), text_of(want));
      v = until, ++wrong;
    }
    free(frame);
  }
  return out;
}

struct EndCfi {
  void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
};

Compared compare_with_elfutils(const std::string& path) {
  auto image = open_image(path);
  Compiled table = compiled(*image);
  auto object = symbols::open_object(path);
  CHECK(object);
  Dwarf_CFI* cfi = dwarf_getcfi_elf((*object)->elf.get());
  CHECK(cfi);
  Compared out = compare(table, cfi);
  dwarf_cfi_end(cfi);
  return out;
}

// ---- System files -------------------------------------------------------------------------------------------------------
class SystemFile : public testing::TestWithParam<const char*> {};

TEST_P(SystemFile, AgreesWithElfutilsAtEveryAddress) {
  std::string path = GetParam();
  if (!test::fs::exists(path)) GTEST_SKIP() << path << " is not here";
  Compared c = compare_with_elfutils(path);
  EXPECT_GT(c.by_kind[Rule::Rsp], c.addresses / 4);
}

INSTANTIATE_TEST_SUITE_P(All, SystemFile,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                                         "/lib/x86_64-linux-gnu/libstdc++.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
                                         "/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/bash", "/usr/bin/python3",
                                         "/usr/bin/perl", "/proc/self/exe"));

TEST(Table, KnowsTheSignalRestorer) {
  Compared c = compare_with_elfutils("/lib/x86_64-linux-gnu/libc.so.6");
  EXPECT_GT(c.by_kind[Rule::Signal], 0u);
  EXPECT_GT(c.by_kind[Rule::End], 0u);
  EXPECT_GT(c.by_kind[Rule::Plt], 0u);
  EXPECT_LT(c.by_kind[Rule::Unsupported], c.addresses / 1000);
}

TEST(Table, KnowsFramesThatAnyRegisterLeadsTo) {
  std::string path = "/lib/x86_64-linux-gnu/libcrypto.so.3";
  if (!test::fs::exists(path)) GTEST_SKIP() << path << " is not here";
  Compared c = compare_with_elfutils(path);
  EXPECT_GT(c.by_kind[Rule::Reg], 1000u);
  EXPECT_GT(c.by_kind[Rule::AtIndex], 1000u);
  EXPECT_LT(c.by_kind[Rule::Unsupported], c.addresses / 1000);
}

TEST(Table, OfTheVdso) {
  auto base = reinterpret_cast<const std::byte*>(getauxval(AT_SYSINFO_EHDR));
  if (!base) GTEST_SKIP() << "no vDSO";
  auto* header = reinterpret_cast<const Elf64_Ehdr*>(base);
  size_t size = header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr);
  auto image = elf::Image::from_memory({base, base + size}, "[vdso]");
  ASSERT_TRUE(image);
  Compiled table = compiled(**image);
  EXPECT_GT(table.statistics.covered, 100u);
}

// ---- Peculiarities ------------------------------------------------------------------------------------------------------
std::string build_c(const std::string& name, std::string_view source, const std::string& flags) {
  return test::build(name, name + ".c", source, "gcc " + flags + " -o " + name + " " + name + ".c");
}

constexpr std::string_view functions = R"(
  #include <alloca.h>
  volatile int sink; void use(void*);
  int leaf(int x) { return x * 3; }
  int plain(int x) { return leaf(x) + sink; }
  int on_heap(int n) { char* p = alloca(n); use(p); return p[0]; }
  int aligned(int n) { char p[64] __attribute__((aligned(64))); char* q = alloca(n); use(p); use(q); return p[n] + q[0]; }
  void use(void* p) { sink += *(char*)p; }
  int main(int n, char** v) { return plain(n) + on_heap(n) + aligned(n) + (v == 0); })";

TEST(Table, FollowsFramePointersAndAlignedFrames) {
  for (const char* flags : {"-O0", "-O2 -fno-inline", "-O2 -fno-inline -fno-omit-frame-pointer"}) {
    Compared c = compare_with_elfutils(build_c("peculiar", functions, flags));
    EXPECT_GT(c.by_kind[Rule::Rbp], 0u) << flags;
    EXPECT_GT(c.by_kind[Rule::Rbp] + c.by_kind[Rule::AtRbp], 0u) << flags;
  }
}

TEST(Table, NeighboursWithOneRuleAreOne) {
  std::string path = build_c("peculiar", functions, "-O2 -fno-inline");
  Compiled table = compiled(*open_image(path));
  const rt::TableHead& head = table.head();
  for (uint32_t page = 0; page < head.pages; ++page)
    for (uint32_t i = rt::first_rows(head)[page]; i + 1 < rt::first_rows(head)[page + 1]; ++i)
      EXPECT_NE(rt::rows_of(head)[i].rule, rt::rows_of(head)[i + 1].rule);
  EXPECT_LE(table.bytes.size(), head.row_count * 4 + head.pages * 4 + head.rule_count * sizeof(Rule) + 64);
}

// A linker that says nothing of its PLT: the rules are those that another would have written.
TEST(Table, OfPltsWithoutCallFrameInformation) {
  for (const char* flags : {"-O1 -Wl,-z,lazy", "-O1 -Wl,-z,lazy -fcf-protection=full -Wl,-z,ibtplt", "-O1 -Wl,-z,now"}) {
    std::string with = build_c("with", functions, flags);
    std::string without = build_c("without", functions, std::string(flags) + " -Wl,--no-ld-generated-unwind-info");
    auto image = open_image(without), other = open_image(with);
    Compiled a = compiled(*image), b = compiled(*other);
    uint64_t seen = 0;
    for (const elf::Section& s : elf::read_sections(image->bytes())) {
      if (!s.name.starts_with(".plt")) continue;
      auto sections = elf::read_sections(other->bytes());
      auto same = std::ranges::find(sections, s.name, &elf::Section::name);
      ASSERT_NE(same, sections.end());
      ASSERT_EQ(s.header.sh_addr, same->header.sh_addr);
      for (uint64_t v = s.header.sh_addr; v < s.header.sh_addr + s.header.sh_size; ++v, ++seen)
        ASSERT_EQ(text_of(a.rule(v)), text_of(b.rule(v))) << s.name << " " << v - s.header.sh_addr << " " << flags;
    }
    EXPECT_GT(seen, 8u) << flags;
  }
}

TEST(Table, FromDebugFrame) {
  // No .eh_frame for the program's own functions, but .debug_frame: plain, compressed, and in a file of its own.
  std::string make = "gcc -g -O1 -fno-inline -fno-asynchronous-unwind-tables -fno-exceptions -fno-unwind-tables ";
  for (const char* step : {"", "-gz=zlib", "separate"}) {
    std::string how = step;
    test::write_file("bare.c", functions);
    test::output_of(make + (how.starts_with("-gz") ? how : "") + " -o bare bare.c");
    std::string path = test::scratch() / "bare";
    if (how == "separate")
      test::output_of(
          "objcopy --only-keep-debug bare bare.debug && strip -g bare && objcopy --add-gnu-debuglink=bare.debug bare");
    auto image = open_image(path);
    std::vector<std::byte> debug_frame = symbols::debug_frame_of(path, {.debug_root = "/nowhere"});
    ASSERT_FALSE(debug_frame.empty()) << how;
    Compiled without = compiled(*image), with = compiled(*image, debug_frame);
    EXPECT_GT(with.statistics.covered, without.statistics.covered + 50) << how;
    if (how.empty()) {
      auto object = symbols::open_object(path);
      Dwarf* dwarf = dwarf_begin_elf((*object)->elf.get(), DWARF_C_READ, nullptr);
      Dwarf_CFI* cfi = dwarf_getcfi(dwarf);
      ASSERT_TRUE(cfi);
      uint64_t seen = 0;
      for (uint64_t v = with.head().text_begin; v < with.head().text_begin + with.head().text_size; ++v) {
        Dwarf_Frame* frame = nullptr;
        if (without.rule(v).kind != Rule::None || dwarf_cfi_addrframe(cfi, v, &frame) != 0) continue;
        EXPECT_EQ(text_of(with.rule(v)), text_of(expected(frame))) << v;
        ++seen, free(frame);
      }
      EXPECT_GT(seen, 50u);
      dwarf_end(dwarf);
    }
  }
}

// ---- On disk ------------------------------------------------------------------------------------------------------------
TEST(Cache, KeepsTablesByBuildId) {
  setenv("XDG_CACHE_HOME", (test::scratch() / "cache").c_str(), 1);
  test::fs::create_directories(test::scratch() / "cache");
  auto image = open_image("/lib/x86_64-linux-gnu/libc.so.6");
  auto path = test::scratch() / "cache/weir" / ("unwind-" + image->build_id());
  auto made = table_of(*image);
  ASSERT_TRUE(made);
  ASSERT_TRUE(test::fs::exists(path));
  struct stat st;
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  auto read = table_of(*image);
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::ranges::equal((*made)->bytes(), (*read)->bytes()));

  // Whatever byte is wrong, the table is compiled again.
  std::vector<std::byte> good = test::read_bytes(path);
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    std::vector<std::byte> bad = good;
    if (i % 3 == 0) bad.resize(random() % bad.size());
    else bad[i % 3 == 1 ? random() % 96 : random() % bad.size()] ^= std::byte{static_cast<uint8_t>(1 << random() % 8)};
    test::write_file("cache/weir/unwind-" + image->build_id(), {reinterpret_cast<char*>(bad.data()), bad.size()});
    test::fs::permissions(path, test::fs::perms(0600));
    auto again = table_of(*image);
    ASSERT_TRUE(again);
    EXPECT_TRUE(std::ranges::equal((*made)->bytes(), (*again)->bytes()));
  }
  unsetenv("XDG_CACHE_HOME");
}

TEST(Broken, TablesAreSearchedWithinTheirBytes) {
  std::vector<std::byte> good = compiled(*open_image("/lib64/ld-linux-x86-64.so.2")).bytes;
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    // A copy of exactly its size on the heap: sanitizers see what reads behind it.
    std::vector<std::byte> bad = good;
    for (int n = 0; n < 1 + i % 50; ++n)
      bad[(i % 2 ? sizeof(rt::TableHead) : 0) + random() % (good.size() - 48)] = std::byte(random());
    if (!rt::is_table(bad.data(), bad.size())) continue;
    const auto& head = *reinterpret_cast<const rt::TableHead*>(bad.data());
    for (int n = 0; n < 200; ++n) {
      const Rule& rule = rt::find_rule(head, head.text_begin + random() % (head.text_size + 10));
      EXPECT_TRUE(&rule >= rt::rules_of(head) && &rule < rt::rules_of(head) + head.rule_count);
    }
  }
}

}  // namespace
}  // namespace weir::unwind
