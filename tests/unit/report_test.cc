// The views of fixtures whose figures are known; exports; and files that nobody should have written.
#include <sys/stat.h>

#include <set>
#include <sstream>

#include "base/text.h"
#include "report_fixture.h"

namespace weir::report {
namespace {

// ---- views ----

TEST_F(ReportTest, TablesOneToThree) {
  json functions = as_json(view("functions"))["functions"];
  struct Row {
    const char* name;
    uint64_t calls, self, total;
  };
  // Sorted by self; B and C have three quarters and one quarter of D, which is what gprof gets wrong.
  Row rows[] = {{"D", 80, 40000, 40000}, {"C", 1, 30000, 40000},    {"B", 1, 20000, 50000},
                {"A", 1, 10000, 100000}, {"main", 1, 1000, 101000}, {"start", 1, 100, 101100}};
  ASSERT_EQ(functions.size(), std::size(rows));
  for (size_t i = 0; i < std::size(rows); i++) {
    EXPECT_EQ(functions[i]["name"], rows[i].name);
    EXPECT_EQ(functions[i]["calls"], rows[i].calls) << rows[i].name;
    EXPECT_EQ(functions[i]["self"], rows[i].self) << rows[i].name;
    EXPECT_EQ(functions[i]["total"], rows[i].total) << rows[i].name;
  }
  EXPECT_EQ(functions[0]["self_min"], 250);
  EXPECT_EQ(functions[0]["self_max"], 750);
  EXPECT_EQ(functions[0]["file"], "/src/tables.c");
  EXPECT_EQ(functions[0]["line"], 1);
  EXPECT_EQ(functions[0]["image"], "/usr/local/bin/tables");

  json detail = as_json(view("detail", "D"));
  ASSERT_EQ(detail["callers"].size(), 2u);
  EXPECT_EQ(detail["callers"][0]["name"], "B");
  EXPECT_EQ(detail["callers"][0]["calls"], 40);
  EXPECT_EQ(detail["callers"][0]["total"], 30000);
  EXPECT_EQ(detail["callers"][0]["share"], 0.75);
  EXPECT_EQ(detail["callers"][0]["site"], "B+0x5 (tables.c:8)");
  EXPECT_EQ(detail["callers"][1]["name"], "C");
  EXPECT_EQ(detail["callers"][1]["total"], 10000);
  EXPECT_EQ(detail["callees"].size(), 0u);
  json a = as_json(view("detail", "A"));
  ASSERT_EQ(a["callees"].size(), 2u);
  EXPECT_EQ(a["callees"][0]["name"], "B");
  EXPECT_EQ(a["callees"][0]["total"], 50000);
}

TEST_F(ReportTest, TheFunctionListAsText) {
  EXPECT_EQ(show(view("functions"), {Format::Text, 80, false}),
            "6 of 7 functions ran; 101 k cycles = code + OS calls\n"
            " self %     self   total %   total  calls  image   function\n"
            "39.56 %   40.0 k   39.56 %  40.0 k     80  tables  D\n"
            "29.67 %   30.0 k   39.56 %  40.0 k      1  tables  C\n"
            "19.78 %   20.0 k   49.46 %  50.0 k      1  tables  B\n"
            " 9.89 %   10.0 k   98.91 %   100 k      1  tables  A\n"
            " 0.99 %  1,000     99.90 %   101 k      1  tables  main\n"
            " 0.10 %    100    100.00 %   101 k      1  tables  start\n"
            "\n"
            "data: complete\n");
}

TEST_F(ReportTest, EveryViewInEveryForm) {
  for (const profile::Profile& p : {fixture::tables(), fixture::rich()}) {
    put(p);
    for (const char* name : views) {
      bool function = std::set<std::string>{"detail", "source", "asm"}.contains(name);
      Options options = view(name, function ? "main" : "");
      json j = as_json(options);
      EXPECT_EQ(j["view"], name);
      EXPECT_EQ(j["run"]["command"], json(p.run.command));
      EXPECT_EQ(j["notes"].size(), p.run.complete ? 0u : 4u);

      // As many commas in a line of CSV as in its header, quotes taken into account.
      std::string csv = show(options, {Format::Csv, 0, false});
      ASSERT_FALSE(csv.starts_with("error")) << csv;
      std::set<size_t> commas;
      size_t n = 0;
      bool quoted = false;
      for (char c : csv) {
        if (c == '"') quoted = !quoted;
        if (c == ',' && !quoted) n++;
        if (c == '\n' && !quoted) commas.insert(std::exchange(n, 0));
      }
      EXPECT_EQ(commas.size(), 1u) << name << "\n" << csv;

      for (size_t width : {80, 120, 160}) {
        std::istringstream text(show(options, {Format::Text, width, false}));
        for (std::string line; std::getline(text, line);) EXPECT_LE(display_width(line), width) << name << ": " << line;
      }
      std::string plain = show(options, {Format::Text, 0, false});
      EXPECT_EQ(plain.find('\x1b'), std::string::npos);
      EXPECT_NE(plain.find("\ndata: "), std::string::npos);
      EXPECT_NE(show(options, {Format::Text, 100, true}).find("\x1b[0m"), std::string::npos) << name;
    }
  }
}

TEST_F(ReportTest, TheSumOfSelfIsTheTotalHoweverOsTimeIsShown) {
  put(fixture::rich());
  for (store::OsTime os : {store::OsTime::InSelf, store::OsTime::Apart}) {
    Options options = view("functions");
    options.os = os;
    json j = as_json(options);
    uint64_t sum = 0;
    for (const json& f : j["functions"]) {
      sum += f["self"].get<uint64_t>();
      EXPECT_LE(f["total"], j["run"]["total"]);
    }
    EXPECT_EQ(sum, j["run"]["total"]);
    EXPECT_EQ(sum, 17047u);
    bool apart = os == store::OsTime::Apart;
    EXPECT_EQ(by_name(j["functions"], "[read]").is_null(), !apart);
    EXPECT_EQ(by_name(j["functions"], "main")["self"], apart ? 1000 : 1400);
    EXPECT_EQ(by_name(j["functions"], "main")["total"], 6920);
    EXPECT_EQ(by_name(j["functions"], "main")["os_time"], 400);
    if (apart) {
      EXPECT_EQ(by_name(j["functions"], "[nanosleep]")["self"], 8000);
    }
  }
}

TEST_F(ReportTest, OneThreadOrOneProcess) {
  put(fixture::rich());
  auto total = [&](const std::string& thread, const std::string& process) -> std::string {
    store::Reader reader = open();
    if (auto selected = reader.select(thread, process); !selected) return selected.error().what;
    json j = json::parse(show_with(reader, view("functions"), {Format::Json, 0, false}));
    uint64_t sum = 0;
    for (const json& f : j["functions"]) sum += f["self"].get<uint64_t>();
    EXPECT_EQ(sum, j["run"]["total"]);
    return std::to_string(sum);
  };
  EXPECT_EQ(total("102", ""), "950");
  EXPECT_EQ(total("1", ""), "950");  // by index
  EXPECT_EQ(total("", "100"), "7870");
  EXPECT_EQ(total("", "101"), "9177");
  EXPECT_EQ(total("102", "100"), "950");
  EXPECT_NE(total("102", "101").find("no thread 102 in process 101"), std::string::npos);
}

TEST_F(ReportTest, SortFilterLimit) {
  put(fixture::rich());
  Options options = view("functions");
  options.sort = "calls";
  json j = as_json(options);
  EXPECT_EQ(j["functions"][0]["name"], "area(int)");
  options.sort = "nonsense";
  EXPECT_NE(show(options).find("no column 'nonsense' to sort by; there are: self, total"), std::string::npos);
  options.sort = "";
  options.filter = "^(fib|on_)";
  EXPECT_EQ(as_json(options)["functions"].size(), 2u);
  options.filter = "(";
  EXPECT_NE(show(options).find("not a regular expression"), std::string::npos);
  options.filter = "";
  options.limit = 2;
  EXPECT_EQ(as_json(options)["functions"].size(), 2u);
  EXPECT_NE(show(options).find("… and 7 more (--limit 0)"), std::string::npos) << show(options);
}

TEST_F(ReportTest, AFunctionIsFoundByWhatAPersonTypes) {
  put(fixture::rich());
  for (const char* text :
       {"fib", "fib(int)", "_Z3fibi", "rich+0x1040", "rich+0x1055", "/opt/rich/bin/rich+0x1041", "ib(in"})
    EXPECT_EQ(as_json(view("detail", text))["name"], "fib(int)") << text;
  EXPECT_EQ(as_json(view("detail", "area"))["name"], "area(int)");  // the one of two that ran
  EXPECT_EQ(as_json(view("detail", "libc.so.6+0x28004"))["name"], "libc.so.6+0x28000");
  std::string several = show(view("detail", "(int)"));
  EXPECT_NE(several.find("'(int)' is part of 3 names"), std::string::npos) << several;
  EXPECT_NE(several.find("rich+0x1040  fib(int)"), std::string::npos) << several;
  EXPECT_NE(show(view("detail", "nonsense")).find("no function is named 'nonsense'"), std::string::npos);
  EXPECT_NE(show(view("detail", "[read]")).find("oscalls"), std::string::npos);
  EXPECT_NE(show(view("detail")).find("which function?"), std::string::npos);
}

TEST_F(ReportTest, RecursionIsNotCountedTwice) {
  put(fixture::rich());
  json fib = as_json(view("detail", "fib"));
  EXPECT_EQ(fib["calls"], 5);
  EXPECT_EQ(fib["total"], 5000);
  json tree = as_json(view("tree"));
  std::vector<std::pair<uint64_t, uint64_t>> fibs;  // depth, total
  for (const json& node : tree["nodes"])
    if (node["name"] == "fib(int)") fibs.emplace_back(node["depth"], node["total"]);
  EXPECT_EQ(fibs, (std::vector<std::pair<uint64_t, uint64_t>>{{1, 5000}, {2, 3300}, {3, 800}}));
}

TEST_F(ReportTest, Source) {
  put(fixture::rich());
  Options options = view("source", "fib");
  options.blocks = true;
  json j = as_json(options);
  std::map<int, json> lines;
  for (const json& row : j["rows"]) lines[row["line"]] = row;
  EXPECT_EQ(lines[2]["mark"], "|");
  EXPECT_EQ(lines[3]["mark"], "+");
  EXPECT_EQ(lines[3]["count"], 5);
  EXPECT_EQ(lines[3]["self"], 300 + 1500 + 2500);
  EXPECT_EQ(lines[3]["text"], "  if (n > 1 && n < 99) return fib(n - 1) + fib(n - 2);");
  EXPECT_EQ(lines[4]["count"], 3);
  uint64_t sum = 0;
  for (auto& [n, row] : lines)
    if (row["self"].is_number()) sum += row["self"].get<uint64_t>();
  EXPECT_EQ(sum, 5000u);  // the lines of a function are its self time
  EXPECT_EQ(j["blocks"].size(), 3u);
  EXPECT_EQ(j["blocks"][1]["count"], 3);

  json area = as_json(view("source", "area(int)"));
  std::map<std::string, uint64_t> of_file;
  for (const json& row : area["rows"])
    if (row["self"].is_number()) of_file[row["file"]] += row["self"].get<uint64_t>();
  EXPECT_EQ(of_file["/src/square.h"], 800u);  // inlined
  EXPECT_EQ(of_file["/src/rich.cc"], 200u);

  std::map<int, std::string> marks;
  json whole = as_json(view("source", "rich.cc"));
  for (const json& row : whole["rows"]) marks[row["line"]] = row["mark"];
  EXPECT_EQ(marks[1], "");
  EXPECT_EQ(marks[3], "+");
  EXPECT_EQ(marks[9], "#");  // never()
  EXPECT_NE(show(view("source", "libc.so.6+0x28000")).find("no lines are known"), std::string::npos);

  put(fixture::tables());
  json main = as_json(view("source", "main"));
  EXPECT_EQ(main["rows"][2]["line"], 16);
  EXPECT_EQ(main["rows"][2]["mark"], "+");  // "if (error) report()": one block ran, one did not
  EXPECT_EQ(main["rows"][2]["count"], 1);
}

TEST_F(ReportTest, Assembly) {
  json rows = as_json(view("asm", "main"))["rows"];
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0]["text"], "call 0x1040");
  EXPECT_EQ(rows[0]["callees"], "→ A (1)");
  EXPECT_EQ(rows[0]["self"], 800);
  EXPECT_EQ(rows[2]["text"], "jz 0x102e");
  EXPECT_EQ(rows[3]["mark"], "#");
  EXPECT_EQ(rows[4]["offset"], 0x102e);
  EXPECT_NE(show(view("asm", "report")).find("never ran"), std::string::npos);
  put(fixture::rich());
  EXPECT_EQ(as_json(view("asm", "rich+0x1140"))["rows"][0]["text"], "(bad) 06");
}

TEST_F(ReportTest, TreeShowsTheLargestNodes) {
  put(fixture::large(1000, 4000, 20000));
  Options options = view("tree");
  options.limit = 25;
  json nodes = as_json(options)["nodes"];
  ASSERT_EQ(nodes.size(), 25u);
  uint64_t least = UINT64_MAX;
  for (const json& node : nodes) least = std::min<uint64_t>(least, node["total"]);
  options.limit = 0;
  json all = as_json(options)["nodes"];
  EXPECT_EQ(all.size(), 20000u);
  size_t larger = 0;
  for (const json& node : all) larger += node["total"] > least;
  EXPECT_LT(larger, 25u);
  options.filter = "Class1::";
  EXPECT_EQ(as_json(options)["nodes"][0]["name"], "project::module::Class1::method(int, char const*)");

  profile::Profile p = fixture::tables();
  p.threads[0].contexts.clear();
  put(p);
  EXPECT_NE(show(view("tree")).find("--paths=full"), std::string::npos);
}

TEST_F(ReportTest, OsCallsAndCoverageAndThreads) {
  put(fixture::rich());
  json os = as_json(view("oscalls"));
  EXPECT_EQ(by_name(os["oscalls"], "read")["time"], 250);
  EXPECT_EQ(by_name(os["oscalls"], "read")["waited"], 7000);
  EXPECT_EQ(by_name(os["oscalls"], "write")["waited"], 0);
  EXPECT_EQ(by_name(os["oscalls"], "nanosleep")["class"], "timed");
  EXPECT_EQ(by_name(os["oscalls"], "nanosleep")["errors"], 1);
  EXPECT_EQ(by_name(os["by_function"], "write")["function"], "write");
  json coverage = as_json(view("coverage"))["coverage"];
  for (const json& row : coverage) {
    if (row["file"] != "/src/rich.cc") continue;
    EXPECT_EQ(row["functions"], 6);
    EXPECT_EQ(row["functions_run"], 4);
    EXPECT_EQ(row["blocks"], 7);
    EXPECT_EQ(row["blocks_run"], 6);
  }
  json threads = as_json(view("threads"))["threads"];
  ASSERT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads[0]["exit_status"], nullptr);  // the one with the most time
  EXPECT_EQ(threads[1]["exit_status"], 3);
  EXPECT_EQ(threads[1]["ended_by"], "exit");
  EXPECT_EQ(threads[2]["name"], "worker");
  EXPECT_NE(show(view("threads")).find("  unknown  "), std::string::npos);
}

TEST_F(ReportTest, EndedBySignals) {
  profile::Profile p = fixture::rich();
  for (profile::Process& process : p.processes) process.exit_status = 130, process.ended_by = "signal";
  put(p);
  EXPECT_EQ(as_json(view("threads"))["threads"][2]["ended_by"], "signal");
  EXPECT_NE(show(view("threads")).find("  SIGINT  "), std::string::npos);
  EXPECT_EQ(as_json(view("summary"))["ended"], "SIGINT; 1 of its processes by a signal: see threads");
}

TEST_F(ReportTest, WhatOlderFilesDoNotHave) {
  put(fixture::rich());
  sql("ALTER TABLE os_count DROP COLUMN waited; ALTER TABLE process DROP COLUMN ended_by; PRAGMA user_version = 1");
  json os = as_json(view("oscalls"));
  EXPECT_EQ(by_name(os["oscalls"], "read")["time"], 250);
  EXPECT_EQ(by_name(os["oscalls"], "read")["waited"], 0);
  EXPECT_EQ(as_json(view("threads"))["threads"][0]["ended_by"], nullptr);
  EXPECT_NE(show(view("summary")).find("ended         exit 3"), std::string::npos);
}

TEST_F(ReportTest, FilesOfSchemaTwoAreReadAsBefore) {
  auto shown = [&] {
    std::string all;
    for (const char* name : views)
      all += show(view(name, std::set<std::string>{"detail", "source", "asm"}.contains(name) ? "main" : ""),
                  {Format::Json, 0, false});
    return all;
  };
  profile::Profile p = fixture::rich();
  p.run.user_time = p.run.system_time = {};
  for (profile::Function& f : p.functions) f.named_by = f.clone = "";
  p.run.os_model = "classes";  // (older files had no other, and tell no waits)
  for (profile::Thread& t : p.threads) {
    t.waited = 0;
    for (auto& f : t.functions) f.waited = f.waited_total = 0;
    for (auto& c : t.calls) c.waited_total = 0;
    for (auto& c : t.contexts) c.waited = 0;
    for (auto& c : t.os_calls) c.waited = 0;
  }
  put(p);
  std::string now = shown();
  sql("DROP TABLE sampling; DROP TABLE sampling_reason; DROP TABLE leaf_count; UPDATE weir SET schema = 2; PRAGMA "
      "user_version = 2");
  EXPECT_EQ(shown(), now);
  EXPECT_EQ(as_json(view("summary"))["sampling"], nullptr);
  sql("UPDATE weir SET kind = 'sampled profile'");
  EXPECT_NE(store::Reader::open(file()).error().what.find("holds 'sampled profile'"), std::string::npos);
}

TEST_F(ReportTest, WhatTheFilterLeavesOut) {
  put(fixture::rich());
  for (const char* name : {"summary", "functions", "callers", "tree", "coverage"}) {
    Options options = view(name);
    options.filter = "^nonsense$";
    std::string text = show(options);
    EXPECT_NE(text.find("nothing matches --filter '^nonsense$'\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("  calls  "), std::string::npos) << text;  // no table
    options.filter = "main|rich";
    EXPECT_EQ(show(options).find("nothing matches"), std::string::npos) << name;
  }
}

TEST_F(ReportTest, NamesComeBeforeImages) {
  profile::Profile p = fixture::tables();
  p.images[0].path = "/opt/a-library-with-a-long-name.so.1";
  p.functions[0].name = "a_function_name_of_30_characters";
  put(p);
  std::string text = show(view("functions"), {Format::Text, 90, false});
  EXPECT_NE(text.find("a_function_name_of_30_characters"), std::string::npos) << text;
  EXPECT_NE(text.find("a-librar"), std::string::npos) << text;
  EXPECT_EQ(text.find("long-name.so.1"), std::string::npos) << text;
}

TEST_F(ReportTest, AnotherCpu) {
  Options options = view("functions");
  options.cost = [](std::span<const std::byte> code) { return static_cast<uint32_t>(code.size()); };
  json j = as_json(options);
  EXPECT_EQ(by_name(j["functions"], "D")["self"], 160 * 4 + 80 * 1);
  EXPECT_EQ(by_name(j["functions"], "B")["self"], 5 + 40 * 9);
  EXPECT_EQ(j["functions"][0]["name"], "D");
}

// ---- exports ----

TEST_F(ReportTest, FoldedStacksAddUp) {
  put(fixture::rich());
  std::istringstream lines(exported(open(), export_folded));
  std::map<std::string, uint64_t> values;
  uint64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    size_t space = line.rfind(' ');
    uint64_t value = std::stoull(line.substr(space + 1));
    EXPECT_TRUE(values.emplace(line.substr(0, space), value).second) << "twice: " << line;
    sum += value;
  }
  EXPECT_EQ(sum, 17047u);
  EXPECT_EQ(values["main;fib(int);fib(int)"], 2500u);
  EXPECT_EQ(values["main"], 1400u);

  profile::Profile p = fixture::tables();
  p.threads[0].contexts.clear();
  put(p);
  EXPECT_NE(exported(open(), export_folded).find("--paths=full"), std::string::npos);
  EXPECT_NE(exported(open(), export_pprof).find("--paths=full"), std::string::npos);
  EXPECT_NE(exported(open(), export_speedscope).find("--paths=full"), std::string::npos);
}

TEST_F(ReportTest, CallgrindAddsUp) {
  put(fixture::rich());
  std::istringstream lines(exported(open(), export_callgrind));
  uint64_t cycles = 0, os = 0;
  bool inclusive = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0x") && !inclusive) {
      std::istringstream words(line);
      std::string address;
      uint64_t n, c, o;
      ASSERT_TRUE(words >> address >> n >> c >> o) << line;
      cycles += c;
      os += o;
    }
    inclusive = line.starts_with("calls=");
  }
  EXPECT_EQ(cycles, 7547u);
  EXPECT_EQ(os, 9500u);
}

// ---- a file that nobody should have written ----

TEST_F(ReportTest, AHostileStoreIsToldOrShownNeverCrashedOn) {
  const char* attacks[] = {
      "UPDATE context SET parent = id, first_child = 0, children = 1000000",
      "UPDATE context SET parent = NULL, first_child = -5, children = 4294967295",
      "UPDATE context SET parent = 1 - id, id = 4294967000 + id",
      "UPDATE context SET function = 'text', site = x'00ff', total = -1, self = 9223372036854775807",
      "UPDATE function SET name = 999999, image = -1, file = 'x', first_block = -1, blocks = 9223372036854775807",
      "UPDATE function SET offset = -1, size = -1, line = 4294967296",
      "UPDATE function SET first_block = 0, blocks = 1000",
      "UPDATE function SET line = 0",
      "UPDATE string SET text = x'ff00fe1b5b'",
      "UPDATE function_count SET calls = -1, self = 'abc', total = 9223372036854775807, self_min = 1e300",
      "UPDATE call_count SET calls = NULL, total = -5, os_time_total = 9223372036854775807",
      "UPDATE site SET function = 4294967295, line = -1, offset = -1, kind = NULL",
      "UPDATE block SET bytes = NULL, cycles = -1, offset = -1, instructions = 'x'",
      "UPDATE block SET bytes = zeroblob(100000)",
      "UPDATE block_line SET line = 4294967294, file = NULL, cycles = 4294967295",
      "UPDATE block_line SET line = 4294967295 - line, cycles = -1",
      "UPDATE block_count SET count = 9223372036854775807, extra = -1",
      "UPDATE thread SET cycles = -1, process = 77, tid = -1, os_time = 9223372036854775807",
      "UPDATE thread SET cycles = 9223372036854775807",
      "UPDATE process SET parent = id, pid = -1, exit_status = 999999999999",
      "UPDATE os_count SET number = number + 100000, class = NULL, time = -1",
      "DELETE FROM string",
      "DELETE FROM run",
      "DELETE FROM thread",
      "DELETE FROM process",
      "DELETE FROM function",
      "DELETE FROM site",
      "DELETE FROM image",
      "DELETE FROM block_line",
      "UPDATE run SET started = -9223372036854775807, ended = 9223372036854775807, cycles_per_second = -1",
  };
  profile::Profile rich = fixture::rich();
  for (const char* attack : attacks) {
    put(rich);
    sql(std::string("PRAGMA ignore_check_constraints = on; ") + attack);
    for (const char* name : views)
      for (Format format : {Format::Text, Format::Json, Format::Csv})
        for (const char* subject : {"", "main", "fib", "rich.cc"}) {
          Options options = view(name, subject);
          options.blocks = options.view == "source";
          options.sites = options.view == "tree";
          std::string text = show(options, {format, 80, false});
          EXPECT_FALSE(text.empty()) << attack;
          if (format == Format::Json && !text.starts_with("error")) {
            EXPECT_TRUE(json::accept(text)) << attack << ": " << name;
          }
        }
    for (auto how : all_exports) exported(open(), how);
  }
}

// What a profile calls a source file may be anything that can be opened.
TEST_F(ReportTest, ASourceThatIsNoFileIsNotRead) {
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  for (const std::string& path : {(directory / "fifo").string(), std::string("/dev/zero"), directory.string()}) {
    put(fixture::tables());
    sql(fmt::format("UPDATE string SET text = '{}' WHERE text = '/src/tables.c'", path));
    for (const std::string& subject : {std::string("D"), path})
      EXPECT_NE(show(view("source", subject)).find("not found"), std::string::npos) << path;
  }
}

TEST_F(ReportTest, TabsOfASourceAreExpanded) {
  std::ofstream(directory / "tables.c") << "void D(int n) {\n\twhile\t(n--) spin();\n}";
  EXPECT_EQ(as_json(view("source", "D"))["rows"][1]["text"], "        while   (n--) spin();");
}

// Twice the same ids, level below level, would be a tree of 2^200 nodes.
TEST_F(ReportTest, CallPathsThatAreThereTwiceAreTold) {
  sql("DROP VIEW function_total; DROP TABLE context; CREATE TABLE context(id, thread, parent, site, function, calls, self, "
      "os_time, waited, total, os_time_total, waited_total, first_child, children);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 200), twice(j) AS (VALUES (0), (1))"
      "INSERT INTO context SELECT i, 0, CASE i WHEN 0 THEN NULL ELSE i - 1 END, 0, 0, 1, 1, 0, 0, 1000 - i, 0, 0, i + 1, 1 "
      "FROM "
      "n, twice");
  for (Format format : {Format::Text, Format::Json, Format::Csv})
    EXPECT_NE(show(view("tree"), {format, 80, false}).find("damaged; profile again"), std::string::npos);
  for (auto how : all_exports) EXPECT_LT(exported(open(), how).size(), 1'000'000u);
}

}  // namespace
}  // namespace weir::report
