// memory: executed loads and stores, by size and by what kind of memory they go to. The model of a tool that looks at memory.
//
// An access is an operand that is executed: what an instruction both reads and writes is a load and a store. A repeated string
// instruction accesses its operands as often as it repeats, and with a mask, or indices, every element that is selected is an access.
// What the kernel does for a system call is not counted.
//
// The frame is memory of the stack that is addressed by rsp or rbp and a number, push, pop, call and return among it; else the kind is
// that of the mapping at the (lowest) address: see regions.cc. What may come to be written by a signal handler or by another thread is
// counted where it is executed.
#pragma once

#include <map>
#include <tuple>

#include "base/published.h"
#include "instrument/tool.h"
#include "tools/memory/regions.h"

namespace weir::memory {

enum Kind : uint8_t { Frame, Stack, Heap, Static, Code };
constexpr int kinds = 5;
constexpr const char* kind_names[kinds] = {"frame", "stack", "heap", "static", "code"};
constexpr uint32_t state_size = 0;  // Sized::size of xsave and its kin, whose size is known at run time

struct Count {
  uint64_t loads = 0, stores = 0, bytes_read = 0, bytes_written = 0;

  Count& operator+=(const Count& o) {
    loads += o.loads, stores += o.stores, bytes_read += o.bytes_read, bytes_written += o.bytes_written;
    return *this;
  }
  uint64_t accesses() const { return loads + stores; }
};

struct Totals {
  Count all, by_kind[kinds];
  std::map<uint32_t, Count> by_size;
  uint64_t known = 0;              // accesses to addresses that are known before the run,
  uint64_t relative_to_frame = 0;  // … and to the frame

  Totals& operator+=(const Totals& o) {
    all += o.all, known += o.known, relative_to_frame += o.relative_to_frame;
    for (int k = 0; k < kinds; k++) by_kind[k] += o.by_kind[k];
    for (auto& [size, count] : o.by_size) by_size[size] += count;
    return *this;
  }
  void add(const struct Group& group, Kind kind, uint64_t n, uint64_t bytes);
};

// Accesses that are counted together: a counter for each kind of memory, and, with state_size, one each for their bytes.
enum class Addressed : uint8_t { Otherwise, Known, ByFrame };
struct Group {
  uint32_t image, size;
  bool writes;
  Addressed addressed;
  instrument::Counter counter;
  static constexpr uint32_t bytes = runtime::kinds, counters = 2 * runtime::kinds;
};

inline void Totals::add(const Group& g, Kind kind, uint64_t n, uint64_t bytes) {
  Count count = g.writes ? Count{0, n, 0, bytes} : Count{n, 0, bytes, 0};
  for (Count* c : {&all, &by_kind[kind], &by_size[g.size]}) *c += count;
  if (g.addressed == Addressed::Known) known += n;
  if (kind == Frame) relative_to_frame += n;
}

class Memory : public instrument::Tool {
 public:
  std::unique_ptr<Tool> copy() const override { return std::make_unique<Memory>(*this); }
  void plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) override;
  void begin_thread(const instrument::ThreadStart& start) override;
  rt::ToolAnswer answer(const instrument::Asking& thread, const rt::ToolRequest& request) override;
  void collect(const instrument::ThreadData& thread) override;
  void adopt() override { groups_.adopt(); }

  static constexpr std::string_view runtime_part = "memory";
  // Of a process that has ended, by image.
  std::vector<Totals> take(uint32_t pid);

 private:
  class Planner;
  instrument::Counter counter_of(Group group, instrument::Counters& counters);

  Published<Group> groups_;
  std::map<std::tuple<uint32_t, uint32_t, bool, Addressed>, uint32_t> group_at_;  // one more than its number
  Regions regions_;
  std::map<uint32_t, std::vector<Totals>> programs_;  // by pid
};

}  // namespace weir::memory
