#include "store/match.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace weir::store {
namespace {

// What tells a function from the others of its image, in each run of one program: its name, or where it is. (Code that is written at run
// time is named, and at another place each time.)
struct Key {
  std::string image, name;
  uint64_t offset = 0;
  auto operator<=>(const Key&) const = default;
};

Key key_of(const FunctionInfo& f) {
  bool unnamed = is_unnamed(f);
  return {f.image, unnamed ? "" : f.linkage_name.empty() ? f.name : f.linkage_name, unnamed ? f.offset : 0};
}

Result<> add_images(Subject& subject, const Reader& run) {
  return run.images([&](uint32_t, const profile::Image& image) {
    if (std::ranges::find(subject.images, image.path, &profile::Image::path) == subject.images.end())
      subject.images.push_back(image);
  });
}

Result<> add_functions(Subject& subject, uint32_t run, std::map<Key, std::vector<uint32_t>>& known) {
  std::unordered_map<std::string, uint32_t> image_of;
  for (uint32_t i = 0; i < subject.images.size(); i++) image_of[subject.images[i].path] = i;
  std::vector<FunctionInfo> infos;
  TRY_VOID(subject.runs[run]->all_functions([&](const FunctionInfo& f) { infos.push_back(f); }));
  std::ranges::stable_sort(infos, {}, &FunctionInfo::offset);
  auto& index_of = subject.index_of_id[run];
  auto add = [&](FunctionInfo& f) {
    auto image = image_of.find(f.image);
    subject.functions.push_back({std::move(f), image == image_of.end() ? none : image->second, run});
    return static_cast<uint32_t>(subject.functions.size() - 1);
  };
  std::map<Key, uint32_t> seen;  // so many of that name in this run: the third is the third of the others
  for (FunctionInfo& f : infos) {
    uint32_t id = f.id;
    if (subject.runs.size() == 1) {
      index_of[id] = add(f);
      continue;
    }
    Key key = key_of(f);
    uint32_t number = seen[key]++;
    std::vector<uint32_t>& same = known[key];
    if (number == same.size()) same.push_back(add(f));
    index_of[id] = same[number];
  }
  return {};
}

Result<std::vector<std::string>> programs_of(const Reader& run) {
  TRY(std::vector<ProcessRow> processes, run.processes());
  const ProcessRow* first = nullptr;
  for (const ProcessRow& p : processes)
    if (p.pid && (!first || p.started < first->started)) first = &p;
  std::vector<std::string> programs;
  for (const ProcessRow& p : processes) {
    if (!first || p.pid != first->pid) continue;
    if (!p.program.empty()) programs.push_back(p.program);
    else if (!p.command.empty()) programs.push_back(p.command.front());
  }
  return programs;
}

}  // namespace

bool is_unnamed(const FunctionInfo& f) {
  return f.name.empty() || (f.linkage_name.empty() && f.name.find("+0x") != std::string::npos);
}

Result<Subject> Subject::load(std::vector<const Reader*> runs) {
  Subject subject;
  subject.runs = std::move(runs);
  subject.index_of_id.resize(subject.runs.size());
  std::map<Key, std::vector<uint32_t>> known;
  for (uint32_t run = 0; run < subject.runs.size(); run++) {
    const Reader& reader = *subject.runs[run];
    TRY_VOID(add_images(subject, reader));
    TRY_VOID(add_functions(subject, run, known));
    TRY_VOID(reader.counts_of_functions([&](const FunctionCounts& c) {
      auto it = subject.index_of_id[run].find(c.function);
      bool did = c.calls > 0 || c.self > 0 || c.os_calls > 0 || c.total > 0 || c.os_time_total > 0;  // (`ran` of reader.h)
      if (did && it != subject.index_of_id[run].end()) subject.functions[it->second].ran = true;
    }));
  }
  TRY(subject.programs, programs_of(*subject.runs.front()));
  return subject;
}

namespace {

// Paths of images that ran and have none, of all runs of a side.
Result<std::set<std::string>> images_without_lines(const Subject& subject) {
  std::set<std::string> all;
  for (const Reader* run : subject.runs) {
    TRY(std::vector<std::string> paths, run->images_without_lines());
    all.insert(paths.begin(), paths.end());
  }
  return all;
}

Result<std::string> find_without_lines(const Match& m, const std::vector<ImageMatch>& images) {
  TRY(std::set<std::string> before, images_without_lines(m.before));
  TRY(std::set<std::string> now, images_without_lines(m.now));
  for (const ImageMatch& i : images) {
    const std::string &a = m.before.images[i.before].path, &b = m.now.images[i.now].path;
    if (before.contains(a) != now.contains(b)) return before.contains(a) ? a : b;
  }
  return {};
}

}  // namespace

Result<Match> match(std::vector<const Reader*> now, std::vector<const Reader*> before,
                    const std::vector<std::string>& map) {
  Match m;
  TRY(m.before, Subject::load(std::move(before)));
  TRY(m.now, Subject::load(std::move(now)));
  std::vector<Mapping> mappings;
  for (const std::string& word : map) mappings.push_back({word});
  std::vector<ImageMatch> images = match_images(m.before, m.now, mappings);
  for (const ImageMatch& i : images) {
    const std::string &a = m.before.images[i.before].path, &b = m.now.images[i.now].path;
    if (base_name(a) != base_name(b)) m.renamed_images.push_back({a, b, i.why});
  }
  TRY(m.without_lines, find_without_lines(m, images));
  TRY(m.functions, match_functions(m.before, m.now, images, mappings));
  for (const Mapping& mapping : mappings)
    if (!mapping.is_used)
      return fail(
          "--map {}: say OLD=NEW, an image (or a function) of the run before and one of the run now; weir report FILE "
          "functions lists both",
          shortened(mapping.word, 120));
  return m;
}

Result<Match> match_alike(const std::vector<Reader*>& now, const std::vector<Reader*>& before,
                          const std::vector<std::string>& map) {
  auto match_all = [&] { return match({now.begin(), now.end()}, {before.begin(), before.end()}, map); };
  TRY(Match m, match_all());
  auto tells_inlined = [](const Reader* run) { return run->has_inlined(); };
  if (m.without_lines.empty() || (std::ranges::none_of(now, tells_inlined) && std::ranges::none_of(before, tells_inlined)))
    return m;
  for (const std::vector<Reader*>* side : {&now, &before})
    for (Reader* run : *side) TRY_VOID(run->fold_inlined(true));
  return match_all();
}

}  // namespace weir::store
