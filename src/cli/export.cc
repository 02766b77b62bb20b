// weir export: a profile for other tools.

#include "report/export.h"

#include "cli/options.h"

namespace weir::cli {

Result<int> export_profile(const Words& words) {
  std::string file, format, out;
  std::optional<uint32_t> thread, process;
  CLI::App app{
      "Turns a profile into a file for another tool.\n\n"
      "  weir export a.weir --format callgrind -o callgrind.out.a      callgrind_annotate, KCachegrind\n"
      "  weir export a.weir --format pprof -o a.pb.gz                  go tool pprof, speedscope, Perfetto\n"
      "  weir export a.weir --format folded -o - | flamegraph.pl       flame graphs\n"
      "  weir export a.weir --format speedscope -o a.speedscope.json   speedscope, thread by thread\n"};
  app.name("weir export");
  app.add_option("FILE", file, "a profile, exact or sampled")->required();
  app.add_option("--format", format, "callgrind, folded, pprof or speedscope")
      ->required()
      ->check(
          CLI::IsMember(std::vector<std::string>(std::begin(report::export_formats), std::end(report::export_formats))));
  app.add_option("-o,--output", out, "where to; -: standard output")->required()->type_name("OUT");
  app.add_option("--thread", thread, "only this thread (tid, or index)")->type_name("T");
  app.add_option("--process", process, "only this process (pid, or index)")->type_name("P");
  TRY(bool go_on, parse_options(app, words));
  if (!go_on) return 0;
  TRY(store::Reader reader, store::Reader::open(file));
  if (thread || process) TRY_VOID(reader.select(thread, process));
  TRY_VOID(report::write_export(reader, format, out));
  return 0;
}

}  // namespace weir::cli
