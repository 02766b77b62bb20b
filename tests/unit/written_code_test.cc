// Names of code that was written at run time: lines of perf maps, and jitdump files made by hand.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/result.h"
#include "symbols/jit_dump.h"
#include "symbols/perf_map.h"

using namespace weir;
using namespace weir::symbols;

namespace {

// "begin-end name", a line each.
std::string show(const WrittenCode& code) {
  std::string all;
  for (const auto& [begin, entry] : code.entries())
    all += fmt::format("{:x}-{:x} {}\n", begin.value, entry.end.value, entry.name);
  return all;
}

std::string show_map(std::string_view lines) {
  WrittenCode code;
  PerfMap::parse(lines, code);
  return show(code);
}

TEST(WrittenCode, LaterNamesAreTrue) {
  WrittenCode code;
  code.add({0x1000}, 0x100, "a");
  code.add({0x1100}, 0x100, "b");
  code.add({0x1080}, 0x100, "c");
  EXPECT_EQ(show(code), "1000-1080 a\n1080-1180 c\n");
  EXPECT_EQ(code.find({0x107f})->second.name, "a");
  EXPECT_EQ(code.find({0x1180}), code.entries().end());
  EXPECT_EQ(code.find({0xfff}), code.entries().end());
}

TEST(WrittenCode, WhatCannotBeIsLeftOut) {
  WrittenCode code;
  code.add({0}, 1, "at nothing");
  code.add({0x1000}, 0, "of no size");
  code.add({0x1000}, ~uint64_t{0}, "around all addresses");
  code.add({0x1000}, 1, "");
  EXPECT_EQ(show(code), "");
  code.add({0x1000}, 1, "a\nb\x1b\x7f");
  EXPECT_EQ(show(code), "1000-1001 a?b??\n");
  code.add({0x1000}, 1, std::string(10'000, 'x'));
  EXPECT_EQ(code.find({0x1000})->second.name.size(), 4096u);
}

TEST(PerfMap, Lines) {
  EXPECT_EQ(show_map("1000 10 a b\nnothing\n 2000 5 c\n-1 5 d\n3000 zz e\n4000 10\n5000 10 f"),
            "1000-1010 a b\n5000-5010 f\n");
}

// A jitdump file.
class JitDumpFile {
 public:
  explicit JitDumpFile(uint32_t magic = 0x4a695444, uint32_t machine = 62, uint32_t header_size = 40) {
    number(4, magic), number(4, 1), number(4, header_size), number(4, machine), number(4, 0), number(4, 7), number(8, 0),
        number(8, 0);
    bytes_.resize(std::max<size_t>(bytes_.size(), header_size));
  }
  JitDumpFile& record(uint32_t kind, const std::string& payload, uint32_t more = 0) {
    number(4, kind), number(4, static_cast<uint32_t>(16 + payload.size() + more)), number(8, 1);
    bytes_ += payload;
    return *this;
  }
  JitDumpFile& load(uint64_t at, uint64_t size, const std::string& name, size_t code = 3) {
    return record(0, words({7 | 7ull << 32, at, at, size, 0}) + name + std::string(1 + code, '\0'));
  }
  JitDumpFile& move(uint64_t from, uint64_t to, uint64_t size) {
    return record(1, words({7 | 7ull << 32, to, from, to, size, 0}));
  }
  static std::string words(std::initializer_list<uint64_t> all) {
    return {reinterpret_cast<const char*>(all.begin()), all.size() * 8};
  }
  std::string bytes_;

 private:
  void number(size_t size, uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), size); }
};

// Reads a file that grows to each of `sizes`.
std::string show_dump(const std::string& bytes, std::vector<size_t> sizes = {SIZE_MAX}) {
  Fd file(memfd_create("dump", MFD_CLOEXEC));
  WrittenCode code;
  JitDump dump;
  for (size_t size : sizes) {
    size = std::min(size, bytes.size());
    EXPECT_EQ(pwrite(file.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
    dump.read(file.get(), code);
  }
  return show(code);
}

TEST(JitDump, LoadsAndMoves) {
  JitDumpFile f;
  f.load(0x1000, 0x10, "first").record(4, "unwinding").record(2, "lines").load(0x2000, 0x20, "second", 5000);
  f.move(0x1000, 0x3000, 0x10).move(0x1001, 0x4000, 0x10).move(0x9000, 0x5000, 0x10).record(3, "");
  EXPECT_EQ(show_dump(f.bytes_), "1000-1010 first\n2000-2020 second\n3000-3010 first\n");
}

TEST(JitDump, AMoveOverItself) {
  EXPECT_EQ(show_dump(JitDumpFile().load(0x1000, 0x100, "f").move(0x1000, 0xff0, 0x100).bytes_), "ff0-10f0 f\n");
}

TEST(JitDump, GrowsWhileItIsRead) {
  std::string bytes = JitDumpFile(0x4a695444, 62, 48).load(0x1000, 0x10, "a").load(0x2000, 0x10, "b").bytes_;
  std::vector<size_t> all;
  for (size_t i = 0; i <= bytes.size(); i++) all.push_back(i);
  EXPECT_EQ(show_dump(bytes, all), "1000-1010 a\n2000-2010 b\n");
  EXPECT_EQ(show_dump(bytes, {bytes.size() - 1}), "1000-1010 a\n");
}

TEST(JitDump, OtherFilesHaveNoNames) {
  EXPECT_EQ(show_dump(""), "");
  EXPECT_EQ(show_dump(JitDumpFile(0x4454694a).load(0x1000, 0x10, "other byte order").bytes_), "");
  EXPECT_EQ(show_dump(JitDumpFile(0x4a695444, 183).load(0x1000, 0x10, "other machine").bytes_), "");
  EXPECT_EQ(show_dump(JitDumpFile(0x4a695444, 62, 8).load(0x1000, 0x10, "small header").bytes_), "");
}

TEST(JitDump, BrokenRecordsEndIt) {
  JitDumpFile small;
  small.bytes_ += JitDumpFile::words({15ull << 32, 0});  // a record smaller than its own header
  EXPECT_EQ(show_dump(small.load(0x1000, 0x10, "behind").bytes_), "");
  JitDumpFile large;
  large.load(0x1000, 0x10, "a").record(0, "", 0xffffff00).load(0x2000, 0x10, "behind");
  EXPECT_EQ(show_dump(large.bytes_), "1000-1010 a\n");
}

TEST(JitDump, RecordsWithoutRoomForTheirFields) {
  JitDumpFile f;
  f.record(0, "").record(0, std::string(39, 'x')).record(1, std::string(30, 'x')).record(0, std::string(40, '\1'));
  // The name ends with its record.
  f.record(0, JitDumpFile::words({7, 0x1000, 0x1000, 0x10, 0}) + "name");
  EXPECT_EQ(show_dump(f.load(0x2000, 0x10, "b").bytes_), "1000-1010 name\n2000-2010 b\n");
}

TEST(JitDump, IsFoundWhileItIsMapped) {
  std::string directory = testing::TempDir() + fmt::format("weir-jit-dump-{}", getpid());
  std::filesystem::create_directory(directory);
  std::string path = directory + "/jit-of-mine.dump";
  std::string bytes = JitDumpFile().load(0x1000, 0x10, "mine").bytes_;
  std::ofstream(path) << bytes;
  EXPECT_FALSE(find_jit_dump(getpid(), 0));
  Fd file = open_to_read(path);
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  Fd found = find_jit_dump(getpid(), 0);
  munmap(mapped, 4096);
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(found);
  WrittenCode code;
  JitDump().read(found.get(), code);
  EXPECT_EQ(show(code), "1000-1010 mine\n");
}

}  // namespace
