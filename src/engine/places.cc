// What the runtime of a target may know of the cache without asking: for lines of it, what where() says of each of their bytes.
//
// A signal asks where it is, and perhaps for each instruction on the way to an exact place: two requests a signal take longer than the
// period of a fast timer. So an answer stays, with those for its neighbours, in memory that the target reads. It is made when the first
// signal comes; others have no use for it. A record is written anew when the ring of records comes round, or when a unit is put where its line is.

#include "engine/space.h"

namespace weir::engine {

namespace {
std::span<uint32_t> ways(rt::Places& places, uint64_t line) {
  return std::span(places.index).subspan(rt::place_hash(line), rt::place_ways);
}

rt::PlaceRecord* find_record(rt::Places& places, uint64_t line) {
  for (uint32_t n : ways(places, line))
    if (n && places.records[n - 1].line == line) return &places.records[n - 1];
  return nullptr;
}
}  // namespace

bool Space::make_places() {
  if (places_.file) return true;
  auto memory = SharedMemory::create("weir-places", rt::places_size);
  if (!memory) return false;
  places_ = std::move(*memory);
  add_piece({places_.file.get(), 0, rt::places_base, rt::places_size, PROT_READ});
  return true;
}

bool Space::tell_places(CachePc pc) {
  if (!make_places()) return false;
  uint64_t line = pc.value & ~uint64_t{rt::place_line - 1};
  auto& places = *places_.as<rt::Places>();
  if (where(pc).place == rt::Place::NotCache || find_record(places, line)) return true;
  rt::PlaceRecord& r = places.records[next_place_];
  __atomic_store_n(&r.line, 0, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < rt::place_line; i++) {
    Place at = where({line + i});
    r.at[i] = {at.app.value,
               static_cast<int32_t>(at.resume.value - (line + i)),
               static_cast<uint8_t>(at.place),
               static_cast<uint8_t>(at.restore),
               static_cast<uint16_t>(at.spilled)};
  }
  __atomic_store_n(&r.line, line, __ATOMIC_RELEASE);
  uint32_t number = next_place_ + 1;
  next_place_ = number % rt::place_records;
  auto candidates = ways(places, line);
  auto is_free = [&](const uint32_t& n) {  // it names no record, or one that has become another line's
    uint64_t other = n ? places.records[n - 1].line : 0;
    return !other || static_cast<uint32_t>(&n - places.index) - rt::place_hash(other) >= rt::place_ways;
  };
  auto at = std::ranges::find_if(candidates, is_free);
  __atomic_store_n(at == candidates.end() ? candidates.data() : &*at, number, __ATOMIC_RELEASE);
  return true;
}

void Space::forget_places(CachePc begin, size_t size) {
  if (!places_.file) return;
  auto& places = *places_.as<rt::Places>();
  for (uint64_t line = begin.value & ~uint64_t{rt::place_line - 1}; line < begin.value + size; line += rt::place_line)
    if (rt::PlaceRecord* r = find_record(places, line)) __atomic_store_n(&r->line, 0, __ATOMIC_SEQ_CST);
}

}  // namespace weir::engine
