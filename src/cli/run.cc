// weir run: the engine with no tool, or with one that counts.

#include <fstream>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "base/write_file.h"
#include "cli/memory.h"
#include "cli/run_calls.h"
#include "cli/run_options.h"
#include "tools/icount/icount.h"

namespace weir::cli {

namespace {

struct NoTool : instrument::Tool {
  explicit NoTool(bool archive) : archive(archive) {}
  bool archive;
  bool has_probes() const override { return false; }
  std::string archive_name() const override { return archive ? "none" : ""; }
  std::unique_ptr<Tool> copy() const override { return std::make_unique<NoTool>(archive); }
  void plan(const instrument::Subject&, instrument::Counters&, instrument::Plan&) override {}
  void collect(const instrument::ThreadData&) override {}
};

struct Settings {
  std::string tool = "none";
  std::string json;
  RunOptions run;
  std::vector<std::string> functions, answers;  // of calls
  bool stats = false, blocks = false, trace = false, no_archive = false, keep_addresses = false;
};

// What icount has counted in all programs of the run.
struct Counts {
  struct Owned {  // by a thread or a process
    uint32_t pid, tid;
    std::string program;
    icount::Count count;
  };
  struct BlockCount {
    uint32_t pid;
    icount::Block block;
    uint64_t count;
  };
  icount::Count total;
  std::map<std::string, icount::Count> images;
  std::vector<Owned> threads, processes;
  std::vector<BlockCount> blocks;
};

// The first thousand; the others are one, without a number.
void add_apart(std::vector<Counts::Owned>& all, Counts::Owned next) {
  constexpr size_t kept = 1000;
  if (all.size() < kept) return all.push_back(std::move(next));
  if (all.size() == kept) all.push_back({0, 0, "[others]", {}});
  all.back().count += next.count;
}

void add_program(Counts& counts, icount::Icount& tool, const profile::LiveRun& run, bool blocks) {
  icount::Program program = tool.take(run.pid);
  icount::Count total;
  for (size_t i = 0; i < program.images.size(); i++) {
    if (!program.images[i].blocks) continue;
    total += program.images[i];
    counts.images[run.images[i]] += program.images[i];
  }
  for (const icount::Thread& t : program.threads) add_apart(counts.threads, {run.pid, t.tid, "", t.count});
  add_apart(counts.processes, {run.pid, 0, run.program, total});
  counts.total += total;
  for (size_t i = 0; blocks && i < program.block_counts.size(); i++)
    if (program.block_counts[i]) counts.blocks.push_back({run.pid, tool.blocks()[i], program.block_counts[i]});
}

std::string to_json(const Counts& counts, bool blocks) {
  JsonWriter json;
  auto add = [&](icount::Count c) { json.member("instructions", c.instructions).member("blocks", c.blocks); };
  json.begin_object();
  add(counts.total);
  json.key("threads").begin_array();
  for (const Counts::Owned& t : counts.threads) {
    json.begin_object().member("pid", uint64_t{t.pid}).member("tid", uint64_t{t.tid});
    add(t.count);
    json.end_object();
  }
  json.end_array().key("images").begin_object();
  for (auto& [path, count] : counts.images) {
    json.key(path).begin_object();
    add(count);
    json.end_object();
  }
  json.end_object().key("processes").begin_array();
  for (const Counts::Owned& p : counts.processes) {
    json.begin_object().member("pid", uint64_t{p.pid}).member("program", p.program);
    add(p.count);
    json.end_object();
  }
  json.end_array();
  if (blocks) {
    json.key("block_counts").begin_array();
    for (const Counts::BlockCount& b : counts.blocks)
      json.begin_object()
          .member("pid", uint64_t{b.pid})
          .member("address", b.block.begin.value)
          .member("end", b.block.end.value)
          .member("instructions", uint64_t{b.block.instructions})
          .member("count", b.count)
          .end_object();
    json.end_array();
  }
  json.end_object();
  return std::move(json.text);
}

Result<Settings> parse(Words& words, bool& done) {
  Settings s;
  CLI::App app{
      "Runs a program from the code cache, unchanged.\n\n"
      "  weir run -- make -j2\n"
      "  weir run --stats -- ls -l\n"
      "  weir run --tool=icount --json counts.json -- sort big.txt\n"
      "  weir run --tool=memory --json accesses.json -- sort big.txt\n"
      "  weir run --tool=icount --pid 1234 --seconds 10\n"
      "  weir run --tool=calls --function malloc --function 'libc.so.6:str*' -- perl script.pl\n"
      "  weir run --tool=calls --return malloc=0@100 -- ./program\n"};
  app.name("weir run");
  app.add_option("--tool", s.tool,
                 "none: only translate; icount: count executed instructions and blocks; memory: loads and stores; "
                 "calls: count calls of functions")
      ->check(CLI::IsMember({"none", "icount", "memory", "calls"}))
      ->capture_default_str();
  app.add_option("--json", s.json, "write what the tool has counted there")->type_name("FILE");
  app.add_flag("--blocks", s.blocks, "of icount, with --json: the count of every basic block, too");
  app.add_option("--function", s.functions,
                 "with calls: see the calls of this function, wherever they come from; * and ? stand for any characters")
      ->type_name("[IMAGE:]SYMBOL[@VERSION]");
  app.add_option("--return", s.answers,
                 "with calls: return VALUE in its place, at every call, or at call N of each thread")
      ->type_name("[IMAGE:]SYMBOL[@VERSION]=VALUE[@N]");
  app.add_flag("--trace", s.trace, "with --json and calls: arguments and results of each call, too");
  app.add_flag("--stats", s.stats, "print what the engine did");
  app.add_flag("--no-archive", s.no_archive, "neither use nor keep translations of earlier runs");
  app.add_flag("--keep-addresses", s.keep_addresses, "leave images where the kernel puts them (without the archive)");
  add_cache_option(app, s.run);
  add_run_options(app, s.run);
  take_program(app, words);
  TRY(bool go_on, parse_options(app, words));
  done = !go_on;
  if (done) return s;
  if (!s.json.empty() && s.tool == "none") return fail("--json has nothing to write without --tool=icount, memory or calls");
  if (s.blocks && s.json.empty()) return fail("--blocks needs --json FILE");
  if (s.blocks && s.tool != "icount") return fail("--blocks needs --tool=icount");
  if (s.trace && (s.json.empty() || s.tool != "calls")) return fail("--trace needs --tool=calls and --json FILE");
  if (s.tool != "calls" && !(s.functions.empty() && s.answers.empty()))
    return fail("--function and --return need --tool=calls");
  TRY(s.json, file_name("--json", s.json));
  TRY_VOID(check_run_options(s.run, words, "run"));
  return s;
}

void print_words(const Settings& s, const Counts& counts, const MemoryCounts& accesses, const SeenCalls& calls,
                 const engine::Outcome& outcome) {
  bool quiet = s.run.quiet || outcome.end == engine::Outcome::Behind;
  if (outcome.end == engine::Outcome::LeftRunning && !quiet && s.tool != "none")
    say("some processes outlive the program: {}",
        s.json.empty() ? "their counts are those so far" : s.json + " is completed when they end");
  if (s.stats || s.run.verbose) say_stats(outcome.stats);
  if (s.tool == "icount" && !quiet)
    say("{} instructions, {} blocks", with_commas(counts.total.instructions), with_commas(counts.total.blocks));
  if (s.tool == "memory" && !quiet) accesses.print();
  if (s.tool == "calls" && !quiet) calls.print();
}

}  // namespace

Result<int> run(Words words) {
  bool done = false;
  TRY(Settings s, parse(words, done));
  if (done) return 0;
  bool is_new = !s.json.empty() && access(s.json.c_str(), F_OK) != 0;
  if (!s.json.empty() && !std::ofstream(s.json, std::ios::app)) return cannot_write(s.json);  // (told before the run)
  Counts counts;
  MemoryCounts accesses;
  SeenCalls calls;
  if (s.tool == "calls") TRY_VOID(calls.ask(s.functions, s.answers, s.trace));
  engine::Options options = engine_options(s.run, words);
  options.keep_addresses = s.keep_addresses;
  if (s.tool == "icount") {
    options.make_tool = [] { return std::make_unique<icount::Icount>(); };
    options.on_program_end = [&](instrument::Tool& tool, const profile::LiveRun& run) {
      add_program(counts, static_cast<icount::Icount&>(tool), run, s.blocks);
      if (s.run.verbose) say_ended(run);
    };
  } else if (s.tool == "memory") {
    options.make_tool = [] { return std::make_unique<memory::Memory>(); };
    options.runtime_part = memory::Memory::runtime_part;
    options.on_program_end = [&](instrument::Tool& tool, const profile::LiveRun& run) {
      accesses.add(static_cast<memory::Memory&>(tool), run);
      if (s.run.verbose) say_ended(run);
    };
  } else if (s.tool == "calls") {
    calls.set_tool(options);
    options.on_program_end = [&](instrument::Tool& tool, const profile::LiveRun& run) {
      calls.add(static_cast<named_calls::Calls&>(tool), run);
      if (s.run.verbose) say_ended(run);
    };
  } else {
    options.make_tool = [&] { return std::make_unique<NoTool>(!s.no_archive && !s.run.cache_mb); };
    if (s.run.verbose) options.on_program_end = [](instrument::Tool&, const profile::LiveRun& run) { say_ended(run); };
  }
  options.write = [&](const engine::Outcome& outcome) -> Result<> {
    if (s.json.empty()) return {};
    return write_file(s.json, outcome.weir, [&](const Sink& sink) {
      return sink(s.tool == "memory"  ? accesses.json()
                  : s.tool == "calls" ? calls.to_json()
                                      : to_json(counts, s.blocks)),
             Result<>();
    });
  };
  options.tell = [&](const engine::Outcome& outcome) -> Result<> {
    if (outcome.cut_short) say_cut_short(outcome, s.json);
    else print_words(s, counts, accesses, calls, outcome);
    return {};
  };
  Result<int> status = engine::run(options);
  if (!status && is_new) unlink(s.json.c_str());
  return status;
}

}  // namespace weir::cli
