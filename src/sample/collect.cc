// From the slots of a process to its threads.

#include <algorithm>
#include <fstream>

#include "base/index_table.h"
#include "sample/sampler.h"
#include "symbols/written_names.h"

namespace weir::sample {

Thread collect_thread(const rt::SampleSlot& slot, std::span<const TreeNode> nodes, const Code& code) {
  Thread t;
  t.tid = slot.tid;
  t.lost = slot.lost;
  t.late = slot.late;
  t.counts = slot.trace.counts;
  std::ranges::copy(slot.differences, t.differences);
  t.nodes.resize(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); i++) {
    const TreeNode from = nodes[i];
    Node& to = t.nodes[i];
    to.samples = from.samples;
    if (i < root_count) {
      to.end = static_cast<rt::Stop>(std::min<uint32_t>(i, static_cast<uint32_t>(rt::Stop::Count)));
      continue;
    }
    to.kind = i == full_node ? Node::Full : from.kind == TreeNode::Leaf ? Node::Leaf : Node::Caller;
    if (to.kind == Node::Full) continue;
    to.parent = from.parent < i ? from.parent : full_node;
    auto [image, offset] = code.find(from.address - (to.kind == Node::Caller));
    to.image = image;
    to.offset = offset + (to.kind == Node::Caller);
  }
  return t;
}

// While they live: names cannot be asked of the dead.
void Sampler::name_threads(Process& p) {
  if (p.names.empty()) {
    std::ifstream file(fmt::format("/proc/{}/comm", p.pid));
    if (std::string name; std::getline(file, name)) p.names[static_cast<uint32_t>(p.pid)] = name;
  }
  for (auto [place, tid] : slots_of(p)) {
    if (p.names.contains(tid)) continue;
    std::ifstream file(fmt::format("/proc/{}/task/{}/comm", p.pid, tid));
    if (std::string name; std::getline(file, name)) p.names[tid] = name;
  }
}

// The files that it leaves for perf, with the names of functions that it writes while it runs: most often they are gone when it is. What was
// not written to `since` then is of an earlier process with the same number.
void Sampler::find_written_names(Process& p, int64_t since) {
  find_perf_map(p, since);
  if (!p.jit_dump && has_written_code(p)) p.jit_dump = symbols::find_jit_dump(p.pid, since);
}

void Sampler::find_perf_map(Process& p, int64_t since) {
  if (!p.perf_map && has_written_code(p)) p.perf_map = process::open_perf_map(p.pid, p.own_pid, since);
}

bool Sampler::has_written_code(const Process& p) const { return std::ranges::any_of(p.code.names(), symbols::is_written); }

void merge(Thread& into, const Thread& from) {
  auto key = [](const Node& n) { return hash_of(uint64_t{n.parent} << 32 | n.image, n.offset * 8 + n.kind); };
  auto same = [](const Node& a, const Node& b) {
    return a.kind == b.kind && a.end == b.end && a.parent == b.parent && a.image == b.image && a.offset == b.offset;
  };
  IndexTable known;
  auto add = [&](const Node& n) {
    auto next = static_cast<uint32_t>(into.nodes.size());
    uint32_t found = known.find_or_add(key(n), next, [&](uint32_t i) { return same(into.nodes[i], n); });
    if (found == next) into.nodes.push_back(n);
    else into.nodes[found].samples += n.samples;
    return found;
  };
  for (uint32_t i = 0; i < into.nodes.size(); i++) known.find_or_add(key(into.nodes[i]), i, [](uint32_t) { return false; });
  std::vector<uint32_t> number(from.nodes.size());
  for (size_t i = 0; i < from.nodes.size(); i++) {
    Node n = from.nodes[i];
    if (n.parent != none) n.parent = number[n.parent];
    number[i] = add(n);
  }
  auto* sums = reinterpret_cast<uint64_t*>(&into.counts);
  auto* more = reinterpret_cast<const uint64_t*>(&from.counts);
  static_assert(sizeof(rt::Counts) % sizeof(uint64_t) == 0);
  for (size_t i = 0; i < sizeof(rt::Counts) / sizeof(uint64_t); i++) sums[i] += more[i];
  for (size_t i = 0; i < std::size(into.differences); i++) into.differences[i] += from.differences[i];
  into.lost += from.lost, into.late += from.late;
}

// A slot that is nobody's has none.
void Sampler::take_records() {
  for (uint32_t place = 1; place < rt::max_sample_slots; place++)
    if (uint64_t key = __atomic_load_n(&shared_->control().keys[place], __ATOMIC_ACQUIRE);
        key != rt::free_key && key != rt::used_key && !retired_.contains(place))
      shared_->tree(place).take(rt::records_of(shared_->slot(place)));
}

void Sampler::collect_slot(Process& p, uint32_t place, uint32_t tid) {
  constexpr size_t most_threads = 1000;  // that are kept apart
  rt::SampleSlot& slot = shared_->slot(place);
  Thread t;
  if (__atomic_load_n(&slot.is_ready, __ATOMIC_ACQUIRE)) {
    CallTree tree = shared_->tree(place);
    tree.take(rt::records_of(slot));
    t = collect_thread(slot, {tree.nodes(), tree.size()}, p.code);
    t.lost += tree.damaged();
  }
  t.tid = tid;
  wake(p, slot, tid, t);
  if (!t.nodes.empty()) {
    auto name = p.names.find(t.tid);
    if (name == p.names.end()) name = p.names.find(static_cast<uint32_t>(p.pid));  // a new thread is called as its creator
    t.name = name != p.names.end() ? name->second : "";
    std::vector<Thread>& threads = p.program.threads;
    if (threads.size() < most_threads) {
      threads.push_back(std::move(t));
    } else {
      Thread& others = threads.back();
      if (others.tid) others.tid = 0, others.name = fmt::format("the {}th thread and later ones", most_threads);
      merge(others, t);
    }
  }
  retired_.insert(place);
  guardian_is_old_ = true;
}

std::vector<std::pair<uint32_t, uint32_t>> Sampler::slots_of(const Process& p) const {
  std::vector<std::pair<uint32_t, uint32_t>> slots;
  for (uint32_t place = 1; place < rt::max_sample_slots; place++)
    if (uint64_t key = __atomic_load_n(&shared_->control().keys[place], __ATOMIC_ACQUIRE);
        key >> 32 == p.index + 1 && !retired_.contains(place))
      slots.push_back({place, static_cast<uint32_t>(key)});
  return slots;
}

// Those of threads that have ended are needed for others. (Who has a slot now, and is not there afterwards, has ended.)
void Sampler::collect_ended_threads(Process& p) {
  constexpr uint32_t no_id = 1u << 31;
  auto slots = slots_of(p);
  std::set<uint32_t> alive;
  bool is_elsewhere = process::own_id(p.pid) != p.pid;  // in another namespace
  for (pid_t tid : threads_of(p.pid)) alive.insert(static_cast<uint32_t>(is_elsewhere ? process::own_id(tid) : tid));
  if (alive.empty()) return;
  for (auto [place, tid] : slots)
    if (!(tid & no_id) && !alive.contains(tid) && !shared_->slot(place).busy) collect_slot(p, place, tid);
}

void Sampler::collect(Process& p) {
  p.program.ended = process::microseconds_now();
  images_->wait_until_opened();
  p.code.renew(p.index, *shared_);
  p.program.images = p.code.names();
  p.program.files = p.code.files();
  find_written_names(p, p.program.started);
  for (auto [place, tid] : slots_of(p)) collect_slot(p, place, tid);
  std::vector<Thread>& threads = p.program.threads;
  std::ranges::sort(threads, {}, [](const Thread& t) { return t.tid ? t.tid : UINT32_MAX; });
  if (uint64_t lost = shared_->control().processes[p.index].lost) {
    if (threads.empty()) threads.emplace_back().tid = static_cast<uint32_t>(p.pid);
    threads[0].lost += lost;
  }
  if (!p.why_unsampled.empty()) p.program.notes.push_back(p.why_unsampled);
  else if (p.is_blind && !p.code.is_complete() && !threads.empty())
    p.program.notes.push_back("time in the kernel is not in the samples: weir was still reading its code when it ended");
  else if (p.is_blind && (!threads.empty() || p.pid == main_pid_) && p.program.ended_by != "exec")
    p.program.notes.push_back(
        "time in the kernel is not in the samples, as its execve was not found, and could not be guarded");
  p.program.perf_map = p.perf_map.release();
  p.program.jit_dump = p.jit_dump.release();
  programs_.push_back(std::move(p.program));
}

}  // namespace weir::sample
