#include "driver.h"

#include <fstream>

#include "process/keeper.h"
#include "process/spawn.h"

namespace weir::tests {

namespace {
// --tool=none: the engine alone, with the tests' runtime.
struct NoTool : instrument::Tool {
  std::unique_ptr<Tool> copy() const override { return std::make_unique<NoTool>(); }
  bool has_probes() const override { return false; }
  void plan(const instrument::Subject&, instrument::Counters&, instrument::Plan&) override {}
  void collect(const instrument::ThreadData&) override {}
};
}  // namespace

int run_with(const TestTool& tool, int argc, char** argv) {
  if (argc > 1 && argv[1] == std::string_view(process::Keeper::verb)) return process::Keeper::keep(argc, argv);
  engine::Options options;
  std::string json;
  bool has_tool = true;
  int i = 2;
  for (; i < argc && argv[i][0] == '-'; i++) {
    std::string_view word = argv[i];
    if (word == "--") {
      i++;
      break;
    }
    if (word == "-q" || word.starts_with("--tool=")) has_tool &= word != "--tool=none";
    else if (word == "--keep-addresses") options.keep_addresses = true;
    else if (word == "--no-follow") options.follow = false;
    else if (word == "--json" && i + 1 < argc) json = argv[++i];
    else if (word == "--pid" && i + 1 < argc) options.pids.push_back(atoi(argv[++i]));
    else if (word == "--seconds" && i + 1 < argc) options.seconds = atof(argv[++i]);
    else return say("{}: unknown", word), 125;
  }
  options.command.assign(argv + i, argv + argc);
  options.make_tool = [] { return std::make_unique<NoTool>(); };
  if (has_tool) options.make_tool = tool.make, options.runtime_part = tool.runtime_part;
  options.on_program_end = [](auto&, auto&) {};
  options.write = [&](const engine::Outcome&) -> Result<> {
    if (!json.empty()) std::ofstream(json) << tool.json();
    return {};
  };
  auto status = engine::run(options);
  if (status && *status >= process::by_signal) process::end_as(*status);
  if (status) return *status;
  say("{}", status.error().what);
  bool is_there = status.error().kind != ErrorKind::NotFound;
  return !is_there ? 127 : status.error().kind == ErrorKind::CannotRun ? 126 : 125;
}

}  // namespace weir::tests
