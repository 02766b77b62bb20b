// What a sampled profile says of itself.
#include <utility>

#include "report/views.h"

namespace weir::report {

std::vector<std::string> quality_of(const profile::Sampling& s) {
  std::vector<std::string> words = {fmt::format("{} sample{}", with_commas(s.samples), s.samples == 1 ? "" : "s")};
  auto add = [&](bool there, std::string more) {
    if (there) words.push_back(std::move(more));
  };
  auto share = [](uint64_t part, uint64_t whole) { return part ? percent(View::ratio(part, whole)) : "none"; };
  add(s.samples, fmt::format("{} cut off", share(s.truncated, s.samples)));
  add(s.frames, fmt::format("{} of frames guessed", share(s.frames_heuristic, s.frames)));
  add(true, fmt::format("{} lost", with_commas(s.lost)));
  add(s.late, fmt::format("{} late", with_commas(s.late)));
  add(s.no_room, fmt::format("{} without room for a call path", with_commas(s.no_room)));
  add(!s.sees_kernel, "time in the kernel is not seen");
  add(s.verify, s.verify_differences ? fmt::format("{} differ when verified", with_commas(s.verify_differences))
                                     : "all the same when verified");
  return words;
}

void sampling_lines(const View& v, const Line& line) {
  const profile::Sampling& s = *v.run.sampling;
  std::string each = s.rate > 0 ? fmt::format("{:.6g} a second of {} time", s.rate, s.event == "cpu" ? "CPU" : s.event)
                                : fmt::format("one for {} {}", with_commas(s.period), s.event);
  line("samples", printable(fmt::format("{}{}, {} ({})", with_commas(v.totals.all()),
                                        seconds(v.per_second(), v.totals.all()), each, s.source)));
  // As many words a line as fit.
  constexpr size_t most = 60;
  const char* what = "quality";
  std::string text;
  for (const std::string& words : quality_of(s)) {
    if (!text.empty() && display_width(text) + display_width(words) + 2 > most) {
      line(std::exchange(what, ""), text + ",");
      text.clear();
    }
    text += (text.empty() ? "" : ", ") + words;
  }
  line(what, text);
  for (const profile::Sampling::Reason& r : s.truncated_by)
    line("  cut off", fmt::format("{}: {}", percent(View::ratio(r.samples, s.samples)), shortened(r.name, most)));
  for (const profile::Sampling::Reason& r : s.differences_by)
    line("  differ", fmt::format("{}: {}", with_commas(r.samples), shortened(r.name, most)));
  if (s.frames)
    line("frames",
         fmt::format("{}, {} unwound anew ({}), {} by frame pointers", with_unit(s.frames),
                     percent(View::ratio(s.frames_unwound, s.frames)), shortened(s.unwind, 20),
                     s.frames_by_frame_pointer ? percent(View::ratio(s.frames_by_frame_pointer, s.frames)) : "none"));
  line("functions", fmt::format("{} in samples", with_commas(v.totals.functions_run)));
}

void sampling_facts(View& v) {
  if (!v.is_sampled()) return v.out.fact("sampling", Cell());
  const profile::Sampling& s = *v.run.sampling;
  v.out.begin_group("sampling");
  const std::pair<const char*, uint64_t> sums[] = {{"samples", s.samples},
                                                   {"frames", s.frames},
                                                   {"frames_unwound", s.frames_unwound},
                                                   {"frames_heuristic", s.frames_heuristic},
                                                   {"frames_by_frame_pointer", s.frames_by_frame_pointer},
                                                   {"truncated", s.truncated},
                                                   {"no_room", s.no_room},
                                                   {"lost", s.lost},
                                                   {"late", s.late},
                                                   {"verify_differences", s.verify_differences},
                                                   {"distrusted", s.distrusted},
                                                   {"new_maps", s.new_maps}};
  for (auto& [key, sum] : sums) v.out.fact(key, sum);
  v.out.fact("event", s.event);
  v.out.fact("source", s.source);
  v.out.fact("rate", share_if(s.rate > 0, s.rate));
  v.out.fact("period", number_if(s.period, s.period));
  v.out.fact("unwind", s.unwind);
  v.out.fact("confidence", uint64_t{s.confidence});
  v.out.fact("verify", uint64_t{s.verify});
  v.out.fact("sees_kernel", uint64_t{s.sees_kernel});
  auto reasons = [&](const char* key, const std::vector<profile::Sampling::Reason>& all) {
    v.out.begin_group(key);
    for (const auto& [name, samples] : all) v.out.fact(name, samples);
    v.out.end_group();
  };
  reasons("truncated_by", s.truncated_by);
  reasons("verify_differences_by", s.differences_by);
  v.out.end_group();
}

Result<> check_is_exact(const View& v, std::string_view what) {
  if (!v.is_sampled()) return {};
  return fail("{}: {}: not in a sampled profile; an exact one has it: weir profile -- {}", v.reader.path(), what,
              quoted_command(v.run.command));
}

}  // namespace weir::report
