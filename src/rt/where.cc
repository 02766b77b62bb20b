#include "rt/where.h"

namespace weir::rt {

namespace {

// A record may be written anew while it is read: its line is 0 then, or another one.
bool find(uint64_t pc, Spot& spot) {
  const auto* places = reinterpret_cast<const Places*>(places_base);
  uint64_t line = pc & ~uint64_t{place_line - 1};
  uint32_t hash = place_hash(line);
  for (uint32_t i = 0; i < place_ways; i++) {
    uint32_t number = __atomic_load_n(&places->index[hash + i], __ATOMIC_ACQUIRE);
    if (!number) continue;
    const PlaceRecord& r = places->records[(number - 1) % place_records];
    if (__atomic_load_n(&r.line, __ATOMIC_ACQUIRE) != line) continue;
    const PlaceAnswer& a = r.at[pc - line];
    spot = {Place(a.place), a.app, a.restore, a.spilled, a.resume ? pc + uint64_t(int64_t{a.resume}) : pc};
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&r.line, __ATOMIC_RELAXED) == line) return true;
  }
  return false;
}

}  // namespace

bool is_sent_from_call(const ThreadBlock* tb) {
  return tb->allowed_return >= address(rt_begin) && tb->allowed_return < address(rt_end);
}

Spot where(ThreadBlock* tb, uint64_t pc) {
  bool is_sent = is_sent_from_call(tb);
  if (pc == address(rt_allowed)) return {Place::Exact, tb->allowed_pc, 0, 0, is_sent ? pc : 0};
  if (pc == address(rt_allowed_done))
    return {Place::Exact, tb->allowed_pc + 2, SetRcxToPc, 0, is_sent ? 0 : tb->allowed_return};
  Spot spot{};
  if (tb->has_places && find(pc, spot)) return spot;
  WhereAnswer at = ask(tb, WhereRequest{pc});
  if (at.restore & HasPlaces) tb->has_places = 1;
  return {at.place, at.app, at.restore & ~uint64_t{HasPlaces}, at.spilled, at.resume};
}

}  // namespace weir::rt
