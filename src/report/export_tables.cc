// The facts of `weir report`, as files: all functions as CSV; every view that needs no function, as one JSON object.
#include "report/export.h"
#include "report/report.h"

namespace weir::report {
namespace {

Result<> write_view(const store::Reader& reader, const char* view, Format format, const Sink& sink) {
  Options options;
  options.view = view;
  Output output({format, 0, false}, [&](std::string_view text) { return sink(text), true; });
  return show(reader, options, output);
}

}  // namespace

Result<> export_csv(const store::Reader& reader, const Sink& sink) {
  return write_view(reader, "functions", Format::Csv, sink);
}

Result<> export_json(const store::Reader& reader, const Sink& sink) {
  TRY(store::Totals totals, reader.totals());
  TRY(profile::Run run, reader.run());
  const char* before = "{";
  for (const char* view : {"summary", "functions", "callers", "tree", "oscalls", "coverage", "threads"}) {
    if (view == std::string_view("tree") && totals.contexts == 0) continue;
    if (view == std::string_view("oscalls") && run.sampling) continue;
    if (view == std::string_view("coverage") && run.sampling) continue;
    sink(fmt::format("{}\"{}\": ", std::exchange(before, ","), view));
    TRY_VOID(write_view(reader, view, Format::Json, sink));
  }
  sink("}\n");
  return {};
}

}  // namespace weir::report
