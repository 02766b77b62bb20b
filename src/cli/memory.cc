#include "cli/memory.h"

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"

namespace weir::cli {

namespace {

double share(uint64_t part, uint64_t whole) { return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

void write(JsonWriter& json, const memory::Count& c) {
  json.member("loads", c.loads).member("stores", c.stores);
  json.member("bytes_read", c.bytes_read).member("bytes_written", c.bytes_written);
}

void write(JsonWriter& json, const memory::Totals& t) {
  write(json, t.all);
  json.member("known_before_run", t.known).member("relative_to_frame", t.relative_to_frame);
  json.member("share_known", share(t.known + t.relative_to_frame, t.all.accesses()));
  json.key("by_kind").begin_object();
  for (int k = 0; k < memory::kinds; k++) {
    json.key(memory::kind_names[k]).begin_object();
    write(json, t.by_kind[k]);
    json.end_object();
  }
  json.end_object().key("by_size").begin_object();
  for (auto& [size, count] : t.by_size) {
    json.key(size == memory::state_size ? "state" : std::to_string(size)).begin_object();
    write(json, count);
    json.end_object();
  }
  json.end_object();
}

}  // namespace

void MemoryCounts::add(memory::Memory& tool, const profile::LiveRun& run) {
  std::vector<memory::Totals> images = tool.take(run.pid);
  for (size_t i = 0; i < images.size(); i++) {
    if (!images[i].all.accesses()) continue;
    total_ += images[i];
    images_[run.images[i]] += images[i];
  }
}

std::string MemoryCounts::json() const {
  JsonWriter json;
  json.begin_object();
  write(json, total_);
  json.key("images").begin_object();
  for (auto& [path, totals] : images_) {
    json.key(path).begin_object();
    write(json, totals);
    json.end_object();
  }
  json.end_object().end_object();
  return std::move(json.text);
}

void MemoryCounts::print() const {
  const memory::Count& all = total_.all;
  say("{} loads of {} bytes, {} stores of {} bytes", with_commas(all.loads), with_commas(all.bytes_read),
      with_commas(all.stores), with_commas(all.bytes_written));
  std::string kinds;
  for (int k = 0; k < memory::kinds; k++)
    kinds += fmt::format("{}{} {:.1f} %", k ? ", " : "", memory::kind_names[k],
                         100 * share(total_.by_kind[k].accesses(), all.accesses()));
  say("{}; known before the run or relative to the frame {:.1f} %", kinds,
      100 * share(total_.known + total_.relative_to_frame, all.accesses()));
}

}  // namespace weir::cli
