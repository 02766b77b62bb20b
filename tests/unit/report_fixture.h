// Fixtures as files, and what reports and exports make of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture/fixture.h"
#include "report/export.h"
#include "report/report.h"
#include "store/write.h"

namespace weir::report {

namespace fs = std::filesystem;
using nlohmann::json;

class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "weir-report-test.XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    directory = name;
    put(fixture::tables());
    std::ofstream(directory / "tables.c") << fixture::tables_source;
    std::ofstream(directory / "rich.cc") << fixture::rich_source;
    std::ofstream(directory / "spin.c") << fixture::sampled_source;
  }
  void TearDown() override { fs::remove_all(directory); }

  void put(const profile::Profile& p) { ASSERT_TRUE(store::write(p, file())); }
  std::string file() const { return directory / "a.weir"; }
  store::Reader open() { return *store::Reader::open(file()); }

  Options view(const std::string& name, const std::string& subject = "") {
    Options o;
    o.view = name;
    o.subject = subject;
    o.source_map = {{"/src", directory}};
    return o;
  }
  std::string show(const Options& options, Style style = {}) {
    store::Reader reader = open();
    return show_with(reader, options, style);
  }
  std::string show_with(store::Reader& reader, const Options& options, Style style = {}) {
    std::string text;
    Output out(style, [&](std::string_view s) {
      text += s;
      return true;
    });
    auto shown = report::show(reader, options, out);
    if (!shown) return "error: " + shown.error().what;
    return text;
  }
  json as_json(const Options& options) { return json::parse(show(options, {Format::Json, 0, false})); }
  static json by_name(const json& rows, const std::string& name) {
    for (const json& row : rows)
      if (row["name"] == name) return row;
    return {};
  }
  void sql(const std::string& statements) {
    auto db = store::Database::open_to_write(file());
    ASSERT_TRUE(db);
    auto done = db->execute(statements.c_str());
    ASSERT_TRUE(done) << done.error().what;
  }

  fs::path directory;
};

using Export = Result<> (*)(const store::Reader&, const Sink&);
constexpr Export all_exports[] = {export_callgrind, export_folded, export_pprof, export_speedscope};

inline std::string exported(const store::Reader& reader, Export how) {
  std::string text;
  auto done = how(reader, [&](std::string_view s) { text += s; });
  return done ? text : "error: " + done.error().what;
}

}  // namespace weir::report
