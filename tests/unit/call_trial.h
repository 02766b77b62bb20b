// The kernel as the oracle of rt/call_effects.h: a case makes one system call, with its memory in buffers that end before a page that
// is not there.
//
//     told   what the table tells of the call
//     true   EFAULT, and bytes that have changed
//
// Each case runs in a child of its own, several times: with its buffers ending where the told ranges end, filled with one pattern and
// with another, so that every byte that is written changes in one of them; with each buffer in turn a little too high; with each in
// turn at null. The call must fail exactly where a told range is not there, and exactly those bytes change that are told as written.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weir::rt {

constexpr int max_buffers = 24;
constexpr uint64_t room = 2 * 4096;  // of a buffer, before its guard page

// How the buffers of a run lie.
struct Layout {
  uint8_t pattern = 0x5a;
  int moved = -1, nulled = -1;      // which buffer is too high, which is null
  uint32_t ends[max_buffers] = {};  // of what is told of each, by its begin; 0: not known yet, the buffer is all of it
};

// What a run has found out, in memory shared with the parent.
struct Report {
  bool called, finished;
  int64_t result;
  int buffers;
  struct {
    uint32_t size, end;  // `end`: of what is told before the call
    bool is_patterned, may_fault_late, null_is_other, has_holes;
    uint8_t changed[room], told[room], excused[room];
  } of[max_buffers];
  bool crosses;  // something is told to be where nothing is
  bool is_unknown;
  char why[200];
};

class Trial {
 public:
  Trial(const Layout& layout, Report& report) : layout_(layout), report_(report) {}

  // Addresses of new buffers: `out` is filled with the pattern, `in` has contents. `step` is how far it is moved to be too high: what
  // it must be aligned to.
  uint64_t out(uint64_t size, uint64_t step = 1) { return add(nullptr, size, step); }
  uint64_t bytes(const void* bytes, uint64_t size, uint64_t step = 1) { return add(bytes, size, step); }
  uint64_t in(const std::string& text) { return add(text.c_str(), text.size() + 1, 1); }
  template <class T>
  uint64_t in(const T& value, uint64_t step = 1) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    return add(&value, sizeof value, step);
  }
  template <class T>
  uint64_t in(const std::vector<T>& values, uint64_t step = 1) {
    return add(values.data(), values.size() * sizeof(T), step);
  }

  // Of the last buffer: the kernel does not mind when it is not there (or minds it later).
  void is_not_missed() { report_.of[report_.buffers - 1].may_fault_late = true; }
  // … it minds a null, with another error than EFAULT; or means something else by it.
  void null_is_other() { report_.of[report_.buffers - 1].null_is_other = true; }

  // … the kernel leaves holes between records, which are told with them, as for Memcheck.
  void has_holes() { report_.of[report_.buffers - 1].has_holes = true; }

  int64_t call(uint64_t number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0, uint64_t e = 0,
               uint64_t f = 0);

 private:
  uint64_t add(const void* bytes, uint64_t size, uint64_t step);

  const Layout& layout_;
  Report& report_;
  uint64_t guards_[max_buffers], begins_[max_buffers];
};

struct Case {
  int number;
  const char* what;
  void (*run)(Trial&);
  int64_t result = 0;           // an error that it must end with; 0: it succeeds
  bool may_be_missing = false;  // EINVAL says that the kernel was built without it
};

std::vector<Case> file_cases(), name_cases(), socket_cases(), process_cases(), shared_cases(), device_cases();

}  // namespace weir::rt
