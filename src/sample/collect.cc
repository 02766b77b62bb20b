// From the slots of a process to its threads.

#include <fstream>

#include "sample/sampler.h"

namespace weir::sample {

Thread collect_thread(const rt::SampleSlot& slot, const Code& code) {
  Thread t;
  t.tid = slot.tid;
  t.lost = slot.lost;
  t.late = slot.late;
  t.counts = slot.trace.counts;
  std::ranges::copy(slot.differences, t.differences);
  const auto* head = reinterpret_cast<const rt::TreeHead*>(reinterpret_cast<const std::byte*>(&slot) + rt::tree_offset);
  const auto* nodes = reinterpret_cast<const rt::TreeNode*>(head + 1);
  uint32_t size = std::min(__atomic_load_n(&head->size, __ATOMIC_ACQUIRE), rt::tree_capacity);
  t.nodes.resize(size);
  for (uint32_t i = 0; i < size; i++) {
    const rt::TreeNode from = nodes[i];
    Node& to = t.nodes[i];
    to.samples = from.samples;
    if (i < rt::root_count) {
      to.end = static_cast<rt::Stop>(std::min<uint32_t>(i, static_cast<uint32_t>(rt::Stop::Count)));
      continue;
    }
    to.kind = i == rt::full_node ? Node::Full : from.kind == rt::TreeNode::Leaf ? Node::Leaf : Node::Caller;
    if (to.kind == Node::Full) continue;
    to.parent = from.parent < i ? from.parent : rt::full_node;
    auto [image, offset] = code.find(from.address - (to.kind == Node::Caller));
    to.image = image;
    to.offset = offset + (to.kind == Node::Caller);
  }
  return t;
}

// While they live: names cannot be asked of the dead.
void Sampler::name_threads(Process& p) {
  for (uint32_t place = 1; place < rt::max_sample_slots; place++) {
    uint64_t key = shared_->control().keys[place];
    if (key >> 32 != p.index + 1 || p.names.contains(static_cast<uint32_t>(key))) continue;
    auto tid = static_cast<uint32_t>(key);
    std::ifstream file(fmt::format("/proc/{}/task/{}/comm", p.pid, tid));
    if (std::string name; std::getline(file, name)) p.names[tid] = name;
  }
}

void Sampler::collect(Process& p) {
  p.program.ended = process::microseconds_now();
  p.program.images = p.code.names();
  if (!p.perf_map) p.perf_map = process::open_perf_map(p.pid, p.pid, p.program.started);
  rt::SampleControl& control = shared_->control();
  for (uint32_t place = 1; place < rt::max_sample_slots; place++) {
    uint64_t key = __atomic_load_n(&control.keys[place], __ATOMIC_ACQUIRE);
    if (key >> 32 != p.index + 1) continue;
    const rt::SampleSlot& slot = shared_->slot(place);
    if (__atomic_load_n(&slot.is_ready, __ATOMIC_ACQUIRE)) {
      Thread t = collect_thread(slot, p.code);
      auto name = p.names.find(t.tid);
      t.name = name != p.names.end() ? name->second : "";
      p.program.threads.push_back(std::move(t));
    }
    shared_->free(place);
  }
  if (uint64_t lost = control.processes[p.index].lost) {
    if (p.program.threads.empty()) p.program.threads.emplace_back().tid = static_cast<uint32_t>(p.pid);
    p.program.threads[0].lost += lost;
  }
  p.program.perf_map = p.perf_map.release();
  programs_.push_back(std::move(p.program));
}

}  // namespace weir::sample
