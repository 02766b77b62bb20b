// The questions about the whole run: what it was, its threads, its OS calls, what of it ran.
#include <algorithm>

#include "base/text.h"
#include "profile/units.h"
#include "store/compare.h"
#include "view/queries.h"

namespace weir::view {
namespace {

void put_sampling(JsonWriter& json, const profile::Sampling& s) {
  json.key("sampling").begin_object().member("event", s.event).member("source", s.source).member("rate", s.rate);
  json.member("period", s.period).member("unwind", s.unwind).member("samples", s.samples).member("lost", s.lost);
  json.member("truncated", s.truncated).member("frames", s.frames).member("frames_heuristic", s.frames_heuristic);
  json.member("late", s.late).member("no_room", s.no_room).member("verify", s.verify);
  json.member("verify_differences", s.verify_differences).member("sees_kernel", s.sees_kernel).end_object();
}

// What could not be seen, one line each.
std::vector<std::string> notes_of(const profile::Run& run, const std::vector<store::ProcessRow>& processes) {
  std::vector<std::string> notes;
  if (!run.complete) notes.push_back("the run was cut short; counts are those so far");
  if (const auto& s = run.sampling) {
    auto note = [&](uint64_t n, const char* what) {
      if (n) notes.push_back(fmt::format("{} of {} samples {}", with_commas(n), with_commas(s->samples), what));
    };
    note(s->truncated, "have no beginning: their walk was cut off");
    note(s->lost, "were due and not taken");
    note(s->no_room, "found no place for their call path");
    if (s->frames_heuristic) notes.push_back(fmt::format("{} frames were guessed", with_commas(s->frames_heuristic)));
    if (!s->sees_kernel) notes.push_back("time in the kernel is in no sample");
  }
  for (const store::ProcessRow& p : processes)
    for (const std::string& text : p.notes) notes.push_back(fmt::format("process {}: {}", p.pid, text));
  return notes;
}

std::string ended(const std::vector<store::ProcessRow>& processes) {
  const store::ProcessRow* first = nullptr;
  for (const store::ProcessRow& p : processes)
    if (p.pid && (!first || p.started < first->started)) first = &p;
  const store::ProcessRow* last = first;  // of the programs that it executed one after the other
  for (const store::ProcessRow& p : processes)
    if (first && p.pid == first->pid && p.started >= last->started) last = &p;
  return last ? ending(last->exit_status, last->ended_by) : "unknown";
}

}  // namespace

Result<> Queries::summary(const Parameters&, JsonWriter& json) {
  TRY(std::string kind, reader_->kind());
  TRY(profile::Run run, reader_->run());
  TRY(store::Totals t, reader_->totals());
  TRY(std::vector<store::ProcessRow> processes, reader_->processes());
  json.member("kind", kind).member("unit", profile::unit_of(run)).member("calls_known", !run.sampling);
  json.member("paths_known", t.contexts > 0).member("blocks_known", t.blocks > 0 && !run.sampling);
  json.member("file", options_.file).strings("command", run.command).member("directory", run.directory);
  json.member("cpu", run.cpu).member("host_cpu", run.host_cpu).member("clock", run.clock);
  json.member("weir_version", run.weir_version).member("wall_seconds", static_cast<double>(run.ended - run.started) / 1e6);
  json.member("units_per_second", profile::units_per_second(run))
      .member("os_units_per_second", profile::os_units_per_second(run));
  if (run.user_time && run.system_time)
    json.member("processor_seconds", static_cast<double>(*run.user_time + *run.system_time) / 1e6);
  else json.key("processor_seconds").null();
  json.member("ended", ended(processes)).member("complete", run.complete);
  json.member("total", t.all()).member("cycles", t.cycles).member("os_time", t.os_time).member("waited", t.waited);
  json.member("with_waits", with_waits_).member("instructions", t.instructions).member("functions_known", t.functions);
  json.member("functions_run", t.functions_run)
      .member("threads", t.threads)
      .member("processes", t.processes)
      .member("programs", t.programs);
  json.member("contexts", t.contexts).member("os_calls", t.os_calls);
  if (run.sampling) put_sampling(json, *run.sampling);
  std::vector<std::string> notes = notes_of(run, processes);
  TRY(std::string bad_rows, reader_->bad_rows());
  if (!bad_rows.empty()) notes.push_back(bad_rows);
  if (!compared()) {
    json.strings("notes", notes).strings("pruned", pruned_).key("compared").null();
    return {};
  }
  TRY(profile::Run then, before_->run());
  TRY(store::Totals before, before_->totals());
  if (run.command != then.command)
    notes.push_back(fmt::format("the commands differ: before it was {}", shortened(quoted_command(then.command), 200)));
  if (scale_ != 1)
    notes.push_back(fmt::format("the samples of the run before are multiplied by {:.4g}: their rate was another", scale_));
  if (run.clock == "cycles" && run.cpu != then.cpu)
    notes.push_back(fmt::format("the run before has cycles of another CPU: {}, not {}", then.cpu, run.cpu));
  if (t.contexts > 0 && before.contexts == 0)
    notes.push_back("the run before has no call paths: flame graphs are not compared (weir profile --paths=full has them)");
  json.strings("notes", notes).strings("pruned", pruned_);
  json.key("compared").begin_object().member("file", options_.before).strings("command", then.command);
  json.member("total", store::scaled(before.all(), scale_)).member("cycles", store::scaled(before.cycles, scale_));
  json.member("os_time", store::scaled(before.os_time, scale_));
  json.member("paths_known", before.contexts > 0).member("scale", scale_);
  json.key("threads").begin_array();
  for (auto& [thread, same] : same_threads_) json.value(uint64_t{thread});
  json.end_array().end_object();
  return {};
}

Result<> Queries::threads(const Parameters&, JsonWriter& json) {
  TRY(std::vector<store::ThreadRow> rows, reader_->all_threads());
  TRY(std::vector<store::ProcessRow> processes, reader_->processes());
  std::ranges::stable_sort(rows, std::ranges::greater(), [](auto& t) { return t.cycles + t.os_time; });
  json.key("threads").begin_array();
  for (const store::ThreadRow& t : rows) {
    auto process = std::ranges::find(processes, t.process, &store::ProcessRow::id);
    bool there = process != processes.end();
    json.begin_object().member("id", uint64_t{t.id}).member("pid", uint64_t{t.pid}).member("tid", uint64_t{t.tid});
    json.member("name", t.name).member("cycles", t.cycles).member("os_time", t.os_time);
    json.member("waited", t.waited).member("instructions", t.instructions).member("functions", t.functions);
    json.member("ended", there ? ending(process->exit_status, process->ended_by) : "");
    json.member("command", there ? quoted_command(process->command) : "");
    json.member("started", static_cast<uint64_t>(there ? process->started : 0));
    json.member("finished", static_cast<uint64_t>(there ? process->ended : 0)).end_object();
  }
  json.end_array();
  return {};
}

Result<> Queries::os_calls(const Parameters&, JsonWriter& json) {
  std::map<uint32_t, std::vector<store::OsRow>> makers;
  TRY_VOID(reader_->os_calls(true, store::none, [&](const store::OsRow& o) { makers[o.number].push_back(o); }));
  json.key("oscalls").begin_array();
  TRY_VOID(reader_->os_calls(false, store::none, [&](const store::OsRow& o) {
    json.begin_object().member("name", o.name).member("number", uint64_t{o.number}).member("class", o.os_class);
    json.member("calls", o.calls).member("errors", o.errors);
    json.member("waited", o.waited).member("time", o.time).key("by").begin_array();
    for (const store::OsRow& by : makers[o.number])
      json.begin_object()
          .member("id", uint64_t{by.function})
          .member("name", by.function_name)
          .member("calls", by.calls)
          .member("time", by.time)
          .member("waited", by.waited)
          .end_object();
    json.end_array().end_object();
  }));
  json.end_array();
  return {};
}

Result<> Queries::coverage(const Parameters&, JsonWriter& json) {
  if (is_sampled_) return fail("samples do not tell what ran: an exact profile does (weir profile)");
  json.key("coverage").begin_array();
  TRY_VOID(reader_->coverage("", [&](const store::CoverageRow& r) {
    json.begin_object().member("image", r.image).key("file");
    r.file.empty() ? json.null() : json.value(r.file);
    json.member("functions", r.functions).member("functions_run", r.functions_run).member("blocks", r.blocks);
    json.member("blocks_run", r.blocks_run).member("lines", r.lines).member("lines_run", r.lines_run).end_object();
  }));
  json.end_array();
  return {};
}

}  // namespace weir::view
