// pprof: a gzipped protobuf (profile.proto). A sample is a call path with its own cycles, OS time and calls; its first location
// is the function itself, the others are the call sites that led there. Of a sampled profile there is a sample for each instruction
// of a path that was sampled, inlined code with the function that it came from, and the values are samples and the time or the events
// that they stand for.
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "base/zip.h"
#include "profile/units.h"
#include "report/export.h"
#include "report/profile.pb.h"

namespace weir::report {
namespace {

namespace pb = perftools::profiles;

// Offsets of different images overlap; here each image has 256 GiB to itself.
uint64_t base_of(uint64_t image) { return (image + 1) << 38; }

// Nanoseconds, or events, that a sample stands for.
double period_of(const profile::Sampling& s) {
  return s.rate > 0 ? std::min(1e9 / s.rate, 1e18) : std::min(static_cast<double>(s.period), 1e18);
}

class PprofBuilder {
 public:
  // `has_inlined`: paths lead through inlined functions.
  explicit PprofBuilder(bool has_inlined) : has_inlined_(has_inlined) { string(""); }

  pb::Profile profile;

  int64_t string(const std::string& s) {
    auto [it, added] = strings_.try_emplace(s, static_cast<int64_t>(strings_.size()));
    if (added) profile.add_string_table(s);
    return it->second;
  }

  void value_type(pb::ValueType* type, const char* name, const char* unit) {
    type->set_type(string(name));
    type->set_unit(string(unit));
  }

  void mapping(uint32_t id, const profile::Image& image) {
    pb::Mapping* m = profile.add_mapping();
    m->set_id(id + 1);
    m->set_memory_start(base_of(id));
    m->set_memory_limit(base_of(id + 1));
    m->set_filename(string(text(image.path)));
    m->set_build_id(string(text(image.build_id)));
    m->set_has_functions(true);
    m->set_has_filenames(true);
    m->set_has_line_numbers(true);
    m->set_has_inline_frames(true);
    images_[image.path] = id;
  }

  void function(const store::FunctionRow& f) {
    pb::Function* function = profile.add_function();
    function->set_id(f.id + 1);
    function->set_name(string(text(f.name)));
    function->set_system_name(string(text(f.linkage_name.empty() ? f.name : f.linkage_name)));
    function->set_filename(string(text(f.file)));
    function->set_start_line(f.line);
    places_[f.id] = {images_.contains(f.image) ? images_[f.image] : store::none, f.offset, f.line, f.file};
  }
  // In the place of so many frames.
  uint64_t gap(uint32_t left_out) {
    uint64_t id = beyond_ids + left_out;
    if (!gaps_.insert(left_out).second) return id;
    pb::Location* location = profile.add_location();
    location->set_id(id);
    location->add_line()->set_function_id(invented(Stacks::gap_name(left_out), ""));
    return id;
  }
  void site(const store::CallRow& s) { sites_[s.site] = {store::none, s.offset, s.line, s.file}; }

  // The function where it begins, or where it makes a call.
  uint64_t location(uint32_t function, uint32_t site) {
    auto [it, added] = locations_.try_emplace({function, site, false}, locations_.size() + 1);
    if (!added) return it->second;
    Place place = places_.contains(function) ? places_[function] : Place{};
    if (auto at = sites_.find(site); site != store::none && at != sites_.end()) {
      place.offset = at->second.offset;
      if (at->second.line) place.line = at->second.line;
    }
    return add_location(it->second, function, place), it->second;
  }

  // Where it was sampled.
  uint64_t location(uint32_t function, const store::LeafRow& leaf) {
    auto [it, added] = locations_.try_emplace({function, leaf.block, true}, locations_.size() + 1);
    if (!added) return it->second;
    Place place = places_.contains(function) ? places_[function] : Place{};
    place.offset = leaf.offset;
    bool is_own = leaf.inlined.empty() || has_inlined_;
    place.line = is_own && leaf.file == place.file ? leaf.line : 0;
    add_location(it->second, function, place, is_own ? nullptr : &leaf);
    return it->second;
  }

 private:
  bool has_inlined_;
  struct Place {
    uint32_t image = store::none;
    uint64_t offset = 0;
    uint32_t line = 0;
    std::string file = {};
  };
  static constexpr uint64_t beyond_ids = (uint64_t{1} << 32) + 1;         // those of the store have 32 bits
  static std::string text(const std::string& s) { return printable(s); }  // a string must be UTF-8

  void add_location(uint64_t id, uint32_t function, const Place& place, const store::LeafRow* leaf = nullptr) {
    pb::Location* location = profile.add_location();
    location->set_id(id);
    if (place.image != store::none) {
      location->set_mapping_id(place.image + 1);
      location->set_address(base_of(place.image) + place.offset);
    }
    if (!places_.contains(function)) return;  // (a file that names no function here)
    if (leaf && !leaf->inlined.empty()) {     // the innermost first
      pb::Line* line = location->add_line();
      line->set_function_id(invented(leaf->inlined, leaf->file));
      line->set_line(leaf->line);
    }
    pb::Line* line = location->add_line();
    line->set_function_id(function + 1);
    line->set_line(place.line);
  }

  // A function that the store has not: its number is none of the others'.
  uint64_t invented(const std::string& name, const std::string& file) {
    auto [it, added] = invented_.try_emplace({name, file}, beyond_ids + invented_.size());
    if (!added) return it->second;
    pb::Function* function = profile.add_function();
    function->set_id(it->second);
    function->set_name(string(text(name)));
    function->set_system_name(string(text(name)));
    function->set_filename(string(text(file)));
    return it->second;
  }

  std::unordered_map<std::string, int64_t> strings_;
  std::unordered_set<uint32_t> gaps_;
  std::unordered_map<std::string, uint32_t> images_;
  std::unordered_map<uint32_t, Place> places_;
  std::unordered_map<uint32_t, Place> sites_;
  std::map<std::tuple<uint32_t, uint32_t, bool>, uint64_t> locations_;  // by function and site, or block
  std::map<std::pair<std::string, std::string>, uint64_t> invented_;    // by name and file
};

// What the values of a path are.
void describe_values(PprofBuilder& b, const profile::Run& run, bool adds_waits) {
  const std::optional<profile::Sampling>& sampling = run.sampling;
  if (!sampling) {
    const char* unit = profile::unit_of(run);
    b.value_type(b.profile.add_sample_type(), unit, "count");
    b.value_type(b.profile.add_sample_type(), adds_waits ? "os_time_and_waited" : "os_time", "cycles");
    b.value_type(b.profile.add_sample_type(), "calls", "count");
    b.value_type(b.profile.add_sample_type(), "waited", "nanoseconds");
    b.profile.set_default_sample_type(b.string(unit));
    return;
  }
  std::string event = printable(sampling->event);
  const char* unit = sampling->rate > 0 ? "nanoseconds" : "count";
  b.value_type(b.profile.add_sample_type(), "samples", "count");
  b.value_type(b.profile.add_sample_type(), event.c_str(), unit);
  b.value_type(b.profile.mutable_period_type(), event.c_str(), unit);
  b.profile.set_period(std::llround(period_of(*sampling)));
  b.profile.set_default_sample_type(b.string(event));
}

using Locations = std::vector<uint64_t>;

// The locations of a path, but for the innermost one, which may be several.
class Callers {
 public:
  Callers(PprofBuilder& b, const std::vector<Path>& paths) : b_(b), paths_(paths), stacks_(paths), calls_(paths.size()) {}

  // Of every path, in their order.
  Locations of(uint32_t path) {
    if (uint32_t parent = paths_[path].parent; parent != store::none)
      calls_[path] = b_.location(paths_[parent].function, paths_[path].site);
    std::vector<uint32_t> stack = stacks_.of(path);
    Locations locations;
    for (size_t i = 1; i < stack.size(); i++) {
      bool is_gap = stack[i] == store::none, is_outside_gap = stack[i - 1] == store::none;
      locations.push_back(is_gap           ? b_.gap(stacks_.left_out(path))
                          : is_outside_gap ? b_.location(paths_[stack[i]].function, store::none)
                                           : calls_[stack[i - 1]]);
    }
    return locations;
  }

 private:
  PprofBuilder& b_;
  const std::vector<Path>& paths_;
  Stacks stacks_;
  std::vector<uint64_t> calls_;  // by path: where it was called
};

void add_sample(PprofBuilder& b, uint64_t leaf, const Locations& callers, std::initializer_list<uint64_t> values) {
  pb::Sample* sample = b.profile.add_sample();
  sample->add_location_id(leaf);
  for (uint64_t caller : callers) sample->add_location_id(caller);
  for (uint64_t value : values) sample->add_value(static_cast<int64_t>(value));
}

void add_exact(PprofBuilder& b, const Path& path, const Locations& callers, double per_second) {
  double waited = per_second > 0 ? std::min(static_cast<double>(path.waited) * 1e9 / per_second, 9e18) : 0;
  add_sample(b, b.location(path.function, store::none), callers,
             {path.self, path.os_time, path.calls, static_cast<uint64_t>(std::llround(waited))});
}

void add_sampled(PprofBuilder& b, const Path& path, const Locations& callers, double period) {
  uint64_t rest = path.self;  // what no instruction has
  auto add = [&](uint64_t leaf, uint64_t samples) {
    double stands_for = std::min(static_cast<double>(samples) * period, 9e18);
    add_sample(b, leaf, callers, {samples, static_cast<uint64_t>(std::llround(stands_for))});
    rest -= std::min(rest, samples);
  };
  for (const store::LeafRow& leaf : path.leaves) add(b.location(path.function, leaf), leaf.samples);
  if (rest) add(b.location(path.function, store::none), rest);
}

// A message may be written in pieces: what they repeat is joined by its readers. So no more than a piece is in memory.
class PieceWriter {
 public:
  PieceWriter(const Sink& sink, const std::string& name) : gzip_(sink), name_(name) {}
  Result<> write(pb::Profile& piece) {
    std::string message;
    size_ += piece.ByteSizeLong();
    if (size_ > INT32_MAX || !piece.SerializeToString(&message))
      return fail("{}: too large for pprof, which ends at 2 GiB; try --format folded, or one --thread", name_);
    gzip_.add(message);
    piece.Clear();
    return {};
  }
  Result<> finish() { return gzip_.finish(); }

 private:
  Gzip gzip_;
  std::string name_;  // of the profile
  uint64_t size_ = 0;
};

}  // namespace

Result<> export_pprof(const store::Reader& reader, const Sink& sink) {
  TRY(std::vector<Path> paths, merged_paths(reader, {.sites = true, .leaves = true}));
  TRY(profile::Run run, reader.run());
  PprofBuilder b(reader.has_inlined());
  describe_values(b, run, reader.adds_waits());
  b.profile.set_time_nanos(run.started * 1000);
  b.profile.set_duration_nanos((run.ended - run.started) * 1000);
  TRY_VOID(reader.images([&](uint32_t id, const profile::Image& image) { b.mapping(id, image); }));
  TRY_VOID(reader.functions({}, [&](const store::FunctionRow& f) { b.function(f); }));
  TRY_VOID(reader.sites([&](const store::CallRow& site) { b.site(site); }));
  Callers callers(b, paths);
  PieceWriter writer(sink, reader.path());
  constexpr int piece = 1000;  // samples
  for (uint32_t i = 0; i < paths.size(); i++) {
    Locations locations = callers.of(i);
    if (run.sampling) add_sampled(b, paths[i], locations, period_of(*run.sampling));
    else if (paths[i].self + paths[i].os_time + paths[i].calls + paths[i].waited)
      add_exact(b, paths[i], locations, static_cast<double>(run.cycles_per_second));
    if (b.profile.sample_size() >= piece) TRY_VOID(writer.write(b.profile));
  }
  TRY_VOID(writer.write(b.profile));
  return writer.finish();
}

}  // namespace weir::report
