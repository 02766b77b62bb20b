// weir run: the engine with no tool, or with icount.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

#include "cli/verbs.h"
#include "engine/engine.h"
#include "tools/icount/icount.h"

namespace weir::cli {

namespace {

struct NoTool : instrument::Tool {
  explicit NoTool(bool archive) : archive(archive) {}
  bool archive;
  std::string archive_name() const override { return archive ? "none" : ""; }
  std::unique_ptr<Tool> copy() const override { return std::make_unique<NoTool>(archive); }
  void plan(const instrument::Subject&, instrument::Counters&, instrument::Plan&) override {}
  void collect(const instrument::ThreadData&) override {}
};

struct Settings {
  std::string tool = "none";
  std::string json;
  bool stats = false, no_follow = false, blocks = false, quiet = false, no_archive = false, keep_addresses = false;
};

using nlohmann::json;

json to_json(icount::Count c) { return {{"instructions", c.instructions}, {"blocks", c.blocks}}; }

// What a program counted, added to the result of the run.
void add_program(json& result, icount::Icount& tool, const engine::ProgramRun& run, bool blocks) {
  icount::Program program = tool.take(run.pid);
  icount::Count total;
  for (size_t i = 0; i < program.images.size(); i++) {
    icount::Count c = program.images[i];
    if (!c.blocks) continue;
    total += c;
    json& image = result["images"][run.images[i]];
    if (!image.is_null()) c += {image["instructions"], image["blocks"]};
    image = to_json(c);
  }
  for (const icount::Thread& t : program.threads) {
    json thread = to_json(t.count);
    thread["pid"] = run.pid;
    thread["tid"] = t.tid;
    result["threads"].push_back(thread);
  }
  json process = to_json(total);
  process["pid"] = run.pid;
  process["program"] = run.program;
  result["processes"].push_back(process);
  result["instructions"] = result["instructions"].get<uint64_t>() + total.instructions;
  result["blocks"] = result["blocks"].get<uint64_t>() + total.blocks;
  for (size_t i = 0; blocks && i < program.block_counts.size(); i++)
    if (const icount::Block& b = tool.blocks()[i]; program.block_counts[i])
      result["block_counts"].push_back({{"address", b.begin.value},
                                        {"end", b.end.value},
                                        {"instructions", b.instructions},
                                        {"count", program.block_counts[i]},
                                        {"pid", run.pid}});
}

void print_stats(const engine::Stats& s) {
  auto us_each = s.functions ? double(s.translate_ns) / 1000 / double(s.functions) : 0;
  say("processes {}, threads {}, signals {}", s.processes, s.threads, s.signals);
  say("translator: {} functions, {:.2f} us each, {} blocks, {} instructions, {} -> {} bytes", s.functions, us_each,
      s.blocks, s.instructions, s.app_bytes, s.code_bytes);
  if (s.from_archive) say("{} functions from the archive of earlier runs", s.from_archive);
  say("time in the translator {:.3f} ms", double(s.translate_ns) / 1e6);
  say("requests {}, look-up misses {}, slow returns {}", s.requests, s.misses, s.slow_returns);
  say("peak sizes: code {} KiB, table {} KiB, counters {} KiB a thread", s.peak_code / 1024, s.peak_table / 1024,
      s.peak_counters / 1024);
  if (s.not_supported) say("{} instructions cannot be translated (reported when they are reached)", s.not_supported);
  if (s.not_followed) say("{} programs not followed", s.not_followed);
  if (s.flushed_units) say("{} functions forgotten, as their memory was changed", s.flushed_units);
}

Result<Settings> parse(const Words& words, bool& done) {
  Settings s;
  CLI::App app{
      "Runs a program from the code cache, unchanged.\n\n"
      "  weir run -- make -j2\n"
      "  weir run --stats -- ls -l\n"
      "  weir run --tool=icount --json counts.json -- sort big.txt\n"};
  app.name("weir run");
  app.add_option("--tool", s.tool, "none: only translate; icount: count executed instructions and blocks")
      ->check(CLI::IsMember({"none", "icount"}))
      ->capture_default_str();
  app.add_option("--json", s.json, "write the counts of icount there")->type_name("FILE");
  app.add_flag("--blocks", s.blocks, "with --json: the count of every basic block, too");
  app.add_flag("--stats", s.stats, "print what the engine did");
  app.add_flag("-q,--quiet", s.quiet, "print no summary");
  app.add_flag("--no-archive", s.no_archive, "neither use nor keep translations of earlier runs");
  app.add_flag("--keep-addresses", s.keep_addresses, "leave images where the kernel puts them (without the archive)");
  app.add_flag("--no-follow", s.no_follow, "let other programs that it executes run natively");
  std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fputs(app.help().c_str(), stdout);
    done = true;
  } catch (const CLI::ParseError& e) {
    return fail("{}; see: weir run --help", e.what());
  }
  if (!s.json.empty() && s.tool != "icount") return fail("--json has nothing to write without --tool=icount");
  if (s.blocks && s.json.empty()) return fail("--blocks needs --json FILE");
  if (!done && words.program.empty()) return fail("no program given; try: weir run -- ls");
  return s;
}

}  // namespace

Result<int> run(const Words& words) {
  bool done = false;
  TRY(Settings s, parse(words, done));
  if (done) return 0;
  if (!s.json.empty() && !std::ofstream(s.json))
    return fail_errno("{}: cannot be written", s.json);  // (told before the run)
  json result = {{"instructions", uint64_t{0}},
                 {"blocks", uint64_t{0}},
                 {"threads", json::array()},
                 {"images", json::object()},
                 {"processes", json::array()}};
  engine::Options options;
  options.command = words.program;
  options.follow = !s.no_follow;
  options.keep_addresses = s.keep_addresses;
  if (s.tool == "icount") {
    options.make_tool = [] { return std::make_unique<icount::Icount>(); };
    options.on_program_end = [&](instrument::Tool& tool, const engine::ProgramRun& run) {
      add_program(result, static_cast<icount::Icount&>(tool), run, s.blocks);
    };
  } else {
    options.make_tool = [&] { return std::make_unique<NoTool>(!s.no_archive); };
  }
  TRY(auto outcome, engine::run(options));
  s.quiet |= outcome.end == engine::Outcome::Behind;
  if (outcome.end == engine::Outcome::LeftRunning && !s.quiet && s.tool != "none")
    say("some processes outlive the program: {}",
        s.json.empty() ? "their counts are those so far" : s.json + " is completed when they end");
  if (s.stats) print_stats(outcome.stats);
  if (s.tool == "icount" && !s.quiet)
    say("{} instructions, {} blocks", result["instructions"].get<uint64_t>(), result["blocks"].get<uint64_t>());
  if (!s.json.empty() && !(std::ofstream(s.json) << result.dump(2) << "\n" << std::flush))
    return fail("{}: cannot be written", s.json);
  return outcome.status;
}

}  // namespace weir::cli
