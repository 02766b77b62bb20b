// The Firefox Profiler's own format, "processed profile", of version 44 (which later ones read): tables of columns, thread by thread. A
// call path is a sample, its weight the time that was spent at its end.
#include <map>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"
#include "report/export.h"

namespace weir::report {
namespace {

constexpr uint64_t version = 44;

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
  uint32_t frame(const store::FunctionRow& f, uint32_t line) {
    auto [it, added] = frames_.try_emplace({f.id, line}, static_cast<uint32_t>(frame_list_.size()));
    if (added) frame_list_.push_back({function(f), line});
    return it->second;
  }
  void sample(uint32_t stack, double weight) {
    samples_.push_back({stack, time_, weight});
    time_ += weight;
  }
  bool empty() const { return samples_.empty(); }

  void write(JsonWriter& json, const char* weight_type) const {
    auto column = [&](const char* name, const auto& rows, auto put) {
      json.key(name).begin_array();
      for (const auto& row : rows) put(row);
      json.end_array();
    };
    auto nulls = [&](const char* name, const auto& rows) { column(name, rows, [&](auto&) { json.null(); }); };
    auto number = [&](uint64_t n) { json.value(n); };

    json.key("frameTable").begin_object().member("length", frame_list_.size());
    column("address", frame_list_, [&](auto&) { json.text += json.text.back() == '[' ? "-1" : ",-1"; });
    column("inlineDepth", frame_list_, [&](auto&) { number(0); });
    column("category", frame_list_, [&](auto&) { number(0); });
    column("subcategory", frame_list_, [&](auto&) { number(0); });
    column("func", frame_list_, [&](auto& f) { number(f.function); });
    for (const char* name : {"nativeSymbol", "innerWindowID", "implementation"}) nulls(name, frame_list_);
    column("line", frame_list_, [&](auto& f) { f.line ? json.value(uint64_t{f.line}) : json.null(); });
    nulls("column", frame_list_);
    nulls("optimizations", frame_list_);
    json.end_object();

    json.key("funcTable").begin_object().member("length", functions_.size());
    column("name", functions_, [&](auto& f) { number(f.name); });
    column("isJS", functions_, [&](auto&) { json.value(false); });
    column("relevantForJS", functions_, [&](auto&) { json.value(false); });
    column("resource", functions_, [&](auto& f) { number(f.resource); });
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
    column("category", stacks_, [&](auto&) { number(0); });
    column("subcategory", stacks_, [&](auto&) { number(0); });
    json.end_object();

    json.key("samples").begin_object().member("length", samples_.size()).member("weightType", weight_type);
    column("stack", samples_, [&](auto& s) { number(s.stack); });
    column("time", samples_, [&](auto& s) { json.value(s.time); });
    column("weight", samples_, [&](auto& s) { json.value(s.weight); });
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
  struct Frame {
    uint32_t function, line;
  };
  struct Function {
    uint32_t name, resource;
    std::optional<uint32_t> file;
    uint32_t line;
  };
  struct Stack {
    std::optional<uint32_t> prefix;
    uint32_t frame;
  };
  struct Sample {
    uint32_t stack;
    double time, weight;
  };
  uint32_t function(const store::FunctionRow& f) {
    auto [it, added] = known_.try_emplace(f.id, static_cast<uint32_t>(functions_.size()));
    if (!added) return it->second;
    uint32_t image = string(std::string(base_name(f.image)));
    auto [resource, new_one] = resource_of_.try_emplace(image, static_cast<uint32_t>(resources_.size()));
    if (new_one) resources_.push_back(image);
    std::optional<uint32_t> file = f.file.empty() ? std::nullopt : std::optional(string(f.file));
    functions_.push_back({string(f.name), resource->second, file, f.line});
    return it->second;
  }

  std::unordered_map<std::string, uint32_t> strings_;
  std::vector<std::string> string_list_;
  std::unordered_map<uint32_t, uint32_t> known_, resource_of_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> frames_;
  std::vector<Frame> frame_list_;
  std::vector<Function> functions_;
  std::vector<uint32_t> resources_;
  std::vector<Stack> stacks_;
  std::vector<Sample> samples_;
  double time_ = 0;
};

// By pid: the thread that stands for the process. The one that began it, or the first that has any time.
std::map<uint32_t, uint32_t> main_threads(const std::vector<store::ThreadRow>& threads,
                                          const std::map<uint32_t, ThreadTables>& tables) {
  std::map<uint32_t, uint32_t> main;
  for (const store::ThreadRow& t : threads) {
    if (!tables.contains(t.id)) continue;
    if (t.pid == t.tid) main[t.pid] = t.id;
    else main.try_emplace(t.pid, t.id);
  }
  return main;
}

void write_meta(JsonWriter& json, const profile::Run& run) {
  json.key("meta").begin_object().member("preprocessedProfileVersion", version).member("version", uint64_t{24});
  json.member("product", quoted_command(run.command)).member("startTime", static_cast<double>(run.started) / 1000);
  double interval = run.sampling && run.sampling->rate > 0 ? 1000 / run.sampling->rate : 1;  // milliseconds a sample
  json.member("interval", interval)
      .member("processType", uint64_t{0})
      .member("stackwalk", uint64_t{1})
      .member("debug", false);
  json.member("symbolicated", true).member("usesOnlyOneStackType", true).member("doesNotUseFrameImplementation", true);
  json.member("sourceCodeIsNotOnSearchfox", true).member("importedFrom", "weir " + run.weir_version);
  json.member("oscpu", run.host_cpu).key("categories").begin_array();
  json.begin_object().member("name", "Code").member("color", "blue").strings("subcategories", {"Other"}).end_object();
  json.end_array().key("markerSchema").begin_array().end_array();
  json.end_object();
}

}  // namespace

Result<> export_firefox(const store::Reader& reader, const Sink& sink) {
  TRY_VOID(merged_paths(reader, {}));  // (says what is missing where there are no paths)
  TRY(profile::Run run, reader.run());
  TRY(std::vector<store::ThreadRow> threads, reader.threads());
  std::unordered_map<uint32_t, store::FunctionRow> functions;
  TRY_VOID(reader.functions({}, [&](const store::FunctionRow& f) { functions[f.id] = f; }));
  std::unordered_map<uint32_t, uint32_t> line_of;  // by site
  TRY_VOID(reader.sites([&](const store::CallRow& s) { line_of[s.site] = s.line; }));

  // Times are milliseconds where the clock has a rate.
  double rate = run.sampling                  ? run.sampling->rate
                : run.clock == "instructions" ? 0
                                              : static_cast<double>(run.cycles_per_second);
  double per_weight = rate > 0 ? 1000 / rate : 1;
  std::map<uint32_t, ThreadTables> tables;
  std::unordered_map<uint32_t, uint32_t> stack_of;  // by context
  TRY_VOID(reader.contexts([&](const store::ContextRow& c) {
    auto f = functions.find(c.function);
    if (f == functions.end()) return;
    ThreadTables& t = tables[c.thread];
    auto parent = c.parent < c.id ? stack_of.find(c.parent) : stack_of.end();
    std::optional<uint32_t> prefix = parent == stack_of.end() ? std::nullopt : std::optional(parent->second);
    uint32_t stack = t.stack(prefix, t.frame(f->second, f->second.line));
    stack_of[c.id] = stack;
    if (c.self + c.os_time) t.sample(stack, static_cast<double>(c.self + c.os_time) * per_weight);
  }));

  JsonWriter json = JsonWriter::compact();
  json.begin_object();
  write_meta(json, run);
  for (const char* none : {"libs", "pages", "counters", "profilerOverhead"}) json.key(none).begin_array().end_array();
  json.key("threads").begin_array();
  std::map<uint32_t, uint32_t> main = main_threads(threads, tables);
  for (const store::ThreadRow& t : threads) {
    auto table = tables.find(t.id);
    if (table == tables.end()) continue;
    json.begin_object().member("name", printable(t.name)).member("isMainThread", main[t.pid] == t.id);
    json.member("processType", "default").member("processName", printable(t.name)).member("processStartupTime", 0.0);
    json.key("processShutdownTime").null().member("registerTime", 0.0).key("unregisterTime").null();
    json.key("pausedRanges").begin_array().end_array();
    json.member("pid", std::to_string(t.pid)).member("tid", uint64_t{t.tid});
    table->second.write(json, rate > 0 ? "tracing-ms" : "samples");
    json.end_object();
    sink(json.text);
    json.text.clear();
  }
  json.end_array().end_object();
  sink(json.text);
  return {};
}

}  // namespace weir::report
