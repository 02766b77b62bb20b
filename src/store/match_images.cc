// Which image of the run before is which of the run now. Steps from what is certain to what is likely; each takes what the ones before left.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "store/match.h"

namespace weir::store {
namespace {

bool ends_in_path(const std::string& path, std::string_view end) {
  if (end.empty() || path.size() < end.size() || !path.ends_with(end)) return false;
  return path.size() == end.size() || end.front() == '/' || path[path.size() - end.size() - 1] == '/';
}

// Directories that two paths have in common, from the end.
size_t common_end(std::string_view a, std::string_view b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) n++;
  return n;
}

class Images {
 public:
  Images(const Subject& before, const Subject& now)
      : before_(before), now_(now), taken_before_(before.images.size()), taken_now_(now.images.size()) {}

  void by_map(std::vector<Mapping>& map) {
    for (Mapping& m : map)
      for (size_t at = m.word.find('='); at != std::string::npos; at = m.word.find('=', at + 1)) {
        std::string_view word = m.word, old_end = word.substr(0, at), new_end = word.substr(at + 1);
        auto b = find(before_, old_end), n = find(now_, new_end);
        if (!b || !n || taken_before_[*b] || taken_now_[*n]) continue;
        take(*b, *n, "--map");
        m.is_used = true;
      }
  }
  // The best score wins; below zero is no match.
  template <class Score>
  void by(const char* why, Score score) {
    struct Candidate {
      double score;
      uint32_t b, n;
    };
    std::vector<Candidate> candidates;
    for (uint32_t b = 0; b < before_.images.size(); b++)
      for (uint32_t n = 0; n < now_.images.size(); n++) {
        if (taken_before_[b] || taken_now_[n]) continue;
        if (double s = score(b, n); s >= 0) candidates.push_back({s, b, n});
      }
    std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::score);
    for (const Candidate& c : candidates)
      if (!taken_before_[c.b] && !taken_now_[c.n]) take(c.b, c.n, why);
  }
  // Of the images that are left, those that only one has on each side.
  void by_version() {
    std::map<std::string, std::array<std::vector<uint32_t>, 2>> of;
    for (uint32_t b = 0; b < before_.images.size(); b++)
      if (!taken_before_[b]) of[stem(before_.images[b])][0].push_back(b);
    for (uint32_t n = 0; n < now_.images.size(); n++)
      if (!taken_now_[n]) of[stem(now_.images[n])][1].push_back(n);
    for (auto& [name, ids] : of)
      if (ids[0].size() == 1 && ids[1].size() == 1) take(ids[0][0], ids[1][0], "another version");
  }
  // What both runs started, where it has another name: the last program that is left on each side.
  void by_program() {
    std::optional<uint32_t> b = program(before_, taken_before_), n = program(now_, taken_now_);
    if (b && n) take(*b, *n, "the main program of both runs");
  }
  void by_symbols() {
    std::map<uint32_t, std::set<std::string>> old_names = names_of(before_, taken_before_),
                                              new_names = names_of(now_, taken_now_);
    by("the same symbols", [&](uint32_t b, uint32_t n) -> double {
      const std::set<std::string>&x = old_names[b], &y = new_names[n];
      size_t common = static_cast<size_t>(std::ranges::count_if(x, [&](auto& name) { return y.contains(name); }));
      size_t least = std::min(x.size(), y.size()), most = std::max(x.size(), y.size());
      if (common < 2 || common * 2 < least || common * 5 < most) return -1;
      return static_cast<double>(common) / static_cast<double>(x.size() + y.size() - common);
    });
  }
  std::vector<ImageMatch> result() { return std::move(pairs_); }

 private:
  static std::string stem(const profile::Image& image) { return without_version(base_name(image.path)); }
  static std::optional<uint32_t> find(const Subject& subject, std::string_view end) {
    for (uint32_t i = 0; i < subject.images.size(); i++)
      if (ends_in_path(subject.images[i].path, end)) return i;
    return std::nullopt;
  }
  static std::optional<uint32_t> program(const Subject& subject, const std::vector<bool>& taken) {
    for (size_t k = subject.programs.size(); k-- > 0;)
      for (uint32_t i = 0; i < subject.images.size(); i++)
        if (!taken[i] && base_name(subject.images[i].path) == base_name(subject.programs[k])) return i;
    return std::nullopt;
  }
  static std::map<uint32_t, std::set<std::string>> names_of(const Subject& subject, const std::vector<bool>& taken) {
    std::map<uint32_t, std::set<std::string>> names;
    for (const Subject::Function& f : subject.functions)
      if (f.image != none && !taken[f.image] && !is_unnamed(f.info) && !is_everywhere(f.info.name))
        names[f.image].insert(f.info.name);
    return names;
  }
  void take(uint32_t b, uint32_t n, const char* why) {
    taken_before_[b] = taken_now_[n] = true;
    pairs_.push_back({b, n, why});
  }
  const Subject &before_, &now_;
  std::vector<bool> taken_before_, taken_now_;
  std::vector<ImageMatch> pairs_;
};

}  // namespace

bool is_everywhere(std::string_view name) {
  static const std::set<std::string_view> names = {"main",
                                                   "_start",
                                                   "_init",
                                                   "_fini",
                                                   "init",
                                                   "fini",
                                                   "frame_dummy",
                                                   "register_tm_clones",
                                                   "deregister_tm_clones",
                                                   "__do_global_dtors_aux",
                                                   "__libc_csu_init",
                                                   "__libc_csu_fini",
                                                   "_dl_relocate_static_pie",
                                                   "usage"};
  return names.contains(name) || name.ends_with("@plt");
}

// Numbers go, with the dots and dashes in front of them: libfoo-1.2.so.3 → libfoo.so, _json.cpython-311-x86_64.so → _json.cpython-x86_64.so
// ("x86_64" is no version). A name of nothing but numbers stays.
std::string without_version(std::string_view name) {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string stem;
  for (size_t i = 0; i < name.size(); i++) {
    if (name.substr(i).starts_with("x86_64")) {
      stem += "x86_64";
      i += 5;
    } else if (!is_digit(name[i])) {
      stem += name[i];
    } else {
      while (!stem.empty() && (stem.back() == '.' || stem.back() == '-' || stem.back() == '_')) stem.pop_back();
      while (i + 1 < name.size() &&
             (is_digit(name[i + 1]) || (name[i + 1] == '.' && i + 2 < name.size() && is_digit(name[i + 2]))))
        i++;
    }
  }
  return stem.empty() ? std::string(name) : stem;
}

std::vector<ImageMatch> match_images(const Subject& before, const Subject& now, std::vector<Mapping>& map) {
  Images images(before, now);
  auto of = [&](uint32_t b, uint32_t n) { return std::pair(&before.images[b], &now.images[n]); };
  images.by_map(map);
  images.by("the same path", [&](uint32_t b, uint32_t n) {
    auto [x, y] = of(b, n);
    return x->path == y->path ? 1.0 : -1;
  });
  images.by("the same build", [&](uint32_t b, uint32_t n) {
    auto [x, y] = of(b, n);
    bool same = !x->build_id.empty() && x->build_id == y->build_id;
    return same ? static_cast<double>(common_end(x->path, y->path)) : -1;
  });
  images.by("the same file name", [&](uint32_t b, uint32_t n) {
    auto [x, y] = of(b, n);
    return base_name(x->path) == base_name(y->path) ? static_cast<double>(common_end(x->path, y->path)) : -1;
  });
  images.by_version();
  images.by_program();
  images.by_symbols();
  return images.result();
}

}  // namespace weir::store
