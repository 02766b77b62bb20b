// What system calls do with the program's memory: which bytes read(2) writes, which write(2) reads. For tools that ask.
//
//     SystemCall call{number, {rdi, rsi, rdx, r10, r8, r9}};
//     for_each_effect(call, read, f);            before the call: what it will read, and where it may write
//     for_each_effect(call, result, read, f);    after it: what it has written
//
// `call` is the same object both times: it keeps lengths that the kernel overwrites. rt/call_effects.inc says what each call does. What
// cannot be known is told as Unknown. Pointers may be wrong, and other threads may change what they lead to: the program's memory is
// only read through `read`, which says false where it cannot be read.
#pragma once

#include <stdint.h>

namespace weir::rt {

enum class Use : uint8_t {
  // Before the call.
  Read,      // must be there, and must have been initialized
  Copied,    // must be there: the kernel takes it over and does not look at it, as padding
  MayWrite,  // must be there: after the call, Written tells how much it was
  // After it.
  Written,
  Remapped,  // what is mapped here is other memory, or none, or has other contents or rights; a size of 0 is not known
  Later,     // the kernel keeps the address, and may read and write there when the call has returned
  // Before and after.
  Unknown,  // it is not known what is done with what begins here; a size of 0 is not known, nor is a begin of 0
};

struct Effect {
  Use use;
  uint8_t argument;  // which leads here: 0 to 5; another number: none
  uint64_t begin, size;
};

constexpr int max_kept_words = 8;
struct SystemCall {
  uint64_t number;
  uint64_t arguments[6];
  // What asking before the call fills in: the arguments that the kernel looks at, as a bit mask, and those of which it looks at 32 bits
  uint8_t used = 0, narrow = 0;
  uint64_t kept[max_kept_words] = {};  // what the program's memory held then
};

// The runtime's read_memory, or, under a seccomp filter, which forbids calls of its own, a plain copy.
using ReadMemory = bool(const void* from, void* to, uint64_t size);
using TellEffect = void(void* self, const Effect&);
void tell_effects_before(SystemCall& call, ReadMemory* read, TellEffect* tell, void* self);
void tell_effects_after(const SystemCall& call, int64_t result, ReadMemory* read, TellEffect* tell, void* self);
// False: no line in the table.
bool is_known_call(uint64_t number);

template <class F>
void for_each_effect(SystemCall& call, ReadMemory* read, F f) {
  tell_effects_before(call, read, [](void* self, const Effect& effect) { (*static_cast<F*>(self))(effect); }, &f);
}
template <class F>
void for_each_effect(const SystemCall& call, int64_t result, ReadMemory* read, F f) {
  tell_effects_after(call, result, read, [](void* self, const Effect& effect) { (*static_cast<F*>(self))(effect); }, &f);
}

}  // namespace weir::rt
