// The kernel's perf events: what interrupts threads, and what tells of new processes, programs and code.
//
// All are opened by Weir for threads of the target, which has no descriptor of ours; closing them ends it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "rt/sample.h"

namespace weir::sample {

// An event that is counted.
struct Event {
  uint32_t type = 0;
  uint64_t config = 0;
  uint64_t period = 0;
  bool excludes_kernel = false;
};
std::vector<std::string> event_names();
// None: there is no such event.
std::optional<Event> find_event(const std::string& name);
// The CPU time of a thread, in nanoseconds; and its waits.
Event task_clock(double rate);
Event context_switches();

// Interrupts the thread, and threads that it creates, but no other processes, with SIGTRAP and this word. It begins when enable() says so,
// and ends with the thread's program.
Result<Fd> open_event(pid_t tid, const Event& event, uint64_t word);
// The same before each execution of an instruction.
Result<Fd> open_breakpoint(pid_t tid, uint64_t address, uint64_t word);
void enable(const Fd& event);
// How much of it there was.
uint64_t count_of(const Fd& event);
// At once, though another process may have a copy of the descriptor for a moment.
void close_event(Fd& event);

// Can this user have the event? Adapts it: a user who may not look into the kernel is not interrupted there.
Result<> try_event(Event& event);

// Tells of what threads, and all that they create, do. A ring of records a processor.
class Watch {
 public:
  struct Record {
    enum Kind { Forked, Executed, Mapped, Lost } kind;
    pid_t pid = 0, parent = 0;  // parent: of a new process
  };
  // Watches one more thread.
  Result<> add(pid_t tid);
  std::vector<Record> read();
  // To be polled.
  std::vector<int> descriptors() const;

 private:
  struct Ring {
    Fd first;
    Mapping pages;
    int cpu = 0;
  };
  std::vector<Ring> rings_;
  std::vector<Fd> others_;
};

}  // namespace weir::sample
