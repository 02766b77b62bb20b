// What the page is told (spec 2, V1 to V8): lists and graphs, cuts of trees of call paths, two runs laid over each
// other, questions that nobody should ask, and the answers in an exported file.
#include <zlib.h>

#include <set>

#include "view/export_html.h"
#include "view_fixture.h"

namespace weir::view {
namespace {

std::vector<std::string> names_of(const json& rows) {
  std::vector<std::string> names;
  for (const json& row : rows) names.push_back(row["name"]);
  return names;
}
using Names = std::vector<std::string>;

// ---- functions and calls ----

TEST_F(ViewTest, V1_FunctionsBySelfTimeThenByAnyColumn) {
  auto sorted = [&](const Parameters& p) { return names_of(ask("functions", p)["rows"]); };
  EXPECT_EQ(sorted({}), (Names{"D", "C", "B", "A", "main", "start"}));
  EXPECT_EQ(sorted({{"sort", "total"}}), (Names{"start", "main", "A", "B", "C", "D"}));  // (C and D: by id)
  EXPECT_EQ(sorted({{"sort", "calls"}}), (Names{"D", "start", "main", "A", "B", "C"}));
  EXPECT_EQ(sorted({{"sort", "name"}}), (Names{"A", "B", "C", "D", "main", "start"}));
  EXPECT_EQ(sorted({{"sort", "self_max"}, {"ascending", "1"}}), (Names{"start", "D", "main", "A", "B", "C"}));
  for (const char* column :
       {"self", "total", "calls", "self_min", "self_max", "os_calls", "os_time", "name", "image", "file"}) {
    Names up = sorted({{"sort", column}, {"ascending", "1"}}), down = sorted({{"sort", column}});
    std::ranges::reverse(up);
    EXPECT_EQ(up, down) << column;
    EXPECT_EQ(down.size(), 6u) << column;
  }
  EXPECT_EQ(ask("functions", {{"sort", "colour"}}), "error: no column “colour”");
}

TEST_F(ViewTest, V1_FilteredByTextOrRegularExpression) {
  put(fixture::rich());
  auto matching = [&](const std::string& filter, bool regex) {
    Parameters p = {{"filter", filter}, {"sort", "name"}};
    if (regex) p["regex"] = "1";
    json answer = ask("functions", p);
    EXPECT_EQ(answer["count"], answer["rows"].size());
    return names_of(answer["rows"]);
  };
  EXPECT_EQ(matching("FIB", false), Names{"fib(int)"});
  EXPECT_EQ(matching("b(i", false), Names{"fib(int)"});
  EXPECT_EQ(matching("^(MAIN|fib)", true), (Names{"fib(int)", "main"}));
  EXPECT_EQ(matching("^(main|fib)", false), Names{});
  EXPECT_TRUE(
      ask("functions", {{"filter", "("}, {"regex", "1"}}).get<std::string>().starts_with("error: “(” is not a regular"));
}

TEST_F(ViewTest, V1_PagesOfTheListAndWhereAFunctionIs) {
  json page = ask("functions", {{"offset", "2"}, {"limit", "3"}, {"locate", std::to_string(id_of("main"))}});
  EXPECT_EQ(names_of(page["rows"]), (Names{"B", "A", "main"}));
  EXPECT_EQ(page["count"], 6);
  EXPECT_EQ(page["first"], 2);
  EXPECT_EQ(page["position"], 4);
  EXPECT_TRUE(ask("functions", {{"filter", "D"}, {"locate", std::to_string(id_of("main"))}})["position"].is_null());
  EXPECT_EQ(ask("functions", {{"offset", "600"}})["rows"], json::array());
}

TEST_F(ViewTest, V2_CallersAndCalleesWithTheirShares) {
  json d = ask("function", {{"id", std::to_string(id_of("D"))}});
  EXPECT_EQ(d["function"]["self_min"], 250);
  EXPECT_EQ(d["function"]["self_max"], 750);
  EXPECT_EQ(d["function"]["line"], 1);
  ASSERT_EQ(names_of(d["callers"]), (Names{"B", "C"}));
  EXPECT_EQ(d["callers"][0]["share"], 0.75);
  EXPECT_EQ(d["callers"][0]["total"], 30000);
  EXPECT_EQ(d["callers"][0]["calls"], 40);
  EXPECT_EQ(d["callers"][0]["sites"][0]["place"], "tables.c:8");
  EXPECT_EQ(d["callees"], json::array());
  json a = ask("function", {{"id", std::to_string(id_of("A"))}});
  EXPECT_EQ(names_of(a["callees"]), (Names{"B", "C"}));
  json start = ask("function", {{"id", std::to_string(id_of("start"))}});
  ASSERT_EQ(start["callers"].size(), 1u);
  EXPECT_TRUE(start["callers"][0]["id"].is_null());  // the kernel
}

TEST_F(ViewTest, V4_TheGraphHasEveryCallOnceAndMarksRootsAndRecursion) {
  put(fixture::rich());
  json graph = ask("graph");
  EXPECT_EQ(graph["functions"], graph["nodes"].size());
  std::map<std::pair<std::string, std::string>, json> edges;
  std::map<uint32_t, std::string> names;
  for (const json& n : graph["nodes"]) names[n["id"]] = n["name"];
  for (const json& e : graph["edges"]) {
    bool added = edges.emplace(std::pair(names.at(e["caller"]), names.at(e["callee"])), e).second;
    EXPECT_TRUE(added) << e;
  }
  EXPECT_EQ((edges.at({"main", "fib(int)"})["total"]), 5000);
  EXPECT_EQ((edges.at({"fib(int)", "fib(int)"})["calls"]), 4);  // from two places
  json fib = by_name(graph["nodes"], "fib(int)"), main = by_name(graph["nodes"], "main");
  EXPECT_EQ(fib["recursive"], true);
  EXPECT_EQ(fib["children"], 0);
  EXPECT_EQ(fib["root"], false);
  EXPECT_EQ(main["recursive"], false);
  EXPECT_EQ(main["children"], 3);
  EXPECT_EQ(main["root"], true);
  auto queries = Queries::open(options);
  (*queries)->most_graph_nodes = 3;  // the largest, and the calls among them
  json part = ask(**queries, "graph", {});
  EXPECT_EQ(names_of(part["nodes"]), (Names{"libc.so.6+0x28000", "main", "fib(int)"}));
  EXPECT_EQ(part["functions"], 9);
  EXPECT_EQ(part["edges"].size(), 2u);  // main → fib → fib
  json below = ask("graph", {{"root", std::to_string(id_of("area(int)"))}});
  EXPECT_EQ(below["nodes"].size(), 2u);
  EXPECT_EQ(below["edges"].size(), 1u);
}

TEST_F(ViewTest, V8_OneThreadAlone) {
  put(fixture::rich());
  json threads = ask("threads")["threads"];
  ASSERT_EQ(threads.size(), 3u);
  for (const json& t : threads) {
    Parameters p = {{"thread", std::to_string(t["id"].get<uint32_t>())}};
    uint64_t whole = t["cycles"].get<uint64_t>() + t["os_time"].get<uint64_t>(), sum = 0;
    json functions = ask("functions", p)["rows"];
    for (const json& f : functions) sum += f["self"].get<uint64_t>();
    EXPECT_EQ(sum, whole) << t;
    EXPECT_EQ(ask("flame", p)["total"][0], whole) << t;
    p["inverted"] = "1";
    EXPECT_EQ(ask("flame", p)["total"][0], whole) << t;
  }
}

// ---- call paths ----

// Are all paths of `all` below `root` in the cut that can be seen, with their figures; and no others?
void expect_cut(const Tree& all, const std::optional<Cut>& cut, const Path& root, size_t most) {
  ASSERT_TRUE(cut);
  Tree shown = tree_of(*cut, root);
  EXPECT_EQ(shown.size(), cut->nodes.size());
  EXPECT_LE(shown.size(), most);
  Cycles whole = all.at(root).size(), least = whole / 4000 + 1, smallest = UINT64_MAX, largest_left = 0;
  for (auto& [path, figures] : shown) {
    ASSERT_TRUE(all.contains(path));
    EXPECT_EQ(figures, all.at(path));
    smallest = std::min(smallest, figures.size());
  }
  size_t branches = 0, seen = 0;
  for (auto& [path, figures] : all) {
    if (path.size() < root.size() || !std::equal(root.begin(), root.end(), path.begin())) continue;
    seen += figures.size() >= least;
    if (shown.contains(path)) continue;
    largest_left = std::max(largest_left, figures.size());
    branches += shown.contains(Path(path.begin(), path.end() - 1));
  }
  EXPECT_EQ(cut->left_out, branches);
  if (seen <= most) {
    EXPECT_LT(largest_left, least) << "a frame that can be seen is missing";
  } else {
    EXPECT_LE(largest_left, smallest) << "a larger one is missing";
  }
}

TEST_F(ViewTest, V8_ACutHasEveryPathThatCanBeSeenOnceWithItsSums) {
  for (uint32_t seed = 1; seed <= 6; seed++) {
    profile::Profile p = with_random_paths(seed, 3000);
    put(p);
    auto reader = store::Reader::open(options.file);
    auto model = Model::load(*reader, nullptr);
    auto paths = Paths::load(*reader, nullptr, *model);
    ASSERT_TRUE(paths);
    Tree all;
    add_paths(all, p, false, false);
    for (size_t most : {20'000, 100, 7, 1}) {
      expect_cut(all, paths->cut({}, most), {}, most);
      Path root =
          std::ranges::max_element(all, {}, [](auto& f) { return f.first.size() == 2 ? f.second.total : 0; })->first;
      expect_cut(all, paths->cut(root, most), root, most);
    }
    EXPECT_FALSE(paths->cut({99}, 100));
  }
}

TEST_F(ViewTest, V8_CallsThatFoundNoPlaceInTheTableOfCallPathsAreTold) {
  Parameters root = {{"root", std::to_string(id_of("main"))}};
  EXPECT_FALSE(ask("flame").contains("missing_calls"));
  EXPECT_FALSE(ask("graph", root).contains("missing_calls"));
  profile::Profile p = fixture::tables();
  uint64_t missing = p.threads[0].contexts.back().calls;
  p.threads[0].contexts.pop_back();
  put(p);
  for (const json& answer : {ask("flame"), ask("flame", {{"inverted", "1"}}), ask("graph", root)}) {
    EXPECT_EQ(answer["missing_calls"], missing);
    EXPECT_GT(answer["made_calls"], missing);
  }
  EXPECT_FALSE(ask("graph").contains("missing_calls"));  // who called whom is known of all
}

TEST_F(ViewTest, V8_ReversedPathsHaveTheTimeOfTheirLeaves) {
  for (uint32_t seed = 1; seed <= 6; seed++) {
    profile::Profile p = with_random_paths(seed, 3000);
    put(p);
    auto reader = store::Reader::open(options.file);
    auto model = Model::load(*reader, nullptr);
    auto paths = Paths::load(*reader, nullptr, *model);
    ASSERT_TRUE(paths);
    Tree all;
    add_paths(all, p, true, false);
    expect_cut(all, paths->inverted({}, 20'000), {}, 20'000);
    Path root = std::ranges::max_element(all, {}, [](auto& f) { return f.first.size() == 2 ? f.second.total : 0; })->first;
    expect_cut(all, paths->inverted(root, 20'000), root, 20'000);
    // A coarser measure where that is too much: no more than that, and what is there is right.
    for (size_t most : {100, 7, 2, 1}) {
      std::optional<Cut> cut = paths->inverted({}, most);
      ASSERT_TRUE(cut);
      EXPECT_LE(cut->nodes.size(), most);
      for (auto& [path, figures] : tree_of(*cut, {})) EXPECT_EQ(figures, all.at(path));
    }
    EXPECT_FALSE(paths->inverted({99}, 100));
    EXPECT_FALSE(paths->inverted({root[0], 99}, 100));
  }
}

TEST_F(ViewTest, V8_PathsOfOneSizeAreShownAsFarAsThereIsRoom) {
  // A recursion all of whose time is at its end; and a caller of many that cost the same.
  profile::Profile p = fixture::tables();
  p.threads[0].contexts.clear();
  for (uint32_t i = 0; i < 5000; i++) p.threads[0].contexts.push_back({i - 1, 0, 5, 1, i == 4999 ? 1000u : 0u, 0});
  put(p);
  auto reader = store::Reader::open(options.file);
  auto model = Model::load(*reader, nullptr);
  auto paths = Paths::load(*reader, nullptr, *model);
  ASSERT_TRUE(paths);
  for (const auto& cut :
       {paths->cut({}, 300), paths->cut({5, 5}, 300), paths->inverted({}, 300), paths->inverted({5, 5}, 300)}) {
    ASSERT_TRUE(cut);
    EXPECT_EQ(cut->nodes.size(), 300u);
    EXPECT_EQ(cut->left_out, 1u);
    EXPECT_EQ(cut->nodes.back().total, 1000u);
  }
}

TEST_F(ViewTest, V8_ADeepRecursionIsFollowedTowardsItsCallersForSomeTimeOnly) {
  profile::Profile p = fixture::tables();
  p.threads[0].contexts.clear();
  for (uint32_t i = 0; i < 30'000; i++) p.threads[0].contexts.push_back({i - 1, 0, 5 - i % 2, 1, 1000, 0});
  put(p);
  auto reader = store::Reader::open(options.file);
  auto model = Model::load(*reader, nullptr);
  auto paths = Paths::load(*reader, nullptr, *model);
  ASSERT_TRUE(paths);
  auto cut = paths->inverted({}, 20'000);
  ASSERT_TRUE(cut);
  EXPECT_GT(cut->nodes.size(), 100u);
  EXPECT_LT(cut->nodes.size(), 20'000u);  // each level has 15,000 leaves
  EXPECT_EQ(cut->nodes[0].total, 30'000'000u);
  EXPECT_EQ(cut->left_out, 2u);
}

TEST_F(ViewTest, V8_TheWidestFirst) {
  json flame = ask("flame");
  Names order;
  for (const json& id : flame["function"]) order.push_back(id == store::none ? "" : flame["names"][to_string(id)][0]);
  EXPECT_EQ(order, (Names{"", "start", "main", "A", "B", "D", "C", "D"}));
  EXPECT_EQ(flame["total"], json({101100, 101100, 101000, 100000, 50000, 30000, 40000, 10000}));
  EXPECT_EQ(flame["self"], json({0, 100, 1000, 10000, 20000, 30000, 30000, 10000}));
  EXPECT_EQ(flame["calls"], json({0, 1, 1, 1, 1, 40, 1, 40}));
}

// ---- two runs ----

TEST_F(ViewTest, V8_ARunBeforeIsMatchedByNameNotById) {
  profile::Profile before = renumbered(fixture::tables());
  put_before(before);
  json rows = ask("functions", {{"sort", "change"}})["rows"];
  ASSERT_EQ(rows.size(), 6u);
  for (const json& f : rows) {
    EXPECT_EQ(f["before"]["self"], f["self"]) << f;
    EXPECT_EQ(f["before"]["total"], f["total"]) << f;
    EXPECT_EQ(f["before"]["calls"], f["calls"]) << f;
  }
  json edges = ask("graph")["edges"];
  EXPECT_EQ(edges.size(), 6u);
  for (const json& e : edges) EXPECT_EQ(e["before"], e["total"]) << e;
  for (const Parameters& p : {Parameters{}, Parameters{{"inverted", "1"}}}) {
    json flame = ask("flame", p);
    EXPECT_EQ(flame["before"], flame["total"]);
  }
  json changes = ask("changes");
  for (const char* kind : {"worse", "better", "added", "removed"}) EXPECT_EQ(changes[kind], json::array()) << kind;
}

TEST_F(ViewTest, V8_WorseBetterNewAndGone) {
  profile::Profile before = fixture::tables();
  auto& t = before.threads[0];
  t.functions[3].self = 25000;  // B
  t.functions[4].self = 20000;  // C
  // What has another body is another function: E is not D by another name.
  before.functions[5].name = before.functions[5].linkage_name = "E";
  before.images[0].build_id = "another";
  for (const profile::Block& b : before.blocks)
    if (b.function == 5) std::fill_n(before.code.begin() + b.code, b.size, std::byte{0x90});
  put_before(renumbered(before));
  json changes = ask("changes");
  EXPECT_EQ(names_of(changes["worse"]), Names{"C"});
  EXPECT_EQ(names_of(changes["better"]), Names{"B"});
  EXPECT_EQ(names_of(changes["added"]), Names{"D"});
  ASSERT_EQ(names_of(changes["removed"]), Names{"E"});
  EXPECT_EQ(changes["removed"][0]["self"], 0);
  EXPECT_EQ(changes["removed"][0]["before"]["self"], 40000);
  EXPECT_EQ(names_of(ask("functions", {{"sort", "change"}})["rows"]).front(), "D");
  EXPECT_EQ(names_of(ask("functions", {{"sort", "change"}})["rows"]).back(), "E");
  // What only ran before is asked for by an id of its own, and has its callers.
  json gone = ask("function", {{"id", to_string(changes["removed"][0]["id"])}});
  EXPECT_EQ(names_of(gone["callers"]), (Names{"B", "C"}));
  EXPECT_EQ(gone["callers"][0]["before"], 30000);
  EXPECT_EQ(gone["callers"][0]["id"], id_of("B"));
}

TEST_F(ViewTest, V8_RenamedFunctionsAreTheSame) {
  profile::Profile before = fixture::tables();
  before.functions[5].name = before.functions[5].linkage_name = "E";
  put_before(renumbered(before));
  json changes = ask("changes");
  for (const char* kind : {"worse", "better", "added", "removed"}) EXPECT_EQ(changes[kind], json::array()) << kind;
  ASSERT_EQ(names_of(changes["renamed"]), Names{"D"});
  EXPECT_EQ(changes["renamed"][0]["before"]["name"], "E");
  EXPECT_EQ(changes["renamed"][0]["before"]["self"], 40000);
}

TEST_F(ViewTest, V8_PathsOfTwoRunsLieOverEachOther) {
  profile::Profile now = with_random_paths(1, 2000), before = with_random_paths(2, 2000);
  put(now);
  put_before(renumbered(before));
  auto reader = store::Reader::open(options.file), reader_before = store::Reader::open(options.before);
  auto match = store::match({&*reader}, {&*reader_before});
  ASSERT_TRUE(match);
  Comparison comparison{*match};
  auto model = Model::load(*reader, &comparison);
  auto paths = Paths::load(*reader, &*reader_before, *model);
  ASSERT_TRUE(paths);
  for (bool reversed : {false, true}) {
    Tree all;
    add_paths(all, now, reversed, false);
    add_paths(all, before, reversed, true);
    expect_cut(all, reversed ? paths->inverted({}, 20'000) : paths->cut({}, 20'000), {}, 20'000);
  }
}

TEST_F(ViewTest, V8_KindsThatCannotBeCompared) {
  put_before(fixture::sampled());
  EXPECT_TRUE(ask("summary").get<std::string>().contains("cannot be compared"));
}

TEST_F(ViewTest, V8_CodeApartFromOsTimeAndOtherCommands) {
  profile::Profile before = fixture::tables();
  before.run.command.push_back("-x");
  put_before(before);
  json summary = ask("summary"), compared = summary["compared"];
  EXPECT_EQ(compared["cycles"], summary["cycles"]);
  EXPECT_EQ(compared["os_time"], summary["os_time"]);
  EXPECT_EQ(summary["notes"].size(), 1u);
  EXPECT_TRUE(summary["notes"][0].get<std::string>().contains("the commands differ")) << summary["notes"];
}

// ---- questions that nobody should ask ----

TEST_F(ViewTest, V8_IdsThatLeadNowhereAreTold) {
  put(fixture::rich());
  auto queries = Queries::open(options);
  ASSERT_TRUE(queries);
  std::string long_text(1 << 20, '(');
  for (const char* question : {"function", "source", "asm"}) {
    for (const std::string& id :
         {std::string(), std::string("x"), std::string("-1"), std::string("1x"), std::string(" 1"), std::string("1e3"),
          std::string("0x1"), std::string("99999"), std::string("4294967295"), std::string("4294967297"),
          std::string("18446744073709551615"), std::string("18446744073709551616"), long_text}) {
      json answer = ask(**queries, question, {{"id", id}});
      ASSERT_TRUE(answer.is_string()) << question << " " << id.substr(0, 30);
      EXPECT_LT(answer.get<std::string>().size(), 400u) << question;
    }
    EXPECT_TRUE(ask(**queries, question, {}).is_string());
    EXPECT_TRUE(ask(**queries, question, {{"id", "1"}}).is_object());
  }
  EXPECT_TRUE(ask(**queries, "neighbours", {{"of", "4294967297"}}).is_string());
  EXPECT_TRUE(ask(**queries, "neighbours", {{"of", "1"}}).is_object());
  // (Function 3 never ran.)
  EXPECT_EQ(ask(**queries, "function", {{"id", "3"}}), "error: never() did not run");
  for (const char* path : {"x", ".", "0.", "0..1", ".0", "-1", "0x", "0.1x", "4294967296", "99"})
    EXPECT_TRUE(ask(**queries, "flame", {{"root", path}}).is_string()) << path;
  EXPECT_TRUE(ask(**queries, "flame", {{"root", "0.1"}}).is_object());
  for (const char* thread : {"3", "x", "-1", "4294967296", "18446744073709551615", ""})
    EXPECT_TRUE(ask(**queries, "functions", {{"thread", thread}}).is_string()) << thread;
}

TEST_F(ViewTest, V8_EveryQuestionIsAnsweredOrRefusedWhateverItsWords) {
  put(fixture::rich());
  auto queries = Queries::open(options);
  ASSERT_TRUE(queries);
  const Names questions = {"summary", "functions", "function", "graph",   "neighbours", "flame",    "source",
                           "file",    "asm",       "changes",  "threads", "oscalls",    "coverage", "status"};
  std::string dots, nested(30'000, '(');
  for (int i = 0; i < 100'000; i++) dots += "1.";
  nested += std::string(30'000, ')');
  const Names words = {"",
                       "0",
                       "1",
                       "-1",
                       "4294967296",
                       "99999999999999999999",
                       "1.2.3",
                       dots,
                       "..",
                       "1..2",
                       "\xff\xfe",
                       std::string("a\0b", 3),
                       "%",
                       "../../etc/passwd",
                       "/etc/passwd",
                       "' OR 1=1 --",
                       "[",
                       nested,
                       "(((a{999}){999}){999}){999}",
                       "(a{1,9999}){1,",
                       "{{{{",
                       std::string(1 << 20, 'x')};
  for (const std::string& question : questions)
    for (const char* parameter : {"id", "of", "root", "path", "filter", "sort", "offset", "limit", "locate", "thread"})
      for (const std::string& word : words)
        for (const char* flag : {"", "regex", "inverted"}) {
          Parameters p = {{parameter, word}};
          if (*flag) p[flag] = "1";
          json answer = ask(**queries, question, p);  // (what is no JSON throws)
          EXPECT_TRUE(answer.is_object() || answer.is_string());
          size_t told = answer.is_string() ? answer.get<std::string>().size() : 0;
          EXPECT_LT(told, 1000u) << question << " " << parameter;
        }
  EXPECT_TRUE(ask(**queries, "nonsense", {}).is_string());
  EXPECT_TRUE(ask(**queries, std::string(100'000, 'q'), {}).is_string());
  // And it goes on.
  EXPECT_EQ(ask(**queries, "functions", {})["count"], 9);
}

TEST_F(ViewTest, V3_OnlyFilesThatTheProfileNames) {
  EXPECT_EQ(ask("file", {{"path", "/etc/passwd"}}), "error: the profile does not name /etc/passwd");
  EXPECT_EQ(ask("file", {{"path", "tables.c"}}), "error: the profile does not name tables.c");
  json file = ask("file", {{"path", "/src/tables.c"}});
  EXPECT_EQ(file["state"], "unknown");
  EXPECT_EQ(file["lines"].size(), 17u);
  EXPECT_EQ(file["lines"][1]["text"], "  while (n--) spin();");
  EXPECT_EQ(file["lines"][1]["count"], 160);
}

TEST_F(ViewTest, AProfileThatIsReplacedIsToldAndRead) {
  auto queries = Queries::open(options);
  ASSERT_TRUE(queries);
  EXPECT_EQ(ask(**queries, "status", {})["changed"], false);
  put(fixture::rich());
  EXPECT_EQ(ask(**queries, "status", {})["changed"], true);
  EXPECT_EQ(ask(**queries, "functions", {})["count"], 6);
  EXPECT_TRUE(ask(**queries, "reload", {}).is_object());
  EXPECT_EQ(ask(**queries, "status", {})["changed"], false);
  EXPECT_EQ(ask(**queries, "functions", {})["count"], 9);
}

// ---- the exported file ----

std::string unpacked(const std::string& html) {
  const std::string begin = "<script type=\"text/plain\" id=\"weir-data\">";
  size_t at = html.rfind(begin);
  if (at == std::string::npos) return "";
  std::string_view text = std::string_view(html).substr(at + begin.size());
  text = text.substr(0, text.find('<'));
  std::string packed;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size() && text[i] != '='; i++) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bits = bits << 6 | static_cast<uint32_t>(digits.find(text[i]));
    if (i % 4) packed += static_cast<char>(bits >> (6 - i % 4 * 2) & 255);
  }
  std::string result(64 << 20, '\0');
  z_stream z = {};
  z.next_in = reinterpret_cast<Bytef*>(packed.data());
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(result.data());
  z.avail_out = static_cast<uInt>(result.size());
  inflateInit2(&z, 16 + MAX_WBITS);
  EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
  result.resize(z.total_out);
  inflateEnd(&z);
  return result;
}

json exported(const Options& options, const HtmlLimits& limits = {}) {
  auto html = html_of(options, limits);
  EXPECT_TRUE(html) << html.error().what;
  EXPECT_TRUE(html->ends_with("</body>\n</html>\n")) << html->substr(html->size() - 40);
  return json::parse(unpacked(*html));
}

TEST_F(ViewTest, AnExportedFileAnswersAsTheServerDoes) {
  put(fixture::rich());
  put_before(fixture::tables());
  for (const std::string& before : {std::string(), options.before}) {
    options.before = before;
    json answers = exported(options);
    EXPECT_EQ(answers["summary"]["pruned"], json::array());
    for (const char* question : {"summary", "functions", "graph", "threads", "oscalls", "coverage", "flame"}) {
      json now = ask(question), then = answers[question];
      if (question == std::string("functions")) {  // (the page sorts them)
        auto by_id = [](const json& a, const json& b) { return a["id"] < b["id"]; };
        for (json* list : {&now, &then}) std::sort((*list)["rows"].begin(), (*list)["rows"].end(), by_id);
      }
      EXPECT_EQ(now, then) << question;
    }
    EXPECT_EQ(answers["flame?inverted=1"], ask("flame", {{"inverted", "1"}}));
    EXPECT_EQ(answers.contains("changes"), !before.empty());
    for (const json& f : answers["functions"]["rows"])
      for (const char* question : {"function", "source", "asm"}) {
        std::string id = to_string(f["id"]);
        json now = ask(question, {{"id", id}}), then = answers[question + ("?id=" + id)];
        // A file that is here, and that neither the profile nor the user knows, is not given away.
        for (size_t i = 0; now.contains("sections") && i < now["sections"].size(); i++)
          if (now["sections"][i]["state"] == "unknown" &&
              now["sections"][i]["file"].get<std::string>().starts_with("/usr/"))
            for (auto [part, lines] : {std::pair(&now, true), std::pair(&then, false)}) {
              EXPECT_EQ((*part)["sections"][i]["lines"][0]["text"] != "", lines);
              (*part)["sections"][i] = {};
            }
        EXPECT_EQ(now, then) << f;
      }
    EXPECT_EQ(answers["file?path=%2Fsrc%2Frich.cc"], ask("file", {{"path", "/src/rich.cc"}}));
  }
}

TEST_F(ViewTest, FilesOfOddNamesAreFoundAsABrowserWritesThem) {
  std::ofstream(directory / "odd,name \"q\".c") << "int odd;\n";
  put(fixture::rich());
  EXPECT_TRUE(exported(options).contains("file?path=%2Fsrc%2Fodd%2Cname+%22q%22.c"));
}

TEST_F(ViewTest, WhatAnExportedFileLeavesOutIsTold) {
  put(fixture::large(3000, 6000, 3000));
  HtmlLimits limits;
  limits.functions = 50;
  limits.code_bytes = 20'000;
  limits.frames = 200;
  json answers = exported(options, limits);
  size_t list = answers["functions"]["rows"].size(), code = 0;
  EXPECT_EQ(answers["functions"]["count"], list);
  EXPECT_GE(list, 1000u);
  EXPECT_LE(list, 1050u);
  std::set<std::string> functions;
  for (auto& [question, answer] : answers.items()) {
    if (question.starts_with("function?id=")) functions.insert(question.substr(12));
    if (!question.starts_with("source?id=")) continue;
    code++;
    EXPECT_TRUE(answers.contains("asm" + question.substr(6)));
  }
  EXPECT_EQ(functions.size(), list);
  for (const json& n : answers["graph"]["nodes"])
    EXPECT_TRUE(functions.contains(to_string(n["id"]))) << "a dead end: " << n;
  EXPECT_LE(answers["flame"]["function"].size(), 200u);
  EXPECT_GT(code, 5u);
  EXPECT_LT(code, 100u);
  std::string thousands = std::to_string(list).insert(1, ",");
  EXPECT_EQ(answers["summary"]["pruned"], json({"A big profile: this file holds " + thousands +
                                                    " of 3,000 functions, those with the most time; weir view shows all.",
                                                "Source and disassembly are here of the " + std::to_string(code) +
                                                    " functions with the most self time."}));
}

}  // namespace
}  // namespace weir::view
