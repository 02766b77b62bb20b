// What the parts of the exact profile's runtime part offer one another.
#pragma once

#include "rt/hooks.h"
#include "tools/count/runtime/memory.h"

namespace weir::count::runtime {

using rt::ThreadBlock;

template <class T>
T* at(ThreadBlock* tb, uint64_t offset) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(tb) + offset);
}
inline State& state(ThreadBlock* tb) { return *at<State>(tb, state_offset); }

// The record with this key in a hash table, or a new one, whose index goes to the list; null when there is no room.
template <class R>
R* find(R* table, uint32_t size, uint32_t* list, uint32_t& used, uint32_t first, uint32_t second, uint32_t R::* a,
        uint32_t R::* b) {
  uint64_t hash = (uint64_t(first) * 0x9E3779B1u) ^ (uint64_t(second) * 0x85EBCA77u);
  for (uint32_t i = 0; i < 64; i++) {
    auto index = uint32_t((hash + i) % size);
    R& r = table[index];
    if (r.*a == first && r.*b == second) return &r;
    if (r.*b) continue;
    r.*a = first, r.*b = second;
    list[used++] = index;
    return &r;
  }
  return nullptr;
}

// calls.cc
// Advances the clock, where it is the time that passes.
void tick(ThreadBlock* tb);
// Time that the kernel took for the function that runs now, and that this waited.
void charge_os(ThreadBlock* tb, uint64_t time, uint64_t waited);

// os_calls.cc
uint64_t time_stamp(ThreadBlock* tb);
void os_enter(ThreadBlock* tb, uint32_t function);
void os_leave(ThreadBlock* tb);
// The kernel has the thread for the program's call that is under way; it has not any more; and it had not, as it turns out.
void begin_os_span(ThreadBlock* tb);
void end_os_span(ThreadBlock* tb);
void drop_os_span(ThreadBlock* tb);
// Where the thread waits for Weir, no call of the program's is under way.
void begin_wait(ThreadBlock* tb);
void end_wait(ThreadBlock* tb);

}  // namespace weir::count::runtime
