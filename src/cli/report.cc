// weir report: a profile in a terminal, or as JSON or CSV.

#include "report/report.h"

#include "cli/options.h"
#include "cli/terminal.h"
#include "cost/model.h"
#include "report/check.h"

namespace weir::cli {

namespace {

struct Settings {
  std::string file;
  report::Options options;
  std::optional<bool> with_waits;
  std::string thread, process, format = "text", os_calls, colour = "auto", cpu;
  std::vector<std::string> source_map;
  bool check = false, fold_inlined = false, no_pager = false, help = false;
};

Result<Settings> parse(const Words& words) {
  Settings s;
  CLI::App app{
      "Shows a profile.\n\n"
      "  weir report a.weir                         what ran, and the ten functions with the most self time\n"
      "  weir report a.weir functions --limit 0     all functions; --sort total, --filter '^std::'\n"
      "  weir report a.weir detail parse            one function: its callers and callees\n"
      "  weir report a.weir source parse            its source: | ran, + several blocks, # never ran\n"
      "  weir report a.weir functions --format json | jq '.functions[0]'\n"
      "  weir report --check a.weir                 do its figures agree with each other?\n"};
  app.name("weir report");
  app.add_option("FILE", s.file, "a profile, exact or sampled")->required();
  app.add_option("VIEW", s.options.view, fmt::format("{}", fmt::join(report::views, ", ")))->capture_default_str();
  app.add_option("FUNCTION", s.options.subject,
                 "of detail, callers, source, asm, oscalls: a name, a part of one, image+0xOFFSET, or image:NAME; source "
                 "takes a file, too");
  app.add_option("--thread", s.thread, "only this thread (tid, index, or name)")->type_name("T");
  app.add_option("--process", s.process, "only this process (pid, index, or the name of its program)")->type_name("P");
  app.add_option("--filter", s.options.filter, "only names that match, as grep -E")->type_name("RE");
  app.add_option("--sort", s.options.sort, "by this column (a JSON field)")->type_name("COLUMN");
  app.add_option("--limit", s.options.limit, "at most so many rows; 0: all")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 53))  // (a negative number would be a large one)
      ->type_name("N");
  app.add_option("--format", s.format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  app.add_option("--os-calls", s.os_calls,
                 "self: OS time is the calling function's; separate: functions of their own, [read]")
      ->check(CLI::IsMember({"self", "separate"}));
  add_waits_option(app, s.with_waits);
  app.add_option("--cpu", s.cpu, "functions, summary: self times by the model of another CPU, from the same counts");
  app.add_option("--source-map", s.source_map, "OLD=NEW: source paths that begin with OLD are found at NEW")
      ->type_name("OLD=NEW");
  app.add_flag("--sites", s.options.sites, "tell call sites apart (detail, callers, tree)");
  app.add_flag("--blocks", s.options.blocks, "source: the count of each block of a line");
  app.add_flag("--merge-clones", s.options.merge_clones,
               "functions: work, work.constprop.0 and work.part.0 are one row, as their author wrote one function");
  app.add_flag("--parts", s.options.parts,
               "functions: what the compiler has put apart of a function (work.cold) is a row of its own; with inlined "
               "functions folded");
  app.add_option("--color", s.colour, "auto, always or never")->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag(
      "--check", s.check,
      "instead of a view: does all hold that must in a profile (sums, calls, no time below zero)? Exit status 1: no");
  app.add_flag("--fold-inlined", s.fold_inlined, "inlined functions are part of those that they were inlined into");
  app.add_flag("--no-pager", s.no_pager, "write to the terminal directly");
  TRY(bool go_on, parse_options(app, words));
  s.help = !go_on;
  if (s.help) return s;
  if (s.check && (app.count("--thread") || app.count("--process") || app.count("VIEW") || s.with_waits || s.fold_inlined))
    return fail(
        "--check is of the whole file, with inlined functions and without: it takes no view, no thread, and no waits");
  TRY(s.options.source_map, store::parse_source_map(s.source_map));
  return s;
}

}  // namespace

Result<int> report(const Words& words) {
  TRY(Settings s, parse(words));
  if (s.help) return 0;
  TRY(store::Reader reader, store::Reader::open(s.file));
  if (!s.thread.empty() || !s.process.empty()) TRY_VOID(reader.select(s.thread, s.process));
  // (What the parts of a block cost on another CPU is not known.)
  if (s.fold_inlined || s.options.parts || !s.cpu.empty()) TRY_VOID(reader.fold_inlined(true));
  TRY(s.options.os, os_time(reader, s.os_calls));
  if (!s.check) {
    TRY(s.options.with_waits, reader.add_waits(s.with_waits));
  }
  std::optional<cost::Model> model;
  if (!s.cpu.empty()) {
    TRY(model, cost::Model::create(s.cpu));
    s.options.cpu = model->cpu();
    s.options.cost = [&](std::span<const std::byte> block) { return model->cost(block).cycles; };
  }
  auto format = s.format == "json" ? report::Format::Json : s.format == "csv" ? report::Format::Csv : report::Format::Text;
  Screen screen(format == report::Format::Text && !s.no_pager);
  report::Output output(style_of_stdout(format, s.colour), [&](std::string_view text) { return screen.write(text); });
  if (s.check) {
    TRY(bool holds, report::check(reader, output));
    return holds ? 0 : 1;
  }
  TRY_VOID(report::show(reader, s.options, output));
  return 0;
}

}  // namespace weir::cli
