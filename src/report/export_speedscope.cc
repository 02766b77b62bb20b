// speedscope's own format (www.speedscope.app/file-format-schema.json): for each thread a "sampled" profile, in which every call path
// is one sample, the outermost function first, with its own time as its weight. There is no order in time: paths stand as in the
// tree, so that functions lie side by side.
#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "report/export.h"

namespace weir::report {
namespace {

class SpeedscopeWriter {
 public:
  SpeedscopeWriter(const store::Reader& reader, const Sink& sink, const profile::Run& run, std::vector<Path> paths)
      : reader_(reader), sink_(sink), run_(run), paths_(std::move(paths)), order_(depth_first(paths_)), stacks_(paths_) {}

  Result<> write() {
    TRY(std::vector<store::ThreadRow> threads, reader_.threads());
    std::erase_if(threads, [](const store::ThreadRow& t) { return t.cycles + t.os_time == 0; });
    auto largest = std::ranges::max_element(threads, {}, [](const store::ThreadRow& t) { return t.cycles + t.os_time; });
    json_.begin_object();
    json_.member("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.member("exporter", "weir " + run_.weir_version);
    json_.member("name", quoted_command(run_.command));
    if (!threads.empty()) json_.member("activeProfileIndex", static_cast<uint64_t>(largest - threads.begin()));
    TRY_VOID(frames());
    json_.key("profiles").begin_array();
    for (const store::ThreadRow& t : threads) thread(t);
    json_.end_array().end_object();
    flush(0);
    return {};
  }

 private:
  Result<> frames() {
    json_.key("shared").begin_object().key("frames").begin_array();
    TRY_VOID(reader_.functions({}, [&](const store::FunctionRow& f) {
      frame_of_.emplace(f.id, frame_of_.size());
      json_.begin_object().member("name", f.name);
      // (The page tells functions of one name apart by their file, and shows it.)
      if (!f.file.empty() || !f.image.empty()) json_.member("file", f.file.empty() ? f.image : f.file);
      if (f.line) json_.member("line", uint64_t{f.line});
      json_.end_object();
      flush();
    }));
    // Of paths whose function is not in the file.
    json_.begin_object().member("name", "?").end_object();
    for (uint32_t n = 1; n <= stacks_.most_left_out(); n++, flush())
      json_.begin_object().member("name", Stacks::gap_name(n)).end_object();
    json_.end_array().end_object();
    return {};
  }

  void thread(const store::ThreadRow& t) {
    std::vector<uint32_t>& order = order_[t.id];
    std::erase_if(order, [&](uint32_t path) { return time_of(path) == 0; });
    json_.begin_object();
    json_.member("type", "sampled");
    json_.member("name", fmt::format("{} (process {}, thread {})", t.name, t.pid, t.tid));
    json_.member("unit", is_time() ? "seconds" : "none");
    store::Cycles sum = 0;
    for (uint32_t path : order) sum += time_of(path);
    json_.member("startValue", uint64_t{0});
    put("endValue", sum);
    json_.key("samples").begin_array();
    for (uint32_t path : order) {
      json_.begin_array();
      for (uint32_t at : std::views::reverse(stacks_.of(path)))
        json_.value(at == store::none ? gap_frame(stacks_.left_out(path)) : frame(paths_[at].function));
      json_.end_array();
      flush();
    }
    json_.end_array().key("weights").begin_array();
    for (uint32_t path : order) weight(time_of(path)), flush();
    json_.end_array().end_object();
  }

  bool is_time() const { return run_.sampling && run_.sampling->rate > 0; }
  store::Cycles time_of(uint32_t path) const { return paths_[path].self + paths_[path].os_time; }
  uint64_t frame(uint32_t function) const {
    auto found = frame_of_.find(function);
    return found == frame_of_.end() ? frame_of_.size() : found->second;
  }
  uint64_t gap_frame(uint32_t left_out) const { return frame_of_.size() + left_out; }  // (behind the one of no function)
  void weight(store::Cycles c) {
    if (is_time()) json_.value(static_cast<double>(c) / run_.sampling->rate);
    else json_.value(uint64_t{c});
  }
  void put(std::string_view key, store::Cycles c) {
    json_.key(key);
    weight(c);
  }
  void flush(size_t least = 65536) {
    if (json_.text.size() >= least) sink_(std::exchange(json_.text, {}));
  }

  const store::Reader& reader_;
  const Sink& sink_;
  const profile::Run& run_;
  std::vector<Path> paths_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> order_;  // by thread
  Stacks stacks_;
  std::unordered_map<uint32_t, uint64_t> frame_of_;
  JsonWriter json_;
};

}  // namespace

Result<> export_speedscope(const store::Reader& reader, const Sink& sink) {
  TRY(std::vector<Path> paths, merged_paths(reader, {.threads = true}));
  TRY(profile::Run run, reader.run());
  return SpeedscopeWriter(reader, sink, run, std::move(paths)).write();
}

}  // namespace weir::report
