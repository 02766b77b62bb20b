// Page faults of the program: to which instruction they belong, and what they took.
//
// The kernel tells of them (process/page_faults.h), in records that Weir reads now and then. Their places in the code cache are looked up before
// anything there is used again, and before their threads are collected. What touches Weir's own memory (the table, thread blocks, the code cache) is
// not the program's, and neither is what the runtime does. The figures are in the thread blocks: so the guardian has them, too.

#include "engine/server.h"

#include <linux/futex.h>
#include <sys/syscall.h>

namespace weir::engine {

namespace {
// The runtime, and what it reads. (What else is Weir's, spaces know.)
bool is_of_ours(AppPc address) { return address.value >= rt::runtime_base && address.value < rt::blocks_base; }
}  // namespace

void Server::watch_faults(std::span<const pid_t> tids) {
  if (!options_.page_faults || !no_faults_.empty()) return;
  if (!faults_) {
    auto faults = process::PageFaults::create([this] {
      __atomic_store_n(&has_faults_, true, __ATOMIC_SEQ_CST);
      __atomic_fetch_add(&control()->doorbell, 1, __ATOMIC_SEQ_CST);
      syscall(SYS_futex, &control()->doorbell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    });
    if (!faults) return leave_faults(faults.error().what);
    faults_ = std::move(*faults);
  }
  for (pid_t tid : tids)
    if (auto watched = faults_->watch(tid); !watched && !process::has_ended(tid)) return leave_faults(watched.error().what);
}

void Server::leave_faults(const std::string& why) {
  no_faults_ = why;
  if (faults_) faults_->stop();
  faults_.reset();
}

void Server::take_faults_over() {
  if (!faults_) return;
  if (auto over = faults_->take_over(); !over) leave_faults(over.error().what);
}

// Null: it is none of the program's.
rt::FaultRecord* Server::fault_record(uint32_t slot, const Process& p, CachePc pc) {
  Space::Place at = p.space->where(pc);
  if (at.place == rt::Place::NotCache || !at.app) return nullptr;
  auto& table = *reinterpret_cast<rt::FaultTable*>(memory_of(slot) + rt::faults_offset);
  Slot& s = slots_[slot];
  if (uint32_t* known = s.faults.find(at.app)) return &table.records[*known];
  if (s.fault_records + 1 >= rt::max_fault_records) return &table.records[0];
  uint32_t number = s.faults[at.app] = ++s.fault_records;
  table.records[number].pc = at.app.value;
  __atomic_store_n(&table.count, number + 1, __ATOMIC_RELEASE);
  return &table.records[number];
}

void Server::take_faults() {
  if (!faults_) return;
  struct {  // of the last one: the next is often alike
    pid_t tid = 0;
    uint32_t slot = 0;
    const Process* process = nullptr;
    uint64_t pc = 0;
    rt::FaultRecord* record = nullptr;
  } last;
  faults_->read([&](const process::PageFault& f) {
    if (f.tid != last.tid) {
      last = {f.tid, slots_.of_thread(f.tid)};
      last.process = last.slot ? process_of(last.slot) : nullptr;
    }
    if (!last.process || last.process->left_alone || !last.process->space) return;
    AppPc address{f.address};
    if (is_of_ours(address) || last.process->space->is_own(address)) return;
    if (f.pc != last.pc) last.pc = f.pc, last.record = fault_record(last.slot, *last.process, {f.pc});
    if (!last.record) return;
    last.record->faults++;
    last.record->time += f.work, last.record->waited += f.waited;
  });
  stats_.lost_faults = faults_->lost();
}

}  // namespace weir::engine
