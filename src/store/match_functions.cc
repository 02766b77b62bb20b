// Which function of the run before is which of the run now. In a pair of images: where the build is the same by offset, else by name. Then, of
// what ran and has no other half, by evidence:
//
//   score = similarity of the bodies + ½ the same name + ⅙ the same source file + ⅙ the same image + ¼ callers and callees in common
//
// The best pair is taken first. How similar bodies must be depends on what else speaks for the pair (is_enough()).
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "store/match.h"

namespace weir::store {
namespace {

constexpr size_t most_alike = 64;  // of one name; and functions that share a part of a body which still tells something
constexpr size_t most_candidates = 16;  // for each function

std::string_view plain_name(const FunctionInfo& f) { return f.linkage_name.empty() ? f.name : f.linkage_name; }

bool same_file(const FunctionInfo& a, const FunctionInfo& b) {
  return !a.file.empty() && base_name(a.file) == base_name(b.file);
}

class Functions {
 public:
  Functions(const Subject& before, const Subject& now, const std::vector<ImageMatch>& images) : sides_{&before, &now} {
    for (bool is_now : {false, true}) {
      partner_[is_now].assign(sides_[is_now]->functions.size(), none);
      bodies_[is_now].resize(sides_[is_now]->functions.size());
    }
    image_now_.assign(before.images.size(), none);
    is_same_build_[0].resize(before.images.size());
    is_same_build_[1].resize(now.images.size());
    for (const ImageMatch& i : images) {
      const std::string& id = before.images[i.before].build_id;
      image_now_[i.before] = i.now;
      is_same_build_[0][i.before] = is_same_build_[1][i.now] = !id.empty() && id == now.images[i.now].build_id;
    }
  }

  void by_map(std::vector<Mapping>& map);
  void by_offset();
  Result<> by_name();
  Result<> by_evidence();
  std::vector<FunctionPair> result() { return std::move(pairs_); }

 private:
  struct Candidate {
    uint32_t b, n;
    double body, score;
  };
  const Subject::Function& old_one(uint32_t b) const { return sides_[0]->functions[b]; }
  const Subject::Function& new_one(uint32_t n) const { return sides_[1]->functions[n]; }
  bool is_free(bool is_now, uint32_t f) const { return partner_[is_now][f] == none; }
  // Nothing but code has a body, and a name that says something. What is in the same build of an image in both runs is there, under its
  // name, whether it ran or not.
  bool is_open(bool is_now, uint32_t f) const {
    const Subject::Function& one = sides_[is_now]->functions[f];
    return is_free(is_now, f) && one.ran && one.image != none && !is_same_build_[is_now][one.image];
  }
  bool same_image(uint32_t b, uint32_t n) const {
    return old_one(b).image == none ? new_one(n).image == none : image_now_[old_one(b).image] == new_one(n).image;
  }
  bool same_name(uint32_t b, uint32_t n) const {
    const FunctionInfo &x = old_one(b).info, &y = new_one(n).info;
    return !is_unnamed(x) && !is_unnamed(y) && plain_name(x) == plain_name(y);
  }
  Result<const Body*> body(bool is_now, uint32_t f);
  Result<> pair_up(std::vector<uint32_t>& old_ones, std::vector<uint32_t>& new_ones);
  Result<> read_neighbours();
  double neighbours_in_common(uint32_t b, uint32_t n) const;
  Result<std::vector<Candidate>> candidates();
  bool is_enough(const Candidate& c);
  void take(uint32_t b, uint32_t n, double similarity);

  const Subject* sides_[2];
  std::vector<bool> is_same_build_[2];  // images
  std::vector<uint32_t> partner_[2], image_now_;
  std::vector<std::optional<Body>> bodies_[2];
  std::vector<std::vector<uint32_t>> neighbours_[2];  // callers and callees
  std::vector<FunctionPair> pairs_;
};

void Functions::take(uint32_t b, uint32_t n, double similarity) {
  partner_[0][b] = n, partner_[1][n] = b;
  const FunctionInfo &x = old_one(b).info, &y = new_one(n).info;
  bool renamed = !is_unnamed(x) && !is_unnamed(y) && x.name != y.name;
  pairs_.push_back({b, n, renamed, !same_image(b, n), similarity});
}

Result<const Body*> Functions::body(bool is_now, uint32_t f) {
  std::optional<Body>& known = bodies_[is_now][f];
  if (!known) {
    const Subject& side = *sides_[is_now];
    const Subject::Function& one = side.functions[f];
    BodyReader read;
    TRY_VOID(side.runs[one.run]->blocks(one.info, [&](const BlockRow& b) { read.add(b.offset, b.bytes); }));
    known = read.end();
  }
  return &*known;
}

// Functions that the user names: OLD=NEW.
void Functions::by_map(std::vector<Mapping>& map) {
  auto find = [&](bool is_now, std::string_view name) -> std::optional<uint32_t> {
    std::optional<uint32_t> found;
    for (uint32_t f = 0; f < sides_[is_now]->functions.size(); f++) {
      const Subject::Function& one = sides_[is_now]->functions[f];
      if (!is_free(is_now, f) || (one.info.name != name && one.info.linkage_name != name)) continue;
      if (!found || one.ran) found = f;
      if (one.ran) break;
    }
    return found;
  };
  for (Mapping& m : map)
    for (size_t at = m.word.find('='); at != std::string::npos && !m.is_used; at = m.word.find('=', at + 1)) {
      std::string_view word = m.word;
      auto b = find(false, word.substr(0, at)), n = find(true, word.substr(at + 1));
      if (!b || !n) continue;
      take(*b, *n, 1);
      m.is_used = true;
    }
}

void Functions::by_offset() {
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> at;
  for (uint32_t b = 0; b < sides_[0]->functions.size(); b++)
    if (uint32_t image = old_one(b).image;
        is_free(false, b) && old_one(b).info.has_code && image != none && is_same_build_[0][image])
      at[{image_now_[image], old_one(b).info.offset}] = b;
  for (uint32_t n = 0; n < sides_[1]->functions.size(); n++) {
    if (!is_free(true, n) || !new_one(n).info.has_code) continue;  // (what is only inlined has no place: its name tells)
    auto found = at.find({new_one(n).image, new_one(n).info.offset});
    if (found == at.end() || !is_free(false, found->second)) continue;
    take(found->second, n, 1);
  }
}

// Those that share a name (static functions): by file, then by body, then in the order of their addresses.
Result<> Functions::pair_up(std::vector<uint32_t>& old_ones, std::vector<uint32_t>& new_ones) {
  auto by_place = [&](bool is_now) {
    return [this, is_now](uint32_t f) { return sides_[is_now]->functions[f].info.offset; };
  };
  std::ranges::stable_sort(old_ones, {}, by_place(false));
  std::ranges::stable_sort(new_ones, {}, by_place(true));
  std::vector<Candidate> candidates;
  auto ran = [&](bool is_now, auto& ids) {
    return std::ranges::any_of(ids, [&](uint32_t f) { return sides_[is_now]->functions[f].ran; });
  };
  if (old_ones.size() * new_ones.size() > 1 && ran(false, old_ones) && ran(true, new_ones) &&
      std::max(old_ones.size(), new_ones.size()) <= most_alike)
    for (uint32_t b : old_ones)
      for (uint32_t n : new_ones) {
        TRY(const Body* x, body(false, b));
        TRY(const Body* y, body(true, n));
        double alike = similarity(*x, *y);
        candidates.push_back({b, n, alike, alike + (same_file(old_one(b).info, new_one(n).info) ? 2 : 0)});
      }
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::score);
  for (const Candidate& c : candidates)
    if (c.score > 0.5 && is_free(false, c.b) && is_free(true, c.n)) take(c.b, c.n, 1);
  std::erase_if(old_ones, [&](uint32_t b) { return !is_free(false, b); });
  std::erase_if(new_ones, [&](uint32_t n) { return !is_free(true, n); });
  for (size_t i = 0; i < std::min(old_ones.size(), new_ones.size()); i++) take(old_ones[i], new_ones[i], 1);
  return {};
}

Result<> Functions::by_name() {
  using Key = std::pair<uint32_t, std::string_view>;  // an image of now
  std::map<Key, std::array<std::vector<uint32_t>, 2>> of;
  for (uint32_t b = 0; b < sides_[0]->functions.size(); b++) {
    const Subject::Function& f = old_one(b);
    if (!is_free(false, b) || is_unnamed(f.info)) continue;
    if (f.image == none) of[{none, plain_name(f.info)}][0].push_back(b);
    else if (image_now_[f.image] != none) of[{image_now_[f.image], plain_name(f.info)}][0].push_back(b);
  }
  for (uint32_t n = 0; n < sides_[1]->functions.size(); n++)
    if (is_free(true, n) && !is_unnamed(new_one(n).info))
      of[{new_one(n).image, plain_name(new_one(n).info)}][1].push_back(n);
  for (auto& [key, ids] : of) TRY_VOID(pair_up(ids[0], ids[1]));
  return {};
}

Result<> Functions::read_neighbours() {
  for (bool is_now : {false, true}) {
    neighbours_[is_now].resize(sides_[is_now]->functions.size());
    for (size_t run = 0; run < sides_[is_now]->runs.size(); run++) {
      auto& index_of = sides_[is_now]->index_of_id[run];
      TRY_VOID(sides_[is_now]->runs[run]->calls({}, [&](const CallRow& c) {
        auto caller = index_of.find(c.caller), callee = index_of.find(c.callee);
        if (caller == index_of.end() || callee == index_of.end()) return;
        neighbours_[is_now][caller->second].push_back(callee->second);
        neighbours_[is_now][callee->second].push_back(caller->second);
      }));
    }
    for (std::vector<uint32_t>& list : neighbours_[is_now]) {
      std::ranges::sort(list);
      list.erase(std::ranges::unique(list).begin(), list.end());
    }
  }
  return {};
}

// Of the neighbours of both whose other half is known, those that are the same.
double Functions::neighbours_in_common(uint32_t b, uint32_t n) const {
  size_t known = 0, common = 0;
  for (uint32_t x : neighbours_[0][b]) {
    if (partner_[0][x] == none) continue;
    known++;
    common += std::ranges::binary_search(neighbours_[1][n], partner_[0][x]);
  }
  for (uint32_t y : neighbours_[1][n]) known += partner_[1][y] != none;
  return known ? static_cast<double>(common) / static_cast<double>(known - common) : 0;
}

// For each open function of before, those of now that share its name, its whole body, or the most rare parts of it.
Result<std::vector<Functions::Candidate>> Functions::candidates() {
  std::unordered_map<uint64_t, std::vector<uint32_t>> with_part, with_body;
  std::unordered_map<std::string_view, std::vector<uint32_t>> with_name;
  auto insert = [](std::vector<uint32_t>& list, uint32_t n) {
    if (list.size() <= most_alike && (list.empty() || list.back() != n)) list.push_back(n);
  };
  for (uint32_t n = 0; n < sides_[1]->functions.size(); n++) {
    if (!is_open(true, n)) continue;
    TRY(const Body* x, body(true, n));
    for (uint64_t part : x->parts) insert(with_part[part], n);
    if (x->instructions) insert(with_body[x->whole], n);
    if (!is_unnamed(new_one(n).info)) insert(with_name[plain_name(new_one(n).info)], n);
  }
  std::vector<Candidate> all;
  for (uint32_t b = 0; b < sides_[0]->functions.size(); b++) {
    if (!is_open(false, b)) continue;
    TRY(const Body* x, body(false, b));
    std::unordered_map<uint32_t, size_t> votes;
    constexpr size_t certain = 1'000'000;  // more than parts can give
    auto vote = [&](auto& index, auto key, size_t weight) {
      if (auto found = index.find(key); found != index.end() && found->second.size() <= most_alike)
        for (uint32_t n : found->second) votes[n] += weight;
    };
    for (uint64_t part : x->parts) vote(with_part, part, 1);
    if (x->instructions) vote(with_body, x->whole, certain);
    if (!is_unnamed(old_one(b).info)) vote(with_name, plain_name(old_one(b).info), certain);
    std::vector<std::pair<size_t, uint32_t>> best;
    for (auto [n, count] : votes) best.emplace_back(count, n);
    std::ranges::sort(best, [](auto& p, auto& q) { return p.first != q.first ? p.first > q.first : p.second < q.second; });
    if (best.size() > most_candidates) best.resize(most_candidates);
    for (auto [count, n] : best) all.push_back({b, n, similarity(*x, *bodies_[1][n]), 0});
  }
  return all;
}

bool Functions::is_enough(const Candidate& c) {
  const FunctionInfo &x = old_one(c.b).info, &y = new_one(c.n).info;
  bool file = same_file(x, y);
  double near = neighbours_in_common(c.b, c.n);
  if (same_name(c.b, c.n)) return c.body >= (is_everywhere(x.name) ? 0.9 : file ? 0 : 0.4);
  uint32_t size = std::min(bodies_[0][c.b]->instructions, bodies_[1][c.n]->instructions);
  bool is_certain = file || near >= 0.5;
  // Without names there are no others that it could be, but those of the image.
  bool is_nameless = is_unnamed(x) && is_unnamed(y) && same_image(c.b, c.n);
  if (size >= 12) return c.body >= (is_nameless && near >= 0.5 ? 0.4 : is_certain ? 0.6 : 0.8);
  if (size >= 6) return c.body >= (is_certain ? 0.8 : 1);
  return size >= 3 && c.body == 1 && is_certain && near > 0;
}

// Each round knows more callers than the one before.
Result<> Functions::by_evidence() {
  TRY(std::vector<Candidate> all, candidates());
  if (all.empty()) return {};
  TRY_VOID(read_neighbours());
  for (int round = 0; round < 4; round++) {
    size_t known = pairs_.size();
    std::erase_if(all, [&](const Candidate& c) { return !is_free(false, c.b) || !is_free(true, c.n); });
    for (Candidate& c : all) {
      const FunctionInfo &x = old_one(c.b).info, &y = new_one(c.n).info;
      c.score = c.body + (same_name(c.b, c.n) ? 0.5 : 0) + (same_file(x, y) ? 1.0 / 6 : 0) +
                (same_image(c.b, c.n) ? 1.0 / 6 : 0) + neighbours_in_common(c.b, c.n) / 4;
    }
    std::ranges::stable_sort(all, std::ranges::greater(), &Candidate::score);
    for (const Candidate& c : all)
      if (is_free(false, c.b) && is_free(true, c.n) && is_enough(c)) take(c.b, c.n, c.body);
    if (pairs_.size() == known) break;
  }
  return {};
}

}  // namespace

Result<std::vector<FunctionPair>> match_functions(const Subject& before, const Subject& now,
                                                  const std::vector<ImageMatch>& images, std::vector<Mapping>& map) {
  Functions functions(before, now, images);
  functions.by_map(map);
  functions.by_offset();
  TRY_VOID(functions.by_name());
  TRY_VOID(functions.by_evidence());
  return functions.result();
}

}  // namespace weir::store
