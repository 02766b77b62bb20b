// What a sample leaves: a record, in a queue from the thread to Weir.
//
// The handler tells what is new, and no more: how many callers, from the outermost on, are those of the record before (of the same map,
// rt/linkage.h), which the others are, and where the sample was taken. What call path that is, Weir finds out in its own time and memory
// (sample/call_tree.h). To look for it here took as long as the walk: the program drives a tree out of the caches between two samples, and
// each page that it grows by costs as much as ten samples.
//
// One thread writes, one process reads, and neither waits. When all was read, writing goes on at the begin: so a few pages are in use, as
// long as Weir is awake. When it is not, and there is no more room, samples are lost.
#pragma once

#include "rt/walk.h"

namespace weir::rt {

struct Record {
  uint16_t kept;  // callers of the map's last record, the outermost so many
  uint16_t more;  // callers that follow, outermost first: a word each
  uint8_t map;
  Stop end;
  uint16_t unused;
  uint64_t weight;  // as many samples
  uint64_t leaf;    // where the sample was taken
};
constexpr uint64_t words_of(uint32_t more) { return sizeof(Record) / sizeof(uint64_t) + more; }

class Records {
 public:
  // Words, all that ever were.
  struct Queue {
    uint64_t written;
    uint64_t origin;  // so many were when the first word of the memory was written. It changes while all was read, only
    uint64_t read;    // Weir's
  };

  Records(Queue& queue, uint64_t* words, uint64_t capacity) : q_(queue), words_(words), capacity_(capacity) {}

  // For a sample of so many callers. Asked before each: who cannot put a sample down need not take it.
  bool has_room(uint32_t callers) {
    if (__atomic_load_n(&q_.read, __ATOMIC_ACQUIRE) == q_.written) q_.origin = q_.written;
    return words_of(callers) <= capacity_ - (q_.written - q_.origin);
  }

  void put(const Sample& s, uint64_t leaf, uint64_t weight) {
    uint64_t written = q_.written, at = written - q_.origin;
    *reinterpret_cast<Record*>(words_ + at) = {
        static_cast<uint16_t>(s.kept), static_cast<uint16_t>(s.depth - 1 - s.kept), s.map_number, s.end, 0, weight, leaf};
    uint64_t* to = words_ + at + words_of(0);
    for (uint32_t i = s.known; i < s.map->count; i++)
      if (!(s.map->frames[i].flags & KeptFrame::Silent)) *to++ = s.map->links[i].value;
    __atomic_store_n(&q_.written, written + words_of(s.depth - 1 - s.kept), __ATOMIC_RELEASE);
  }

  // Has take(record, callers) look at all records behind the first `read` words, of which it keeps the count. The target can write to all of
  // this. false: what makes no sense was passed over.
  template <class Take>
  bool take(uint64_t& read, Take take) const {
    constexpr int most = 8;  // times that more has come meanwhile
    bool is_sound = true;
    for (int i = 0; i < most && is_sound; i++) {
      uint64_t written = __atomic_load_n(&q_.written, __ATOMIC_ACQUIRE);
      if (read == written) break;
      is_sound = take_until(written, read, take);
      read = written;
      __atomic_store_n(&q_.read, read, __ATOMIC_RELEASE);
    }
    return is_sound;
  }

 private:
  template <class Take>
  bool take_until(uint64_t written, uint64_t& read, Take& take) const {
    uint64_t origin = q_.origin, at = read - origin, end = written - origin;
    if (end > capacity_) return false;
    while (at < end) {
      if (end - at < words_of(0)) return false;
      const Record r = *reinterpret_cast<const Record*>(words_ + at);
      if (words_of(r.more) > end - at) return false;
      take(r, words_ + at + words_of(0));
      at += words_of(r.more);
      read = origin + at;
    }
    return at == end;
  }

  Queue& q_;
  uint64_t* words_;
  uint64_t capacity_;
};

}  // namespace weir::rt
