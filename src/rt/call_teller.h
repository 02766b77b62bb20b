// The words that say what a system call does. Each is told in the stage that it belongs to: `reads` before the call, `fills` before it
// as room and after it as what was written. So a call is described once, for both stages.
#pragma once

#include "rt/call_effects.h"

namespace weir::rt {

// When something is written.
enum class When : uint8_t {
  Success,    // the result is no error
  Positive,   // it is more than zero
  Interrupt,  // it is EINTR
  Done,       // it is EINTR, or no error
  Always,
};

constexpr int no_arg = 7;  // as an argument's number

class Teller {
 public:
  Teller(SystemCall& call, ReadMemory* read, TellEffect* tell, void* self)
      : call_(call), read_(read), tell_(tell), self_(self), before_(true) {}
  Teller(SystemCall& call, int64_t result, ReadMemory* read, TellEffect* tell, void* self)
      : call_(call), read_(read), tell_(tell), self_(self), before_(false), result_(result) {}

  uint64_t number() const { return call_.number; }
  uint64_t arg(int i) const { return call_.arguments[i]; }
  int32_t int_arg(int i) const { return int32_t(call_.arguments[i]); }
  uint32_t uint_arg(int i) const { return uint32_t(call_.arguments[i]); }
  bool is_before() const { return before_; }
  bool is_after() const { return !before_; }
  bool has_failed() const { return result_ < 0 && result_ > -4096; }
  int64_t error() const { return has_failed() ? -result_ : 0; }
  // Of what is counted by the result. Before the call: nothing.
  uint64_t result() const { return has_failed() ? 0 : uint64_t(result_); }
  bool holds(When when) const;

  // The first n arguments only are looked at; those of a mask.
  void takes(int n) { takes_only((1 << n) - 1); }
  void takes_only(int mask) { call_.used &= uint8_t(mask); }

  // `i` is the argument that leads to [begin, begin + size).
  void reads(int i, uint64_t begin, uint64_t size) { before(Use::Read, i, begin, size); }
  void copies(int i, uint64_t begin, uint64_t size) { before(Use::Copied, i, begin, size); }
  void writes(int i, uint64_t begin, uint64_t size, When when = When::Success) { fills(i, begin, size, size, when); }
  void updates(int i, uint64_t begin, uint64_t size, When when = When::Success);
  // Room for `room` bytes, of which `written` are; (more than the room are never).
  void fills(int i, uint64_t begin, uint64_t room, uint64_t written, When when = When::Success);
  void text(int i, uint64_t begin, uint64_t limit = 4096);  // ends with a zero; the kernel looks no further than `limit`
  void texts(int i, uint64_t array);                        // an array of pointers to texts, which ends with a null
  void later(int i, uint64_t begin, uint64_t size) { after(Use::Later, i, begin, size); }
  void remaps(int i, uint64_t begin, uint64_t size) { after(Use::Remapped, i, begin, size); }
  void unknown(int i, uint64_t begin = 0, uint64_t size = 0) { tell(Use::Unknown, i, begin, size); }

  void before(Use use, int i, uint64_t begin, uint64_t size) {
    if (before_) tell(use, i, begin, size);
  }
  void after(Use use, int i, uint64_t begin, uint64_t size, When when = When::Success) {
    if (!before_ && holds(when)) tell(use, i, begin, size);
  }

  // False: it cannot be read.
  bool load(uint64_t from, void* to, uint64_t size) const { return read_(reinterpret_cast<const void*>(from), to, size); }
  // Zero where it cannot be read.
  template <class T>
  T load(uint64_t from) const {
    T value{};
    if (!load(from, &value, sizeof value)) value = T{};
    return value;
  }
  uint32_t load32(uint64_t from) const { return load<uint32_t>(from); }
  uint64_t load64(uint64_t from) const { return load<uint64_t>(from); }
  // Of a text with its zero, or up to and with the first byte that cannot be read; `limit` at most.
  uint64_t text_size(uint64_t begin, uint64_t limit) const;
  // The 32 bits at `from`, as they were before the call: in `kept[k]` since.
  uint32_t kept32(int k, uint64_t from);
  uint64_t& kept(int k) { return call_.kept[k]; }

 private:
  void tell(Use use, int i, uint64_t begin, uint64_t size);

  SystemCall& call_;  // (after the call, only what it kept is read)
  ReadMemory* read_;
  TellEffect* tell_;
  void* self_;
  bool before_;
  int64_t result_ = 0;
};

using CallFunction = void(Teller& t);

// What several calls have in common.
enum class Direction { In, Out };  // into the call; out of it, into memory
// An array of `count` struct iovec at `array` and what they lead to: all of it before the call, the first `done` bytes after it.
void tell_vectors(Teller& t, int i, uint64_t array, uint64_t count, Direction direction, uint64_t done);
// A struct sockaddr that the kernel reads; one that it writes, whose length it finds at `length` and changes.
void tell_address(Teller& t, int i, uint64_t address, uint64_t size);
void tell_address_out(Teller& t, int i, uint64_t address, int length_argument, uint64_t length, int k);

}  // namespace weir::rt
