// The page faults of other processes, each with the time that the kernel needed for it.
//
// perf has an event for the begin of a fault (PERF_COUNT_SW_PAGE_FAULTS) and two for its end (…_MIN, and …_MAJ of one that read a file):
// the time between the two records of a thread, less what it was off the processor (PERF_RECORD_SWITCH), is the work. The thread itself has
// nothing to do with it. Faults inside system calls are not told: they are part of the call.
//
// A fault that the kernel could not satisfy (SIGSEGV, SIGBUS) has no end, and is none, as in getrusage().
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace weir::process {

struct PageFault {
  pid_t tid = 0;
  uint64_t pc = 0;       // of the instruction
  uint64_t address = 0;  // that it touched
  uint64_t work = 0;     // on the processor, and off it: in cycles of the time stamp counter
  uint64_t waited = 0;
};

class PageFaults {
 public:
  // `wake` is called, in a thread of its own, when there is a lot to read.
  static Result<std::unique_ptr<PageFaults>> create(std::function<void()> wake);
  ~PageFaults();

  // From now on faults of this thread are told, and of all that it creates.
  Result<> watch(pid_t tid);
  // What has ended since it was last asked, in the order of time.
  void read(const std::function<void(const PageFault&)>& take);
  // The kernel had no room for so many records of begins, ends and switches.
  uint64_t lost() const { return lost_; }
  // After a fork: the child is the one that reads.
  Result<> take_over();
  // Nothing more is told, though others have copies of the descriptors.
  void stop();

 private:
  struct Ring {
    int cpu = 0;
    Fd first;  // its event has the ring, all others of the processor write to it
    Mapping pages;
  };
  // One thing that the kernel has told.
  struct Note {
    enum Kind : uint8_t { Begin, End, Out, In } kind;
    pid_t tid;
    uint64_t time;  // nanoseconds
    uint64_t pc, address;
  };
  struct Fault {  // that has not ended
    uint64_t pc, address, begin;
    uint64_t out = 0;  // since when the thread is off the processor; 0: it is on it
    uint64_t off = 0;  // how long it was
  };

  explicit PageFaults(std::function<void()> wake) : wake_(std::move(wake)) {}
  Result<> map(Ring& ring);
  void begin_waking();
  void end_waking();
  void read_notes(Ring& ring);
  void note(const Note& n, const std::function<void(const PageFault&)>& take);
  double cycles_in_a_nanosecond() const;

  std::function<void()> wake_;
  std::vector<Ring> rings_;
  std::vector<Fd> others_;
  size_t ring_size_ = 0;
  Fd ended_;  // an event descriptor: the thread is to end
  std::thread waker_;
  std::vector<Note> notes_;  // that were read, and are not looked at yet
  std::map<pid_t, Fault> open_;
  uint64_t lost_ = 0;
  std::optional<int64_t>
      own_;  // what is between the records and not in a native fault, in nanoseconds; none: not measured yet
  uint64_t first_stamp_ = 0, first_time_ = 0;
};

}  // namespace weir::process
