// pprof: a gzipped protobuf (profile.proto). A sample is a call path with its own cycles, OS time and calls; its first location
// is the function itself, the others are the call sites that led there.
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "base/zip.h"
#include "report/export.h"
#include "report/profile.pb.h"

namespace weir::report {
namespace {

namespace pb = perftools::profiles;

// Offsets of different images overlap; here each image has 256 GiB to itself.
uint64_t base_of(uint64_t image) { return (image + 1) << 38; }

class PprofBuilder {
 public:
  PprofBuilder() { string(""); }

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
    images_[image.path] = id;
  }

  void function(const store::FunctionRow& f) {
    pb::Function* function = profile.add_function();
    function->set_id(f.id + 1);
    function->set_name(string(text(f.name)));
    function->set_system_name(string(text(f.linkage_name.empty() ? f.name : f.linkage_name)));
    function->set_filename(string(text(f.file)));
    function->set_start_line(f.line);
    places_[f.id] = {images_.contains(f.image) ? images_[f.image] : store::none, f.offset, f.line};
  }
  void site(const store::CallRow& s) { sites_[s.site] = {s.offset, s.line}; }

  // The function where it begins, or where it makes a call.
  uint64_t location(uint32_t function, uint32_t site) {
    auto [it, added] = locations_.try_emplace({function, site}, locations_.size() + 1);
    if (!added) return it->second;
    Place place = places_.contains(function) ? places_[function] : Place{};
    if (auto at = sites_.find(site); site != store::none && at != sites_.end()) {
      place.offset = at->second.first;
      if (at->second.second) place.line = at->second.second;
    }
    pb::Location* location = profile.add_location();
    location->set_id(it->second);
    if (place.image != store::none) {
      location->set_mapping_id(place.image + 1);
      location->set_address(base_of(place.image) + place.offset);
    }
    if (!places_.contains(function)) return it->second;  // (a file that names no function here)
    pb::Line* line = location->add_line();
    line->set_function_id(function + 1);
    line->set_line(place.line);
    return it->second;
  }

 private:
  struct Place {
    uint32_t image = store::none;
    uint64_t offset = 0;
    uint32_t line = 0;
  };
  static std::string text(const std::string& s) { return printable(s); }  // a string must be UTF-8

  std::unordered_map<std::string, int64_t> strings_;
  std::unordered_map<std::string, uint32_t> images_;
  std::unordered_map<uint32_t, Place> places_;
  std::unordered_map<uint32_t, std::pair<uint64_t, uint32_t>> sites_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> locations_;
};

}  // namespace

Result<> export_pprof(const store::Reader& reader, const Sink& sink) {
  TRY(std::vector<Path> paths, merged_paths(reader, true));
  TRY(profile::Run run, reader.run());
  PprofBuilder b;
  b.value_type(b.profile.add_sample_type(), "cycles", "count");
  b.value_type(b.profile.add_sample_type(), "os_time", "cycles");
  b.value_type(b.profile.add_sample_type(), "calls", "count");
  b.profile.set_default_sample_type(b.string("cycles"));
  b.profile.set_time_nanos(run.started * 1000);
  b.profile.set_duration_nanos((run.ended - run.started) * 1000);
  TRY_VOID(reader.images([&](uint32_t id, const profile::Image& image) { b.mapping(id, image); }));
  TRY_VOID(reader.functions({}, [&](const store::FunctionRow& f) { b.function(f); }));
  TRY_VOID(reader.sites([&](const store::CallRow& site) { b.site(site); }));
  for (const Path& path : paths) {
    if (path.self + path.os_time + path.calls == 0) continue;
    pb::Sample* sample = b.profile.add_sample();
    sample->add_location_id(b.location(path.function, store::none));
    for (const Path* p = &path; p->parent != store::none; p = &paths[p->parent])
      sample->add_location_id(b.location(paths[p->parent].function, p->site));
    sample->add_value(static_cast<int64_t>(path.self));
    sample->add_value(static_cast<int64_t>(path.os_time));
    sample->add_value(static_cast<int64_t>(path.calls));
  }
  std::string message;
  if (b.profile.ByteSizeLong() > INT32_MAX || !b.profile.SerializeToString(&message))
    return fail("{}: too large for pprof, which ends at 2 GiB; try --format folded, or one --thread", reader.path());
  TRY(std::string compressed, gzipped(message));
  sink(compressed);
  return {};
}

}  // namespace weir::report
