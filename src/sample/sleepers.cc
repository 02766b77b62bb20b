// Wall time of threads that wait, and are not woken before the run ends. A thread that waits cannot be interrupted without disturbing its
// system call. Mostly it tells itself how long it has waited, when it comes back; for those that do not, Weir looks where they are: a thread in
// the kernel has a stack that does not change.

#include <x86intrin.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "sample/sampler.h"

namespace weir::sample {

namespace {

// The memory of another process, as the walker reads it.
class RemoteMemory {
 public:
  explicit RemoteMemory(pid_t pid) : pid_(pid) {}
  bool read(uint64_t address, uint64_t& word) {
    if (address < begin_ || address + sizeof word > begin_ + size_) {
      begin_ = address;
      size_ = process::read(pid_, address, std::as_writable_bytes(std::span(words_)));
    }
    if (address + sizeof word > begin_ + size_) return false;
    memcpy(&word, reinterpret_cast<const std::byte*>(words_) + (address - begin_), sizeof word);
    return true;
  }

 private:
  pid_t pid_;
  uint64_t begin_ = 0, size_ = 0;
  uint64_t words_[128];
};

// Where a thread is in the kernel, and the stack pointer that it came with; none: it runs.
std::optional<rt::State> where_asleep(pid_t pid, pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  std::string line, word, last, last_but_one;
  std::getline(file, line);
  if (line.empty() || line == "running") return {};
  for (std::istringstream words(line); words >> word; last = word) last_but_one = last;
  return rt::State{strtoull(last.c_str(), nullptr, 16), strtoull(last_but_one.c_str(), nullptr, 16), 0, true, nullptr};
}

}  // namespace

void Sampler::look_at_sleepers(Process& p) {
  constexpr uint32_t frames = 4096, nodes = 8192;
  for (pid_t tid : threads_of(p.pid)) {
    auto own = static_cast<uint32_t>(process::own_id(tid));
    uint32_t place = own ? shared_->slot_of(rt::sample_key(p.index, own)) : 0;
    if (!place || retired_.contains(place)) continue;
    rt::SampleSlot& slot = shared_->slot(place);
    if (!slot.last) slot.last = p.parent || main_pid_ ? __rdtsc() : began_;
    auto at = where_asleep(p.pid, tid);
    if (!at) continue;
    Sleeper& sleeper = p.sleepers[own];
    if (sleeper.since == slot.last && sleeper.sp == at->sp && sleeper.path.tid) continue;
    rt::SampleSlot walked = {};
    std::vector<uint64_t> memory(rt::Trace::bytes_for(frames) / 8), words(rt::words_of(frames)),
        tree(CallTree::bytes_for(nodes, frames) / 8 + 1);
    walked.tid = own;
    walked.trace = rt::Trace::make(memory.data(), frames);
    RemoteMemory remote(p.pid);
    auto ranges = p.code.local(*shared_);
    rt::Sample sample =
        rt::restore(walked.trace, {ranges.data(), static_cast<uint32_t>(ranges.size()), 1}, {}, *at, options_.walk, remote);
    rt::Records records(walked.queue, words.data(), words.size());
    records.put(sample, at->pc, 1);
    CallTree paths = CallTree::make(tree.data(), nodes, frames);
    paths.take(records);
    sleeper = {slot.last, at->sp, collect_thread(walked, {paths.nodes(), paths.size()}, p.code)};
  }
}

// What it has waited since it was last sampled: how many samples that is.
void Sampler::wake(const Process& p, const rt::SampleSlot& slot, uint32_t tid, Thread& thread) const {
  auto at = p.sleepers.find(tid);
  if (at == p.sleepers.end() || at->second.since != slot.last) return;
  uint64_t now = __rdtsc(), since = std::clamp(slot.last, began_, now);  // (the program can write there)
  uint64_t periods = (now - since) / period_;
  Thread path = at->second.path;
  for (Node& n : path.nodes) n.samples *= periods;
  rt::Counts& c = path.counts;
  for (uint64_t* sum : {&c.samples, &c.frames, &c.guessed, &c.by_frame_pointer}) *sum *= periods;
  for (uint64_t& sum : c.ended) sum *= periods;
  if (periods) merge(thread, path);
}

}  // namespace weir::sample
