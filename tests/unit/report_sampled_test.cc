// S9: views and exports of a sampled profile whose figures are known. Nothing is told that samples do not tell.
#include <set>
#include <sstream>

#include "base/text.h"
#include "report_fixture.h"

namespace weir::report {
namespace {

class SampledTest : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    put(fixture::sampled());
  }
  static bool has_subject(const std::string& name) {
    return std::set<std::string>{"detail", "source", "asm"}.contains(name);
  }
  static bool is_of_exact_ones(const std::string& name) {
    return name == "oscalls" || name == "waits" || name == "coverage";
  }
};

TEST_F(SampledTest, S9_TheFunctionListAsText) {
  EXPECT_EQ(show(view("functions"), {Format::Text, 90, false}),
            "6 functions in 1,000 samples (1 s)\n"
            " self %  samples     self  total %    total  image             function\n"
            "49.00 %      490  0.490 s  49.00 %  0.490 s  spin              fib\n"
            "30.00 %      300  0.300 s  85.00 %  0.850 s  spin              work\n"
            "11.00 %      110  0.110 s  76.00 %  0.760 s  spin              main\n"
            " 8.00 %       80  0.080 s   8.00 %  0.080 s  [code written a…  py::loop:/home/user/loop.py\n"
            " 2.00 %       20  0.020 s  10.00 %  0.100 s                    [unknown code]\n"
            "      ·        0        ·   4.00 %  0.040 s                    [cut off: no unwind rule]\n"
            "\n"
            "data: 1,000 samples; 4.00 % cut off; 1.00 % of frames guessed; 5 more: see summary\n");
}

TEST_F(SampledTest, S9_TheSummaryTellsHowGoodTheDataIs) {
  json j = as_json(view("summary"))["sampling"];
  EXPECT_EQ(j["samples"], 1000);
  EXPECT_EQ(j["frames"], 2500);
  EXPECT_EQ(j["frames_unwound"], 1200);
  EXPECT_EQ(j["frames_heuristic"], 25);
  EXPECT_EQ(j["frames_by_frame_pointer"], 50);
  EXPECT_EQ(j["truncated"], 40);
  EXPECT_EQ(j["lost"], 3);
  EXPECT_EQ(j["late"], 2);
  EXPECT_EQ(j["no_room"], 0);
  EXPECT_EQ(j["verify_differences"], 2);
  EXPECT_EQ(j["distrusted"], 5);
  EXPECT_EQ(j["new_maps"], 4);
  EXPECT_EQ(j["truncated_by"], json({{"no unwind rule", 30}, {"too deep", 10}}));
  EXPECT_EQ(j["verify_differences_by"], json({{"depth", 2}}));
  EXPECT_EQ(j["event"], "cpu");
  EXPECT_EQ(j["source"], "timer");
  EXPECT_EQ(j["rate"], 1000.0);
  EXPECT_EQ(j["period"], nullptr);
  EXPECT_EQ(j["unwind"], "auto");
  EXPECT_EQ(j["confidence"], 50);
  EXPECT_EQ(j["verify"], 1);
  EXPECT_EQ(j["sees_kernel"], 0);
  std::string text = show(view("summary"), {Format::Text, 80, false});
  for (const char* line : {"  samples       1,000 (1 s), 1000 a second of CPU time (timer)\n",
                           "  quality       1,000 samples, 4.00 % cut off, 1.00 % of frames guessed,\n",
                           "3 lost, 2 late, time in the kernel is not seen,\n", "2 differ when verified\n",
                           "    cut off     3.00 %: no unwind rule\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  put(fixture::tables());
  EXPECT_EQ(as_json(view("summary"))["sampling"], nullptr);
  EXPECT_TRUE(as_json(view("summary")).contains("sampling"));
}

TEST_F(SampledTest, S9_SamplesOfEventsHaveNoSeconds) {
  profile::Profile p = fixture::sampled();
  p.run.sampling->event = "page-faults";
  p.run.sampling->rate = 0, p.run.sampling->period = 100;
  p.run.sampling->verify = false, p.run.sampling->verify_differences = 0, p.run.sampling->differences_by.clear();
  p.run.cycles_per_second = 0;
  put(p);
  std::string text = show(view("summary"));
  EXPECT_NE(text.find("1,000, one for 100 page-faults (timer)"), std::string::npos) << text;
  EXPECT_EQ(text.find("verified"), std::string::npos) << text;
  EXPECT_NE(text.find(" self %  samples  total %  total  image"), std::string::npos) << text;
  EXPECT_EQ(as_json(view("functions"))["functions"][0]["self_seconds"], nullptr);
  json s = json::parse(exported(open(), export_speedscope));
  EXPECT_EQ(s["profiles"][0]["unit"], "none");
  EXPECT_EQ(s["profiles"][0]["endValue"], 700);
}

TEST_F(SampledTest, S9_EveryViewInEveryForm) {
  for (const char* name : views) {
    Options options = view(name, has_subject(name) ? "fib" : "");
    if (is_of_exact_ones(name)) {
      for (Format format : {Format::Text, Format::Json, Format::Csv})
        EXPECT_EQ(show(options, {format, 80, false}),
                  fmt::format("error: {}: {}: not in a sampled profile; an exact one has it: weir profile -- ./spin --fast",
                              file(), name));
      continue;
    }
    json j = as_json(options);
    EXPECT_EQ(j["view"], name);
    EXPECT_EQ(j["run"]["clock"], "samples");
    EXPECT_EQ(j["run"]["total"], 1000);
    EXPECT_EQ(j["run"]["instructions"], nullptr);
    // Nobody called anything 0 times.
    std::function<void(const json&)> check = [&](const json& value) {
      for (auto& [key, inner] : value.items()) {
        for (const char* unknown : {"calls", "count", "os_calls", "os_time", "self_min", "self_max", "instructions"})
          if (key == unknown && !inner.is_array()) {
            EXPECT_EQ(inner, nullptr) << name << ": " << key;
          }
        if (inner.is_structured()) check(inner);
      }
    };
    check(j);
    std::string csv = show(options, {Format::Csv, 0, false});
    EXPECT_FALSE(csv.starts_with("error")) << csv;
    for (size_t width : {80, 120, 160}) {
      std::istringstream text(show(options, {Format::Text, width, false}));
      for (std::string line; std::getline(text, line);) {
        EXPECT_LE(display_width(line), width) << name << ": " << line;
        EXPECT_EQ(line.find("cycles"), std::string::npos) << name << ": " << line;
        EXPECT_EQ(line.find("never ran"), std::string::npos) << name << ": " << line;
        bool tells_calls = line.find("calls") != std::string::npos && !line.starts_with("calls (share of this");
        EXPECT_FALSE(tells_calls) << name << ": " << line;
      }
    }
    EXPECT_NE(show(options).find("\ndata: 1,000 samples; 4.00 % cut off; 1.00 % of frames guessed; 3 lost"),
              std::string::npos);
  }
}

TEST_F(SampledTest, S9_CallersAndCallees) {
  json fib = as_json(view("detail", "fib"));
  ASSERT_EQ(fib["callers"].size(), 3u);
  EXPECT_EQ(fib["callers"][0]["name"], "work");
  EXPECT_EQ(fib["callers"][0]["total"], 450);
  EXPECT_EQ(fib["callers"][0]["seconds"], 0.45);
  EXPECT_EQ(fib["callers"][1]["name"], "[cut off: no unwind rule]");
  EXPECT_EQ(fib["callers"][1]["site"], "[cut off: no unwind rule]");
  EXPECT_EQ(fib["callers"][2]["name"], "fib");
  EXPECT_NE(show(view("detail", "fib")).find("fib  (recursion)"), std::string::npos);
  EXPECT_NE(show(view("detail", "[cut off: no unwind rule]")).find("no code: it stands for what was not seen"),
            std::string::npos);
}

TEST_F(SampledTest, S9_SourceAndAssembly) {
  json rows = as_json(view("source", "spin.c"))["rows"];
  ASSERT_GE(rows.size(), 16u);
  EXPECT_EQ(rows[3]["self"], 290);
  EXPECT_EQ(rows[3]["mark"], "|");
  EXPECT_EQ(rows[3]["share"], 0.29);
  EXPECT_EQ(rows[10]["mark"], "");  // it may have run all the same
  EXPECT_EQ(rows[10]["self"], nullptr);
  EXPECT_EQ(rows[10]["total"], 450);  // in what it called
  EXPECT_EQ(rows[9]["total"], 150);
  json work = as_json(view("source", "work"))["rows"];
  EXPECT_TRUE(std::ranges::any_of(work, [](const json& r) { return r["inlined"] == "square" && r["self"] == 250; }))
      << work;
  json code = as_json(view("asm", "fib"))["rows"];
  ASSERT_EQ(code.size(), 2u);
  EXPECT_EQ(code[0]["text"], "cmp edi, 0x1");
  EXPECT_EQ(code[0]["self"], 290);
  EXPECT_NE(show(view("asm", "fib")).find("18 bytes that were not sampled"), std::string::npos);
  EXPECT_NE(show(view("asm", "py::loop")).find("(its bytes are not known)"), std::string::npos);
  EXPECT_NE(show(view("asm", "[cut off: no unwind rule]")).find("no sample was taken in its own code"), std::string::npos);
  EXPECT_NE(show(view("source", "[cut off: no unwind rule]")).find("no lines are known"), std::string::npos);
  // In a thread that it was not sampled in.
  store::Reader reader = open();
  ASSERT_TRUE(reader.select("502", ""));
  std::string text = show_with(reader, view("source", "spin.c"));
  EXPECT_NE(text.find("* not sampled"), std::string::npos) << text;
  EXPECT_EQ(text.find("#  "), std::string::npos) << text;
}

TEST_F(SampledTest, S9_TheTreeOfOneThread) {
  store::Reader reader = open();
  ASSERT_TRUE(reader.select("500", ""));
  json nodes = json::parse(show_with(reader, view("tree"), {Format::Json, 0, false}))["nodes"];
  std::string text;
  for (const json& n : nodes)
    text += fmt::format("{}{} {}/{}\n", std::string(n["depth"].get<size_t>(), ' '), n["name"].get<std::string>(),
                        n["self"].get<int>(), n["total"].get<int>());
  EXPECT_EQ(text,
            "main 10/660\n work 200/650\n  fib 300/450\n   fib 150/150\n[cut off: no unwind rule] 0/40\n fib 40/40\n");
}

TEST_F(SampledTest, S9_OptionsThatSamplesHaveNoAnswerTo) {
  for (const char* column : {"calls", "self_min", "self_max", "os_calls", "os_time"}) {
    Options options = view("functions");
    options.sort = column;
    EXPECT_NE(show(options).find(fmt::format("--sort {}: not in a sampled profile", column)), std::string::npos);
  }
  Options options = view("functions");
  options.cost = [](std::span<const std::byte>) { return 1u; };
  EXPECT_NE(show(options).find("--cpu: not in a sampled profile"), std::string::npos);
}

TEST_F(SampledTest, S9_NothingWasSampled) {
  profile::Profile p;
  p.run.command = {"true"};
  p.run.sampling.emplace().rate = 1000;
  p.processes.push_back({{1, {"true"}, 0, 0, 0, "exit"}});
  for (bool has_thread : {false, true}) {
    if (has_thread) p.threads.emplace_back().process = 0;
    put(p);
    for (const char* name : {"summary", "functions", "callers", "tree", "threads"}) {
      std::string text = show(view(name));
      EXPECT_NE(text.find("data: 0 samples"), std::string::npos) << name << text;
      EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    }
    for (Export how : all_exports) EXPECT_FALSE(exported(open(), how).starts_with("error"));
    EXPECT_EQ(exported(open(), export_folded), "");
    EXPECT_EQ(json::parse(exported(open(), export_speedscope))["profiles"].size(), 0u);
  }
}

// ---- exports ----

TEST_F(SampledTest, S9_FoldedStacks) {
  EXPECT_EQ(
      exported(open(), export_folded),
      "main 110\nmain;work 200\n[cut off: no unwind rule];fib 40\nmain;work;fib 300\nmain;work;fib;fib 150\nwork 100\n"
      "work;[unknown code] 20\nwork;[unknown code];py::loop:/home/user/loop.py 80\n");
}

TEST_F(SampledTest, S9_CallgrindHasTheEventSamples) {
  std::string text = exported(open(), export_callgrind);
  EXPECT_NE(text.find("\nevents: Samples\nsummary: 1000\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("calls=0"), std::string::npos) << text;
  std::istringstream lines(text);
  uint64_t sum = 0;
  bool inclusive = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0x") && !inclusive) sum += std::stoull(line.substr(line.rfind(' ')));
    inclusive = line.starts_with("calls=");
  }
  EXPECT_EQ(sum, 1000u);
}

TEST_F(SampledTest, S9_SpeedscopeHasAProfileAThread) {
  json j = json::parse(exported(open(), export_speedscope));
  EXPECT_EQ(j["$schema"], "https://www.speedscope.app/file-format-schema.json");
  EXPECT_EQ(j["activeProfileIndex"], 0);
  ASSERT_EQ(j["profiles"].size(), 3u);
  json first = j["profiles"][0];
  EXPECT_EQ(first["type"], "sampled");
  EXPECT_EQ(first["unit"], "seconds");
  EXPECT_EQ(first["name"], "spin (process 500, thread 500)");
  EXPECT_EQ(first["endValue"], 0.7);
  std::string stacks;
  for (size_t i = 0; i < first["samples"].size(); i++) {
    for (const json& frame : first["samples"][i])
      stacks += j["shared"]["frames"][frame.get<size_t>()]["name"].get<std::string>() + ";";
    stacks += fmt::format(" {:.2f}\n", first["weights"][i].get<double>());
  }
  EXPECT_EQ(
      stacks,
      "main; 0.01\nmain;work; 0.20\nmain;work;fib; 0.30\nmain;work;fib;fib; 0.15\n[cut off: no unwind rule];fib; 0.04\n");
  put(fixture::rich());
  j = json::parse(exported(open(), export_speedscope));
  uint64_t sum = 0;
  for (const json& p : j["profiles"]) {
    EXPECT_EQ(p["unit"], "none");
    uint64_t own = 0;
    for (const json& w : p["weights"]) own += w.get<uint64_t>();
    EXPECT_EQ(p["endValue"], own);
    EXPECT_EQ(p["samples"].size(), p["weights"].size());
    sum += own;
  }
  EXPECT_EQ(sum, 17047u);
}

TEST_F(SampledTest, AHostileStoreIsToldOrShownNeverCrashedOn) {
  const char* attacks[] = {
      "DELETE FROM sampling",
      "UPDATE sampling SET rate = 1e308, period = -1, samples = 0, frames = 0, truncated = 9223372036854775807",
      "UPDATE sampling SET rate = 1e-308, event = NULL, unwind = x'ff1b', confidence = -1",
      "UPDATE sampling SET rate = 'x', event = char(10, 27), source = char(7)",
      "UPDATE sampling_reason SET reason = reason || char(27), samples = -1, kind = 'x' || reason",
      "UPDATE thread SET cycles = 9223372036854775807",
      "UPDATE context SET self = 9223372036854775807",
      "INSERT INTO sampling SELECT * FROM sampling",
      "UPDATE function_count SET calls = 7, os_time = 5",
      "UPDATE weir SET kind = 'exact profile'",
  };
  for (const char* attack : attacks) {
    put(fixture::sampled());
    sql(attack);
    for (const char* name : views)
      for (Format format : {Format::Text, Format::Json, Format::Csv}) {
        std::string text = show(view(name, has_subject(name) ? "fib" : ""), {format, 80, false});
        EXPECT_FALSE(text.empty()) << attack;
        EXPECT_EQ(format == Format::Text ? text.find('\x1b') : std::string::npos, std::string::npos) << attack << text;
        if (format == Format::Json && !text.starts_with("error")) {
          EXPECT_TRUE(json::accept(text)) << attack << ": " << name;
        }
      }
    for (Export how : all_exports) exported(open(), how);
    std::string speedscope = exported(open(), export_speedscope);
    EXPECT_TRUE(speedscope.starts_with("error") || json::accept(speedscope)) << attack;
  }
}

}  // namespace
}  // namespace weir::report
