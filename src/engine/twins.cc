#include "engine/twins.h"

#include <algorithm>

namespace weir::engine {

namespace {
constexpr uint64_t all_low = uint64_t{1} << 32;
constexpr uint64_t fewest_places = 4096;

// What is in `a` and not in `b`, which are in order.
std::vector<LowRange> without(std::span<const LowRange> a, std::span<const LowRange> b) {
  std::vector<LowRange> result;
  for (LowRange r : a) {
    for (const LowRange& o : b) {
      if (o.end <= r.begin || r.end <= o.begin) continue;
      if (r.begin < o.begin) result.push_back({r.begin, o.begin});
      r.begin = std::min(o.end, r.end);
    }
    if (r.begin < r.end) result.push_back(r);
  }
  return result;
}

void join(std::vector<LowRange>& ranges) {
  std::ranges::sort(ranges, {}, &LowRange::begin);
  std::vector<LowRange> joined;
  for (const LowRange& r : ranges)
    if (!joined.empty() && r.begin <= joined.back().end) joined.back().end = std::max(joined.back().end, r.end);
    else joined.push_back(r);
  ranges = std::move(joined);
}

void add_common(AppRange a, AppRange b, std::vector<LowRange>& out) {
  for (const LowRange& x : low_halves(a))
    for (const LowRange& y : low_halves(b))
      if (x.begin < y.end && y.begin < x.end) out.push_back({std::max(x.begin, y.begin), std::min(x.end, y.end)});
}
}  // namespace

std::vector<LowRange> low_halves(AppRange range) {
  if (range.size() >= all_low) return {{0, all_low}};
  uint64_t begin = range.begin.value % all_low, end = begin + range.size();
  if (end <= all_low) return {{begin, end}};
  return {{begin, all_low}, {0, end - all_low}};
}

bool share_low_halves(AppRange a, AppRange b) {
  std::vector<LowRange> common;
  add_common(a, b, common);
  return !common.empty();
}

Result<Twins> Twins::create() {
  Twins t;
  TRY(t.memory_, SharedMemory::create("weir-twins", rt::twins_size));
  return t;
}

Result<Twins> Twins::copy() const {
  TRY(Twins t, create());
  t.code_ = code_;
  t.shared_ = shared_;
  t.used_ = used_;
  if (table()->mask) memcpy(t.table(), table(), sizeof(rt::TwinTable) + (table()->mask + 1) * sizeof(rt::Twin));
  return t;
}

// Low halves that the range has, and other code.
std::vector<LowRange> Twins::shared_with(AppRange range) const {
  std::vector<LowRange> result;
  if (range.size() > all_low) result.push_back({0, all_low});
  for (const AppRange& c : code_) {
    if (!c.overlaps(range)) {
      add_common(c, range, result);
      continue;
    }
    // The same memory is no twin of itself.
    if (c.begin < range.begin) add_common({c.begin, range.begin}, range, result);
    if (range.end < c.end) add_common({range.end, c.end}, range, result);
  }
  join(result);
  return result;
}

std::vector<LowRange> Twins::add(AppRange range) {
  if (covers(range)) return {};
  std::vector<LowRange> fresh = without(shared_with(range), shared_);
  shared_.insert(shared_.end(), fresh.begin(), fresh.end());
  join(shared_);
  auto first = std::ranges::find_if(code_, [&](AppRange c) { return range.begin <= c.end; });
  auto last = first;
  for (; last != code_.end() && last->begin <= range.end; ++last)
    range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
  code_.insert(code_.erase(first, last), range);
  return fresh;
}

// Low halves that several pieces of code have: of each in turn, what the others before it reach over.
std::vector<LowRange> Twins::find_shared() const {
  std::vector<LowRange> all, result;
  for (const AppRange& c : code_) {
    if (c.size() > all_low) return {{0, all_low}};
    for (const LowRange& low : low_halves(c)) all.push_back(low);
  }
  std::ranges::sort(all, {}, &LowRange::begin);
  uint64_t reached = 0;
  for (const LowRange& r : all) {
    if (r.begin < reached) result.push_back({r.begin, std::min(r.end, reached)});
    reached = std::max(reached, r.end);
  }
  join(result);
  return result;
}

std::vector<LowRange> Twins::remove(AppRange range) {
  if (std::ranges::none_of(code_, [&](AppRange c) { return c.overlaps(range); })) return {};
  std::vector<AppRange> kept;
  for (AppRange c : code_) {
    if (!c.overlaps(range)) {
      kept.push_back(c);
      continue;
    }
    if (c.begin < range.begin) kept.push_back({c.begin, range.begin});
    if (range.end < c.end) kept.push_back({range.end, c.end});
  }
  code_ = std::move(kept);
  if (shared_.empty()) return {};
  std::vector<LowRange> still = find_shared();
  std::vector<LowRange> gone = without(shared_, still);
  shared_ = std::move(still);
  return gone;
}

bool Twins::covers(AppRange range) const {
  auto c = std::ranges::upper_bound(code_, range.begin, {}, &AppRange::begin);
  return c != code_.begin() && std::prev(c)->covers(range);
}

bool Twins::has_room_for(AppRange range) const { return shared_with(range).empty(); }

bool Twins::is_in_shared(uint64_t low) const {
  auto r = std::ranges::upper_bound(shared_, low, {}, &LowRange::begin);
  return r != shared_.begin() && low < std::prev(r)->end;
}

bool Twins::is_shared(AppRange range) const {
  for (const LowRange& low : low_halves(range))
    for (const LowRange& s : shared_)
      if (low.begin < s.end && s.begin < low.end) return true;
  return false;
}

// Where it is, or would be.
rt::Twin* Twins::place_of(uint64_t key) const {
  rt::TwinTable* t = table();
  uint64_t i = rt::twin_place(key, t->mask);
  while (t->places[i].key && t->places[i].key != key) i = (i + 1) & t->mask;
  return &t->places[i];
}

CachePc Twins::find(AppPc pc, instrument::Version version) const {
  if (!table()->mask) return {};
  const rt::Twin* place = place_of(rt::twin_key(pc.value, version));
  return {place->key ? place->to : 0};
}

// A place keeps its address, so that readers never see the one of one with the other of another; but for grow(), which they notice.
void Twins::enter(AppPc pc, instrument::Version version, CachePc to) {
  if (2 * (used_ + 1) > table()->mask + 1) grow();
  if (2 * (used_ + 1) > table()->mask + 1) return;  // it is full: the others are asked for each time
  uint64_t key = rt::twin_key(pc.value, version);
  rt::Twin* place = place_of(key);
  __atomic_store_n(&place->to, to.value, __ATOMIC_RELEASE);
  if (place->key) return;
  __atomic_store_n(&place->key, key, __ATOMIC_RELEASE);
  used_++;
}

void Twins::grow() {
  rt::TwinTable* t = table();
  uint64_t places = t->mask ? t->mask + 1 : 0;
  std::vector<rt::Twin> live;
  for (uint64_t i = 0; i < places; i++)
    if (t->places[i].to) live.push_back(t->places[i]);
  uint64_t wanted = std::max(fewest_places, places);
  while (wanted < 4 * (live.size() + 1) && wanted < rt::max_twins) wanted *= 2;
  if (wanted == places && 2 * (live.size() + 1) > places) return;
  __atomic_store_n(&t->version, t->version + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  memset(t->places, 0, places * sizeof(rt::Twin));
  t->mask = wanted - 1;
  for (const rt::Twin& twin : live) *place_of(twin.key) = twin;
  used_ = live.size();
  __atomic_store_n(&t->version, t->version + 1, __ATOMIC_RELEASE);
}

std::vector<Twins::Entry> Twins::take(LowRange low) {
  std::vector<Entry> taken;
  rt::TwinTable* t = table();
  for (uint64_t i = 0; t->mask && i <= t->mask; i++) {
    rt::Twin& twin = t->places[i];
    uint64_t half = twin.key % all_low;
    if (!twin.to || half < low.begin || half >= low.end) continue;
    AppPc pc{twin.key & ((uint64_t{1} << 48) - 1)};
    taken.push_back({pc, static_cast<instrument::Version>(twin.key >> 48), {twin.to}});
    __atomic_store_n(&twin.to, 0, __ATOMIC_RELEASE);
  }
  return taken;
}

}  // namespace weir::engine
