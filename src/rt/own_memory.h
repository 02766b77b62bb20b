// Reading the target's own memory, from inside it, where the address may be wrong.
//
// A thread's own stack is there as long as the thread, and is read directly. All else (stacks of coroutines, which come and go, too) is asked
// of the kernel, which refuses where a load would fault: so nobody needs to handle SIGSEGV, which is the program's.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::rt {

// The stack that a thread was given: [low, high). It may grow down to `limit`. high 0: not known.
struct KnownStack {
  uint64_t limit, low, high;
};

// By the kernel; false: not all of it can be read.
bool copy_from(uint32_t tid, uint64_t address, void* to, uint64_t size);

class OwnMemory {
 public:
  // `tid` is this thread; 0: no system calls are allowed, and only the thread's own stack can be read.
  OwnMemory(const KnownStack& own, uint64_t sp, uint32_t tid) : tid_(tid) {
    constexpr uint64_t red_zone = 128;
    if (!own.high) return;
    // What lies below a stack pointer on it may not be there yet.
    bool is_on_it = sp >= own.limit && sp + 8 <= own.high;
    begin_ = is_on_it ? (sp - red_zone < own.limit ? own.limit : sp - red_zone) : own.low;
    room_ = own.high - begin_ - 7;
  }

  uint32_t copies() const { return copies_; }  // that the kernel has made

  [[gnu::always_inline]] bool read(uint64_t address, uint64_t& word) const {
    if (address - begin_ < room_) [[likely]] {
      word = *reinterpret_cast<const uint64_t*>(address);
      return true;
    }
    return tid_ && copy(address, word);
  }

 private:
  // Some words at a time: stacks are read upward.
  [[gnu::noinline]] bool copy(uint64_t address, uint64_t& word) const {
    if (address < copied_ || address + 8 > copied_ + copied_size_) {
      constexpr uint64_t page = 4096;
      copies_++;
      copied_ = address, copied_size_ = page - address % page;
      if (copied_size_ > sizeof words_) copied_size_ = sizeof words_;
      if (copied_size_ < 8) return copied_size_ = 0, copy_from(tid_, address, &word, 8);
      if (!copy_from(tid_, copied_, words_, copied_size_)) return copied_size_ = 0, false;
    }
    __builtin_memcpy(&word, reinterpret_cast<const char*>(words_) + (address - copied_), 8);
    return true;
  }

  uint32_t tid_;
  uint64_t begin_ = 0, room_ = 0;  // where a word of the thread's own stack may begin
  mutable uint64_t copied_ = 0, copied_size_ = 0;
  mutable uint32_t copies_ = 0;
  mutable uint64_t words_[128];
};

}  // namespace weir::rt
