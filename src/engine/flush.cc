// A limit on the code cache: when the code of a space has grown to half of it, all of it is flushed, and what is still needed is translated
// anew.
//
// A thread that is in flushed code stays there until it comes to an exit: nothing links from there to anywhere, and nothing leads back. So
// the memory is free when every thread of the space has asked, since the flush, where to go on. That is looked at when the next
// flush is due: the two halves of the limit. A thread that computes or waits all the time in one function keeps it, and the cache
// grows.

#include <fcntl.h>
#include <sched.h>

#include <algorithm>

#include "engine/server.h"

namespace weir::engine {

bool Space::is_full() const {
  size_t code = 0;
  for (const Arena& a : arenas_) code += a.used - a.flushed_to;
  return limit_ && code > limit_ / 2;
}

void Space::flush() {
  generation_++;
  for (uint32_t i = 0; i < arenas_.size(); i++) {
    Arena& a = arenas_[i];
    auto first = static_cast<uint32_t>(a.first_link + a.archived_links());
    for (uint32_t k = 0; k < a.links.size(); k++)
      if (a.links[k].exit.linked) unlink(a, first + k);
  }
  for (uint32_t id : live_) {
    units_[id].dead = true;
    for (AppPc pc : units_[id].table) enter_in_table(pc, {});
  }
  live_.clear();
  entries_ = {}, functions_ = {}, sites_ = {};
  stats_.cache_flushes++;
  for (uint32_t i = 0; i < arenas_.size(); i++) {
    Arena& a = arenas_[i];
    bool is_free = std::ranges::none_of(flushed_, [&](const Flushed& f) { return f.arena == i; });
    Flushed now{generation_, i, a.flushed_to, a.used, a.first_flushed_link, a.next_link};
    if (now.begin < now.end) flushed_.push_back(now);
    // From the begin again, where that cannot reach what has just been flushed.
    if (is_free && now.begin > limit_ && a.used > a.size / 2) a.used = 0;
    if (is_free && now.first_link > a.max_links / 2) a.next_link = 0, a.used_links = now.first_link;
    a.flushed_to = a.used;
    a.first_flushed_link = a.next_link;
  }
}

void Space::reclaim(uint64_t generation) {
  for (const Flushed& f : flushed_) {
    if (f.generation > generation) continue;
    Arena& a = arenas_[f.arena];
    for (uint32_t k = f.first_link; k < f.end_link; k++) a.links[k].exit.linked = false;
    std::erase_if(a.units, [&](uint32_t id) {
      Unit& u = units_[id];
      if (u.offset < f.begin || u.offset >= f.end) return false;
      u.blocks = {}, u.marks = {}, u.table = {};
      return true;
    });
    auto begin = static_cast<off_t>((f.begin + Archive::page - 1) & ~(Archive::page - 1)),
         end = static_cast<off_t>(f.end & ~(Archive::page - 1));
    if (begin < end) fallocate(a.memory->file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);
  }
  std::erase_if(flushed_, [&](const Flushed& f) { return f.generation <= generation; });
  for (uint32_t i = 0; i < arenas_.size(); i++)
    if (std::ranges::none_of(flushed_, [&](const Flushed& f) { return f.arena == i; })) arenas_[i].used_links = 0;
}

// The thread whose request is served leaves flushed code for good: not even a signal handler returns to it.
void Server::leave_flushed(uint32_t slot, const Space& space) {
  if (slots_[slot].generation == space.generation()) return;
  slots_[slot].generation = space.generation();
  for (rt::Interrupted& i : block(slot)->interrupted) i.cache_pc = 0;
}

void Server::flush(Space& space) {
  uint64_t oldest = space.generation();
  for (uint32_t slot = 1; slot < slots_.size(); slot++) {
    const Slot& s = slots_[slot];
    auto p = processes_.find(s.pid);
    bool runs = s.state == SlotState::Running && p != processes_.end() && p->second.space.get() == &space;
    if (runs || s.space.get() == &space) oldest = std::min(oldest, s.generation);
  }
  space.reclaim(oldest);
  space.flush();
}

}  // namespace weir::engine
