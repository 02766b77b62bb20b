// What is written is read back, field by field; a file is whole or not there; what is no profile is told in one line.
#include "store/write.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "fixture/fixture.h"
#include "store/context_order.h"
#include "store/reader.h"
#include "store/schema.h"

namespace weir::store {
namespace {

using namespace profile;
namespace fs = std::filesystem;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "weir-store-test.XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    directory = name;
    file = directory / "a.weir";
  }
  void TearDown() override { fs::remove_all(directory); }

  Result<> write_tables() { return write(fixture::tables(), file); }
  std::string why_not_open() {
    auto reader = Reader::open(file);
    return reader ? "" : reader.error().what;
  }
  void sql(const std::string& statements) {
    auto db = Database::open_to_write(file);
    ASSERT_TRUE(db);
    auto done = db->execute(statements.c_str());
    ASSERT_TRUE(done) << done.error().what;
  }

  fs::path directory;
  std::string file;
};

// ---- reading everything back, by SQL of its own ----

struct Rows {
  explicit Rows(const std::string& path) : db(*Database::open_to_read(path)) {
    Statement s = db.prepare("SELECT id, text FROM string");
    while (s.next()) strings[s.u32(0)] = s.text(1);
  }
  std::string string(const Statement& s, int column) {
    uint32_t id = s.u32(column);
    return id == none ? "" : strings.at(id);
  }
  Range range(const Statement& s, int column) {
    return s.maybe(column) ? Range{s.u64(column), s.u64(column + 1)} : Range{};
  }
  Database db;
  std::map<uint32_t, std::string> strings;
};

template <class T>
uint32_t number_of(const std::string& name, T last, const char* (*name_of)(T)) {
  for (uint32_t i = 0; i <= static_cast<uint32_t>(last); i++)
    if (name == name_of(static_cast<T>(i))) return i;
  ADD_FAILURE() << name;
  return 0;
}
const char* site_kind(SiteKind k) {
  constexpr const char* names[] = {"call", "indirect call", "tail call", "signal", "start"};
  return names[static_cast<int>(k)];
}
const char* os_class(OsClass c) {
  constexpr const char* names[] = {"fixed", "determinate", "timed"};
  return names[static_cast<int>(c)];
}

Profile load(const std::string& path) {
  Rows r(path);
  Profile p;
  p.run = *Reader::open(path)->run();
  for (Statement s = r.db.prepare("SELECT path, build_id, size, modified FROM image ORDER BY id"); s.next();)
    p.images.push_back({s.text(0), s.text(1), s.u64(2), s.i64(3)});
  for (Statement s = r.db.prepare(
           "SELECT image, offset, size, linkage_name, name, file, line, named_by, clone FROM function ORDER BY id");
       s.next();)
    p.functions.push_back(
        {s.u32(0), s.u64(1), s.u64(2), r.string(s, 3), r.string(s, 4), r.string(s, 5), s.small(6), s.text(7), s.text(8)});
  for (Statement s = r.db.prepare("SELECT function, offset, bytes, instructions, cycles, id FROM block ORDER BY id");
       s.next();) {
    auto bytes = s.blob(2);
    p.blocks.push_back({s.u32(0), s.u64(1), static_cast<uint32_t>(p.code.size()), static_cast<uint32_t>(bytes.size()),
                        s.small(3), s.small(4)});
    p.code.insert(p.code.end(), bytes.begin(), bytes.end());
    Statement l = r.db.prepare(
        "SELECT file, line, inlined, instructions, cycles, scope, is_counted FROM block_line WHERE block = ? ORDER BY "
        "position");
    l.bind(1, s.u64(5));
    while (l.next())
      p.lines.push_back(
          {s.u32(5), r.string(l, 0), l.small(1), r.string(l, 2), l.small(3), l.small(4), l.u32(5), l.u64(6) != 0});
  }
  for (Statement s = r.db.prepare("SELECT function, offset, kind, file, line FROM site ORDER BY id"); s.next();)
    p.sites.push_back({s.u32(0), s.u64(1), static_cast<SiteKind>(number_of(s.text(2), SiteKind::Start, site_kind)),
                       r.string(s, 3), s.small(4)});
  auto processes = Reader::open(path)->processes();
  for (const ProcessRow& process : *processes) p.processes.push_back(process);
  for (Statement s =
           r.db.prepare("SELECT id, process, tid, name, cycles, instructions, os_time, waited FROM thread ORDER BY id");
       s.next();) {
    Thread t{s.u32(1), s.small(2), s.text(3), s.u64(4), s.u64(5), s.u64(6), {}, {}, {}, {}, {}, {}, s.u64(7)};
    auto of_thread = [&](const std::string& query) {
      Statement rows = r.db.prepare(query);
      rows.bind(1, s.u64(0));
      return rows;
    };
    for (Statement c =
             of_thread("SELECT function, calls, self, self_min, self_max, total, os_calls, os_time, os_time_total, "
                       "waited, waited_total FROM function_count WHERE thread = ?");
         c.next();)
      t.functions.push_back(
          {c.u32(0), c.u64(1), c.u64(2), r.range(c, 3), c.u64(5), c.u64(6), c.u64(7), c.u64(8), c.u64(9), c.u64(10)});
    for (Statement c =
             of_thread("SELECT site, callee, calls, total, os_time_total, self_min, self_max, waited_total FROM call_count "
                       "WHERE thread = ?");
         c.next();)
      t.calls.push_back({c.u32(0), c.u32(1), c.u64(2), c.u64(3), c.u64(4), r.range(c, 5), c.u64(7)});
    for (Statement c = of_thread("SELECT block, count, extra FROM block_count WHERE thread = ?"); c.next();)
      t.blocks.push_back({c.u32(0), c.u64(1), c.u64(2)});
    for (Statement c = of_thread(
             "SELECT parent, site, function, calls, self, os_time, waited FROM context WHERE thread = ? ORDER BY id");
         c.next();)
      t.contexts.push_back({c.u32(0), c.u32(1), c.u32(2), c.u64(3), c.u64(4), c.u64(5), c.u64(6)});
    for (Statement c =
             of_thread("SELECT function, number, calls, errors, time, waited, class FROM os_count WHERE thread = ?");
         c.next();)
      t.os_calls.push_back({c.u32(0), c.small(1), c.u64(2), c.u64(3), c.u64(4), c.u64(5),
                            static_cast<OsClass>(number_of(c.text(6), OsClass::Timed, os_class))});
    for (Statement c =
             of_thread("SELECT l.context, l.block, l.samples FROM leaf_count l JOIN context c ON c.id = l.context "
                       "WHERE c.thread = ?");
         c.next();)
      t.leaves.push_back({c.u32(0), c.u32(1), c.u64(2)});
    p.threads.push_back(t);
  }
  return p;
}

// The same facts in one order, whatever the order and numbers were: blocks by place, contexts by path.
struct BlockFacts {
  std::vector<std::byte> code;
  uint32_t instructions = 0, cycles = 0;
  std::vector<LinePart> lines;
  bool operator==(const BlockFacts&) const = default;
};
struct Facts {
  std::map<std::pair<uint32_t, uint64_t>, BlockFacts> blocks;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, std::pair<uint64_t, Cycles>> block_counts;
  std::map<std::vector<uint32_t>, Context> contexts;
  std::map<std::pair<std::vector<uint32_t>, uint64_t>, uint64_t> leaves;  // by path and offset
  std::map<std::pair<uint32_t, uint32_t>, FunctionCount> functions;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, CallCount> calls;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, OsCount> os_calls;
  bool operator==(const Facts&) const = default;
};
Facts facts_of(const Profile& p, uint32_t context_base_of_thread(const Profile&, uint32_t)) {
  Facts f;
  for (const Block& b : p.blocks) {
    auto code = p.code_of(b);
    f.blocks[{b.function, b.offset}] = {{code.begin(), code.end()}, b.instructions, b.cycles, {}};
  }
  for (LinePart line : p.lines) {
    const Block& b = p.blocks[std::exchange(line.block, none)];
    f.blocks[{b.function, b.offset}].lines.push_back(line);
  }
  for (uint32_t t = 0; t < p.threads.size(); t++) {
    const Thread& thread = p.threads[t];
    for (const BlockCount& c : thread.blocks)
      if (c.count || c.extra)
        f.block_counts[{t, p.blocks[c.block].function, p.blocks[c.block].offset}] = {c.count, c.extra};
    for (const FunctionCount& c : thread.functions) f.functions[{t, c.function}] = c;
    for (const CallCount& c : thread.calls) f.calls[{t, c.site, c.callee}] = c;
    for (const OsCount& c : thread.os_calls) f.os_calls[{t, c.function, c.number}] = c;
    uint32_t base = context_base_of_thread(p, t);
    auto path_of = [&](const Context& c) {
      std::vector<uint32_t> path = {t, c.site, c.function};
      for (uint32_t parent = c.parent; parent != none; parent = thread.contexts[parent - base].parent) {
        path.push_back(thread.contexts[parent - base].site);
        path.push_back(thread.contexts[parent - base].function);
      }
      return path;
    };
    for (const LeafCount& c : thread.leaves)
      f.leaves[{path_of(thread.contexts[c.context - base]), p.blocks[c.block].offset}] = c.samples;
    for (const Context& c : thread.contexts) {
      Context without_id = c;
      without_id.parent = none;
      f.contexts[path_of(c)] = without_id;
    }
  }
  return f;
}

void expect_round_trip(const Profile& given, const std::string& file) {
  ASSERT_TRUE(write(given, file));
  Profile read = load(file);
  EXPECT_EQ(given.run, read.run);
  EXPECT_EQ(given.images, read.images);
  EXPECT_EQ(given.functions, read.functions);
  EXPECT_EQ(given.sites, read.sites);
  EXPECT_EQ(given.processes, read.processes);
  ASSERT_EQ(given.blocks.size(), read.blocks.size());
  ASSERT_EQ(given.threads.size(), read.threads.size());
  for (size_t i = 0; i < given.threads.size(); i++) {
    const Thread &a = given.threads[i], &b = read.threads[i];
    EXPECT_EQ(std::tie(a.process, a.tid, a.name, a.cycles, a.instructions, a.os_time, a.waited),
              std::tie(b.process, b.tid, b.name, b.cycles, b.instructions, b.os_time, b.waited));
    EXPECT_EQ(a.contexts.size(), b.contexts.size());
  }
  auto from_zero = [](const Profile&, uint32_t) -> uint32_t { return 0; };
  auto whole_file = [](const Profile& p, uint32_t t) -> uint32_t {
    uint32_t base = 0;
    for (uint32_t i = 0; i < t; i++) base += static_cast<uint32_t>(p.threads[i].contexts.size());
    return base;
  };
  Facts a = facts_of(given, from_zero), b = facts_of(read, whole_file);
  EXPECT_EQ(a.blocks, b.blocks);
  EXPECT_EQ(a.block_counts, b.block_counts);
  EXPECT_EQ(a.contexts, b.contexts);
  EXPECT_EQ(a.leaves, b.leaves);
  EXPECT_EQ(a.functions, b.functions);
  EXPECT_EQ(a.calls, b.calls);
  EXPECT_EQ(a.os_calls, b.os_calls);
}

TEST_F(StoreTest, TablesComeBack) { expect_round_trip(fixture::tables(), file); }
TEST_F(StoreTest, EveryFieldComesBack) { expect_round_trip(fixture::rich(), file); }
TEST_F(StoreTest, S9_ASampledProfileComesBack) {
  Profile p = fixture::sampled();
  expect_round_trip(p, file);
  p.run.sampling->rate = 99.5;
  expect_round_trip(p, file);
  p.run.sampling.emplace();  // nothing is known
  expect_round_trip(p, file);
}
// SQL must not take for none what is not known.
TEST_F(StoreTest, S9_WhatSamplesDoNotTellIsNull) {
  ASSERT_TRUE(write(fixture::sampled(), file));
  auto db = Database::open_to_read(file);
  for (const char* unknown : {"calls FROM function_count", "calls FROM call_count", "calls FROM context",
                              "instructions FROM thread", "os_calls FROM function_count", "calls FROM function_total"}) {
    Statement rows = db->prepare(fmt::format("SELECT {}", unknown));
    ASSERT_TRUE(rows.next()) << unknown;
    do EXPECT_EQ(rows.maybe(0), std::nullopt) << unknown;
    while (rows.next());
  }
  Statement kind = db->prepare("SELECT kind, schema FROM weir");
  ASSERT_TRUE(kind.next());
  EXPECT_EQ(kind.text(0), "sampled profile");
  EXPECT_EQ(kind.u64(1), uint64_t{schema_version});
}
TEST_F(StoreTest, AnEmptyProfileComesBack) { expect_round_trip({}, file); }

// What SQLite itself finds wrong with a file that it did not fill.
void expect_whole(const std::string& file) {
  auto db = Database::open_to_read(file);
  ASSERT_TRUE(db);
  Statement check = db->prepare("PRAGMA integrity_check");
  ASSERT_TRUE(check.next());
  EXPECT_EQ(check.text(0), "ok");
}

// Rows that fill pages to the last byte, and those that go on in other pages; `process_word` is a table of its key.
TEST_F(StoreTest, TextsOfAllSizesComeBack) {
  Profile p = fixture::tables();
  for (size_t size = 0; size < 300; size++) p.processes[0].notes.emplace_back(size, 'a');
  for (size_t around : {1000, 2030, 4080, 8160, 16340, 18400, 32720, 100'000})
    for (size_t size = around; size < around + 60; size++) p.processes[0].notes.emplace_back(size, 'b');
  for (size_t around : {16320, 32700})
    for (size_t size = around; size < around + 60; size++)
      p.functions.push_back({0, size, 1, "", std::string(size, 'c'), "", 0});
  expect_round_trip(p, file);
  expect_whole(file);
}

TEST_F(StoreTest, NumbersOfAllSizesComeBack) {
  Profile p = fixture::tables();
  for (int bits = 0; bits < 63; bits++)
    for (uint64_t n : {(uint64_t{1} << bits) - 1, uint64_t{1} << bits}) p.functions.push_back({0, n, n, "", "f", "", 0});
  expect_round_trip(p, file);
  expect_whole(file);
}

TEST_F(StoreTest, ManyRowsComeBack) {
  expect_round_trip(fixture::large(3000, 30000, 30000), file);
  expect_whole(file);
}

TEST_F(StoreTest, LargestNumbersComeBackAndImpossibleOnesAreNotKnown) {
  Profile p = fixture::tables();
  p.threads[0].functions[0].calls = uint64_t{most};
  p.threads[0].functions[1].calls = UINT64_MAX;  // below zero
  ASSERT_TRUE(write(p, file));
  Profile read = load(file);
  EXPECT_EQ(read.threads[0].functions[0].calls, uint64_t{most});
  EXPECT_EQ(read.threads[0].functions[1].calls, 0u);
}

// ---- the order of contexts ----

TEST(ContextOrder, ChildrenStandTogetherTheLargestFirst) {
  std::vector<Context> contexts = {
      {none, 0, 0, 1, 1, 0}, {0, 0, 1, 1, 5, 0}, {1, 0, 2, 1, 7, 0}, {0, 0, 3, 1, 20, 1}, {none, 0, 4, 1, 100, 0}};
  std::vector<OrderedContext> o = order_contexts(contexts);
  std::vector<uint32_t> order;
  for (const OrderedContext& c : o) order.push_back(c.original);
  EXPECT_EQ(order, (std::vector<uint32_t>{4, 0, 3, 1, 2}));
  EXPECT_EQ(o[1].total, 33u);
  EXPECT_EQ(o[1].os_time_total, 1u);
  EXPECT_EQ(o[1].first_child, 2u);
  EXPECT_EQ(o[1].children, 2u);
  EXPECT_EQ(o[3].first_child, 4u);
  EXPECT_EQ(o[4].parent, 3u);
}

// ---- whole, or not at all ----

TEST_F(StoreTest, TheOldFileIsKept) {
  ASSERT_TRUE(write_tables());
  auto first = fs::file_size(file);
  auto before_the_run = fs::file_time_type::clock::now() - std::chrono::years(10);
  fs::last_write_time(file, before_the_run);
  ASSERT_TRUE(write(fixture::rich(), file));
  EXPECT_EQ(fs::file_size(file + ".old"), first);
  ASSERT_TRUE(write(fixture::rich(), file));  // what the run itself has written is replaced
  EXPECT_EQ(fs::file_size(file + ".old"), first);
  EXPECT_EQ(Reader::open(file)->run()->command[0], "rich");
  fs::last_write_time(file, before_the_run);
  ASSERT_TRUE(write_tables());
  EXPECT_EQ(Reader::open(file + ".old")->run()->command[0], "rich");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 2);  // nothing else is left
}

TEST_F(StoreTest, ItIsItsUsersAlone) {
  mode_t mask = umask(0);
  ASSERT_TRUE(write_tables());
  umask(mask);
  EXPECT_EQ(static_cast<int>(fs::status(file).permissions()), 0600);
}

TEST_F(StoreTest, AMissingDirectoryIsTold) {
  auto written = write(fixture::tables(), directory / "none" / "a.weir");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().what.find("none/a.weir: cannot be written: No such file"), std::string::npos)
      << written.error().what;
}

TEST_F(StoreTest, ADirectoryInItsPlaceIsTold) {
  fs::create_directory(file);
  auto written = write_tables();
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().what.find("is a directory"), std::string::npos) << written.error().what;
  EXPECT_TRUE(fs::is_empty(file));
}

TEST_F(StoreTest, ADirectoryThatCannotBeWrittenIsTold) {
  ASSERT_TRUE(write_tables());
  fs::permissions(directory, fs::perms{0555});
  uid_t user = geteuid();
  ASSERT_EQ(user ? 0 : seteuid(65534), 0);  // root may write anywhere
  auto written = write_tables();
  ASSERT_EQ(user ? 0 : seteuid(0), 0);
  fs::permissions(directory, fs::perms::owner_all);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().what.find("Permission denied"), std::string::npos) << written.error().what;
}

TEST_F(StoreTest, WhatDoesNotFitLeavesTheOldFile) {
  ASSERT_TRUE(write_tables());
  std::string before = load(file).run.command[0];
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = {512 * 1024, old.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  auto written = write(fixture::large(1000, 20000, 20000), file);
  setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().what.starts_with(file + ": ")) << written.error().what;
  EXPECT_EQ(load(file).run.command[0], before);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
}

// ---- what is no profile ----

TEST_F(StoreTest, AFileThatIsMissing) { EXPECT_NE(why_not_open().find("No such file"), std::string::npos); }

TEST_F(StoreTest, AFileThatIsNotSqlite) {
  for (const char* content :
       {"", "x", "SQLite format", "#!/bin/sh\necho a program that is longer than a header of SQLite\n"}) {
    std::ofstream(file) << content;
    EXPECT_NE(why_not_open().find("is not a Weir profile"), std::string::npos) << content;
  }
}

TEST_F(StoreTest, AFileThatIsCutShort) {
  ASSERT_TRUE(write_tables());
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_NE(why_not_open().find("cut short"), std::string::npos) << why_not_open();
  fs::resize_file(file, 50);
  EXPECT_NE(why_not_open(), "");
}

TEST_F(StoreTest, AnotherSqliteFile) {
  sql("CREATE TABLE t(x)");
  EXPECT_NE(why_not_open().find("not one that Weir wrote"), std::string::npos) << why_not_open();
}

TEST_F(StoreTest, ANewerSchema) {
  ASSERT_TRUE(write_tables());
  sql("PRAGMA user_version = 99");
  EXPECT_NE(why_not_open().find("newer Weir (schema 99"), std::string::npos) << why_not_open();
}

TEST_F(StoreTest, AnotherKind) {
  ASSERT_TRUE(write_tables());
  sql("UPDATE weir SET kind = 'memory errors'");
  EXPECT_NE(why_not_open().find("holds 'memory errors'"), std::string::npos) << why_not_open();
}

TEST_F(StoreTest, AMissingTable) {
  ASSERT_TRUE(write_tables());
  sql("DROP TABLE context; CREATE VIEW context AS SELECT 1 AS id");
  EXPECT_NE(why_not_open().find("tables are missing"), std::string::npos) << why_not_open();
}

TEST_F(StoreTest, DamagedPagesAreToldNotCrashedOn) {
  ASSERT_TRUE(write_tables());
  std::string good;
  {
    std::ifstream in(file, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  size_t told = 0;
  for (size_t page = 1; page * 16384 < good.size(); page++) {
    std::string bad = good;
    for (size_t i = 0; i < 4096; i += 7) bad[page * 16384 + i] = static_cast<char>(i * 31);
    std::ofstream(file, std::ios::binary) << bad;
    auto reader = Reader::open(file);
    bool ok = reader && reader->totals() && reader->functions({}, [](const FunctionRow&) {}) &&
              reader->contexts([](const ContextRow&) {}) && reader->calls({}, [](const CallRow&) {});
    told += !ok;
  }
  EXPECT_GT(told, 3u);
}

}  // namespace
}  // namespace weir::store
