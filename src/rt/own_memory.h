// Reading the target's own memory, from inside it, where the address may be wrong.
//
// A thread's stacks are there as long as it runs on them, and are read directly. All else is asked of the kernel, which refuses where a
// load would fault: so nobody needs to handle SIGSEGV, which is the program's.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::rt {

// A stack of a thread: a mapping of its own, [low, high). It may grow down to `limit`.
struct KnownStack {
  uint64_t limit, low, high;
};
constexpr uint32_t known_stacks = 4;

// By the kernel; false: not all of it can be read.
bool copy_from(uint32_t pid, uint64_t address, void* to, uint64_t size);

class OwnMemory {
 public:
  // `pid` is this process; 0: no system calls are allowed, and only known stacks can be read.
  OwnMemory(const KnownStack* stacks, uint32_t count, uint64_t sp, uint32_t pid)
      : stacks_(stacks), count_(count < known_stacks ? count : known_stacks), pid_(pid) {
    constexpr uint64_t red_zone = 128;
    for (uint32_t i = 0; i < count_; i++) {
      const KnownStack& s = stacks_[i];
      if (sp < s.limit || sp + 8 > s.high) continue;
      begin_ = sp - red_zone < s.limit ? s.limit : sp - red_zone;
      room_ = s.high - begin_ - 7;
    }
  }

  bool is_known() const { return room_ != 0; }

  [[gnu::always_inline]] bool read(uint64_t address, uint64_t& word) const {
    if (address - begin_ < room_) [[likely]] {
      word = *reinterpret_cast<const uint64_t*>(address);
      return true;
    }
    return read_elsewhere(address, word);
  }

 private:
  [[gnu::noinline]] bool read_elsewhere(uint64_t address, uint64_t& word) const {
    for (uint32_t i = 0; i < count_; i++) {
      const KnownStack& s = stacks_[i];
      if (address < s.low || address > s.high - 8) continue;
      word = *reinterpret_cast<const uint64_t*>(address);
      return true;
    }
    if (!pid_) return false;
    // A few words at a time: stacks are read upward.
    if (address < copied_ || address + 8 > copied_ + copied_size_) {
      copied_ = address & ~uint64_t{7}, copied_size_ = sizeof words_;
      constexpr uint64_t page = 4096;
      if (copied_ % page + copied_size_ > page) copied_size_ = page - copied_ % page;
      if (address + 8 > copied_ + copied_size_) return copied_size_ = 0, copy_from(pid_, address, &word, 8);
      if (!copy_from(pid_, copied_, words_, copied_size_)) return copied_size_ = 0, false;
    }
    __builtin_memcpy(&word, reinterpret_cast<const char*>(words_) + (address - copied_), 8);
    return true;
  }

  const KnownStack* stacks_;
  uint32_t count_, pid_;
  uint64_t begin_ = 0, room_ = 0;  // the stack that the thread runs on, from there up: where a word may begin
  mutable uint64_t copied_ = 0, copied_size_ = 0;
  mutable uint64_t words_[32];
};

}  // namespace weir::rt
