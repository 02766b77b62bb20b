// The Firefox Profiler's own format, "processed profile", of version 48 (which later ones read): tables of columns, thread by thread. A
// call path is a sample, its weight the time that was spent at its end. Samples follow each other by their weights, and one without a
// path ends the thread: a sample's CPU time is told by the next.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "profile/units.h"
#include "report/export.h"

namespace weir::report {
namespace {

constexpr uint64_t version = 48;

// Whose code it is gives frames their colour. The profiler takes the grey one where it cannot tell.
struct Category {
  const char *name, *color;
};
constexpr Category categories[] = {
    {"Program", "blue"}, {"Library", "green"}, {"Written at run time", "yellow"}, {"Other", "grey"}};

uint32_t category_of(std::string_view image) {
  if (image.starts_with("[code")) return 2;
  if (image.empty() || image.starts_with('[')) return 3;
  return base_name(image).find(".so") == std::string_view::npos ? 0 : 1;
}

// The tables of one thread.
class ThreadTables {
 public:
  uint32_t string(const std::string& text) {
    auto [it, added] = strings_.try_emplace(printable(text), static_cast<uint32_t>(strings_.size()));
    if (added) string_list_.push_back(it->first);
    return it->second;
  }
  // The stack of a path: its parent's, and a frame more.
  uint32_t stack(std::optional<uint32_t> prefix, uint32_t frame) {
    stacks_.push_back({prefix, frame});
    return static_cast<uint32_t>(stacks_.size() - 1);
  }
  // The frame of a function: there is one, as paths do not tell lines.
  uint32_t frame(const store::FunctionRow& f) {
    auto [it, added] = known_.try_emplace(f.id, static_cast<uint32_t>(functions_.size()));
    if (!added) return it->second;
    std::optional<uint32_t> resource, file;
    if (!f.image.empty()) {
      uint32_t image = string(std::string(base_name(f.image)));
      auto [place, new_one] = resource_of_.try_emplace(image, static_cast<uint32_t>(resources_.size()));
      if (new_one) resources_.push_back(image);
      resource = place->second;
    }
    if (!f.file.empty()) file = string(f.file);
    functions_.push_back({string(f.name), resource, file, f.line, category_of(f.image)});
    return it->second;
  }
  void sample(uint32_t stack, double weight) {
    samples_.push_back({stack, time_, weight});
    time_ += weight;
  }
  bool empty() const { return samples_.empty(); }

  struct Weights {
    const char* type;
    bool are_cpu_time;  // in milliseconds
  };
  void write(JsonWriter& json, const Weights& weights) const {
    auto column = [&](const char* name, const auto& rows, auto put) {
      json.key(name).begin_array();
      for (const auto& row : rows) put(row);
      json.end_array();
    };
    auto nulls = [&](const char* name, const auto& rows) { column(name, rows, [&](auto&) { json.null(); }); };
    auto number = [&](uint64_t n) { json.value(n); };

    json.key("frameTable").begin_object().member("length", functions_.size());
    column("address", functions_, [&](auto&) { json.value(int64_t{-1}); });
    column("inlineDepth", functions_, [&](auto&) { number(0); });
    column("category", functions_, [&](auto& f) { number(f.category); });
    column("subcategory", functions_, [&](auto&) { number(0); });
    column("func", functions_, [&, i = uint64_t{0}](auto&) mutable { number(i++); });
    for (const char* name : {"nativeSymbol", "innerWindowID", "implementation"}) nulls(name, functions_);
    column("line", functions_, [&](auto& f) { f.line ? json.value(uint64_t{f.line}) : json.null(); });
    nulls("column", functions_);
    json.end_object();

    json.key("funcTable").begin_object().member("length", functions_.size());
    column("name", functions_, [&](auto& f) { number(f.name); });
    column("isJS", functions_, [&](auto&) { json.value(false); });
    column("relevantForJS", functions_, [&](auto&) { json.value(false); });
    column("resource", functions_, [&](auto& f) { json.value(f.resource ? int64_t{*f.resource} : -1); });
    column("fileName", functions_, [&](auto& f) { f.file ? json.value(uint64_t{*f.file}) : json.null(); });
    column("lineNumber", functions_, [&](auto& f) { f.line ? json.value(uint64_t{f.line}) : json.null(); });
    nulls("columnNumber", functions_);
    json.end_object();

    json.key("resourceTable").begin_object().member("length", resources_.size());
    nulls("lib", resources_);
    column("name", resources_, [&](uint32_t name) { number(name); });
    nulls("host", resources_);
    column("type", resources_, [&](uint32_t) { number(1); });  // a library
    json.end_object();

    json.key("stackTable").begin_object().member("length", stacks_.size());
    column("prefix", stacks_, [&](auto& s) { s.prefix ? json.value(uint64_t{*s.prefix}) : json.null(); });
    column("frame", stacks_, [&](auto& s) { number(s.frame); });
    column("category", stacks_, [&](auto& s) { number(functions_[s.frame].category); });
    column("subcategory", stacks_, [&](auto&) { number(0); });
    json.end_object();

    std::vector<Sample> samples = samples_;
    samples.push_back({std::nullopt, time_, 0});
    json.key("samples").begin_object().member("length", samples.size()).member("weightType", weights.type);
    column("stack", samples, [&](auto& s) { s.stack ? json.value(uint64_t{*s.stack}) : json.null(); });
    column("time", samples, [&](auto& s) { json.value(s.time); });
    column("weight", samples, [&](auto& s) { json.value(s.weight); });
    double before = 0;
    auto since_the_last = [&](auto& s) {
      number(static_cast<uint64_t>(std::llround(std::exchange(before, s.weight) * 1e6)));
    };
    if (weights.are_cpu_time) column("threadCPUDelta", samples, since_the_last);
    json.end_object();

    json.strings("stringArray", string_list_);
    json.key("nativeSymbols").begin_object().member("length", uint64_t{0});
    for (const char* name : {"address", "functionSize", "libIndex", "name"}) json.key(name).begin_array().end_array();
    json.end_object();
    json.key("markers").begin_object().member("length", uint64_t{0});
    for (const char* name : {"category", "data", "endTime", "name", "phase", "startTime"})
      json.key(name).begin_array().end_array();
    json.end_object();
  }

 private:
  struct Function {
    uint32_t name;
    std::optional<uint32_t> resource, file;
    uint32_t line, category;
  };
  struct Stack {
    std::optional<uint32_t> prefix;
    uint32_t frame;
  };
  struct Sample {
    std::optional<uint32_t> stack;
    double time, weight;
  };

  std::unordered_map<std::string, uint32_t> strings_;
  std::vector<std::string> string_list_;
  std::unordered_map<uint32_t, uint32_t> known_, resource_of_;
  std::vector<Function> functions_;
  std::vector<uint32_t> resources_;
  std::vector<Stack> stacks_;
  std::vector<Sample> samples_;
  double time_ = 0;
};

void write_meta(JsonWriter& json, const profile::Run& run, double interval) {
  json.key("meta").begin_object().member("preprocessedProfileVersion", version).member("version", uint64_t{24});
  json.member("product", quoted_command(run.command)).member("startTime", static_cast<double>(run.started) / 1000);
  json.member("interval", interval)
      .member("processType", uint64_t{0})
      .member("stackwalk", uint64_t{1})
      .member("debug", false);
  json.member("symbolicated", true).member("usesOnlyOneStackType", true).member("doesNotUseFrameImplementation", true);
  json.member("sourceCodeIsNotOnSearchfox", true).member("importedFrom", "weir " + run.weir_version);
  json.member("oscpu", "Linux x86_64").member("CPUName", run.host_cpu);
  json.key("sampleUnits").begin_object().member("time", "ms").member("eventDelay", "ms").member("threadCPUDelta", "ns");
  json.end_object().key("categories").begin_array();
  for (const Category& c : categories)
    json.begin_object().member("name", c.name).member("color", c.color).strings("subcategories", {"Other"}).end_object();
  json.end_array().key("markerSchema").begin_array().end_array();
  json.end_object();
}

}  // namespace

Result<> export_firefox(const store::Reader& reader, const Sink& sink) {
  TRY(std::vector<Path> paths, merged_paths(reader, {.threads = true}));
  TRY(profile::Run run, reader.run());
  TRY(std::vector<store::ThreadRow> threads, reader.threads());
  TRY(std::vector<store::ProcessRow> processes, reader.processes());
  std::unordered_map<uint32_t, store::FunctionRow> functions;
  TRY_VOID(reader.functions({}, [&](const store::FunctionRow& f) { functions[f.id] = f; }));
  store::FunctionRow unknown;  // of paths whose function is not in the file
  unknown.name = "?";
  auto function_of = [&](const Path& path) -> const store::FunctionRow& {
    auto known = functions.find(path.function);
    return known == functions.end() ? unknown : known->second;
  };

  // Times are milliseconds where the clock has a rate.
  double rate = profile::units_per_second(run);
  double per_weight = rate > 0 ? 1000 / rate : 1;
  bool is_wall = run.sampling ? run.sampling->event == "wall" : run.clock == "wall";
  ThreadTables::Weights weights = {rate > 0 ? "tracing-ms" : "samples", rate > 0 && !is_wall};
  JsonWriter json = JsonWriter::compact();
  json.begin_object();
  write_meta(json, run, run.sampling && rate > 0 ? per_weight : 0.001);
  for (const char* none : {"libs", "pages", "counters", "profilerOverhead"}) json.key(none).begin_array().end_array();
  json.key("threads").begin_array();
  auto order = depth_first(paths);
  std::map<uint32_t, uint32_t> main_threads;  // by pid: the one that began the process, or the first that has any time
  for (const store::ThreadRow& t : threads)
    if (!order[t.id].empty() && (t.pid == t.tid || !main_threads.contains(t.pid))) main_threads[t.pid] = t.id;
  std::vector<uint32_t> stack_of(paths.size());
  for (const store::ThreadRow& t : threads) {
    ThreadTables tables;
    for (uint32_t i : order[t.id]) {
      const Path& path = paths[i];
      std::optional<uint32_t> prefix = path.parent == store::none ? std::nullopt : std::optional(stack_of[path.parent]);
      stack_of[i] = tables.stack(prefix, tables.frame(function_of(path)));
      if (store::Cycles time = path.self + path.os_time) tables.sample(stack_of[i], static_cast<double>(time) * per_weight);
    }
    if (tables.empty()) continue;
    auto process = std::ranges::find(processes, t.process, &store::ProcessRow::id);
    bool named = process != processes.end() && !process->command.empty();
    std::string process_name(named ? base_name(process->command[0]) : t.name);
    json.begin_object().member("name", printable(t.name)).member("isMainThread", main_threads[t.pid] == t.id);
    json.member("processType", "default").member("processName", printable(process_name)).member("processStartupTime", 0.0);
    json.key("processShutdownTime").null().member("registerTime", 0.0).key("unregisterTime").null();
    json.key("pausedRanges").begin_array().end_array();
    json.member("pid", std::to_string(t.pid)).member("tid", uint64_t{t.tid});
    tables.write(json, weights);
    json.end_object();
    sink(json.text);
    json.text.clear();
  }
  json.end_array().end_object();
  sink(json.text);
  return {};
}

}  // namespace weir::report
