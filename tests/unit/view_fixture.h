// Fixtures as files for the page's questions, and trees of call paths that are added up anew, path by path, to compare with.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "fixture/fixture.h"
#include "store/write.h"
#include "view/queries.h"

namespace weir::view {

namespace fs = std::filesystem;
using nlohmann::json;

class ViewTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "weir-view-test.XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    directory = name;
    options.file = directory / "a.weir";
    options.source_map = {{"/src", directory}};
    std::ofstream(directory / "tables.c") << fixture::tables_source;
    std::ofstream(directory / "rich.cc") << fixture::rich_source;
    put(fixture::tables());
  }
  void TearDown() override { fs::remove_all(directory); }

  void put(const profile::Profile& p) { write(p, options.file); }
  void put_before(const profile::Profile& p) { write(p, options.before = directory / "before.weir"); }

  json ask(const std::string& name, const Parameters& parameters = {}) {
    auto queries = Queries::open(options);
    if (!queries) return "error: " + queries.error().what;
    return ask(**queries, name, parameters);
  }
  // The answer, or what was told instead.
  static json ask(Queries& queries, const std::string& name, const Parameters& parameters) {
    auto answer = queries.answer(name, parameters);
    return answer ? json::parse(*answer) : json("error: " + answer.error().what);
  }
  static json by_name(const json& rows, const std::string& name) {
    for (const json& row : rows)
      if (row["name"] == name) return row;
    return {};
  }
  uint32_t id_of(const std::string& name) { return by_name(ask("functions")["rows"], name)["id"]; }

  fs::path directory;
  Options options;

 private:
  static void write(const profile::Profile& p, const std::string& path) {
    auto written = store::write(p, path);
    ASSERT_TRUE(written) << written.error().what;
  }
};

using Path = std::vector<uint32_t>;  // functions, from the top
struct Figures {
  Cycles total = 0, self = 0, before = 0;
  uint64_t calls = 0;
  Cycles size() const { return std::max(total, before); }
  bool operator==(const Figures&) const = default;
};
using Tree = std::map<Path, Figures>;

inline void PrintTo(const Figures& f, std::ostream* out) {
  *out << "total " << f.total << ", self " << f.self << ", before " << f.before << ", calls " << f.calls;
}

// Adds the paths of a profile, in the slow and simple way. `reversed`: from the leaves, where a path's time is its leaf's.
inline void add_paths(Tree& tree, const profile::Profile& p, bool reversed, bool of_before) {
  for (const profile::Thread& t : p.threads)
    for (const profile::Context& c : t.contexts) {
      Path path = {c.function};
      for (uint32_t at = c.parent; at != profile::none; at = t.contexts[at].parent) path.push_back(t.contexts[at].function);
      if (!reversed) std::ranges::reverse(path);
      Cycles time = c.self + c.os_time;
      if (reversed && time == 0) continue;
      Figures& last = tree[path];
      if (!of_before) last.self += time;
      if (!of_before && !reversed) last.calls += c.calls;
      for (Path above = path;; above.pop_back()) {
        (of_before ? tree[above].before : tree[above].total) += time;
        if (above.empty()) break;
      }
    }
}

// What a cut shows, below the node of `root`. No path may be there twice, and a parent comes first.
inline Tree tree_of(const Cut& cut, const Path& root) {
  Tree tree;
  std::vector<Path> path_of;
  for (size_t i = 0; i < cut.nodes.size(); i++) {
    const Cut::Node& n = cut.nodes[i];
    EXPECT_TRUE(i == 0 || n.parent < i);
    Path path = i == 0 || n.parent >= i ? root : path_of[n.parent];
    if (i) path.push_back(n.function);
    EXPECT_TRUE(tree.emplace(path, Figures{n.total, n.self, n.before, n.calls}).second) << "a path is there twice";
    path_of.push_back(std::move(path));
  }
  return tree;
}

// The program of `tables`, with trees of paths in three threads that meet, part and call themselves.
inline profile::Profile with_random_paths(uint32_t seed, uint32_t contexts) {
  profile::Profile p = fixture::tables();
  std::mt19937 random(seed);
  auto below = [&](size_t n) { return static_cast<uint32_t>(random() % n); };
  p.threads.resize(3, p.threads[0]);
  for (uint32_t k = 0; k < 3; k++) {
    p.threads[k].tid = 4711 + k;
    auto& list = p.threads[k].contexts = {};
    for (uint32_t i = 0; i < contexts; i++) {
      uint32_t parent = i == 0 || below(20) == 0 ? profile::none : i < 8 ? i - 1 : i - 1 - below(std::min(i - 1, i / 2));
      uint64_t self = below(3) == 0 ? 0 : 1 + below(size_t{1} << (1 + below(20)));
      list.push_back({parent, 0, below(6), 1 + below(9), self, below(4) ? 0 : below(1000)});
    }
  }
  return p;
}

// The same profile with its functions the other way round: all ids are others, nothing else is.
inline profile::Profile renumbered(profile::Profile p) {
  auto other = [n = static_cast<uint32_t>(p.functions.size())](uint32_t& id) {
    if (id != profile::none) id = n - 1 - id;
  };
  std::ranges::reverse(p.functions);
  for (auto& b : p.blocks) other(b.function);
  for (auto& s : p.sites) other(s.function);
  for (profile::Thread& t : p.threads) {
    for (auto& f : t.functions) other(f.function);
    for (auto& c : t.calls) other(c.callee);
    for (auto& c : t.contexts) other(c.function);
    for (auto& o : t.os_calls) other(o.function);
  }
  return p;
}

}  // namespace weir::view
