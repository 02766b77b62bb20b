#include "engine/slots.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/processor.h"
#include "engine/mapping.h"

namespace weir::engine {

namespace {
constexpr AppRange blocks = {{rt::blocks_base}, {rt::blocks_base + rt::blocks_size}};

uint32_t slot_of(AppPc pc) { return static_cast<uint32_t>(static_cast<uint64_t>(pc - blocks.begin) / rt::block_stride); }

struct SlotRange {
  uint32_t first = 0, last = 0;
};
SlotRange slots_of(AppRange range) {
  if (!range.overlaps(blocks)) return {};
  return {slot_of(std::max(range.begin, blocks.begin)), slot_of(std::min(range.end, blocks.end) + -1) + 1};
}
}  // namespace

Result<Slots> Slots::create(const rt::RuntimeHeader& doors, const rt::ToolEntry& tool) {
  Slots slots;
  TRY(slots.memory_, SharedMemory::create("weir-threads", rt::blocks_size, SharedMemory::Writer::Both));
  slots.doors_ = doors;
  slots.tool_ = tool;
  return slots;
}

uint32_t Slots::of_thread(pid_t tid) const {
  for (uint32_t slot = 1; slot < slots_.size(); slot++)
    if (slots_[slot].is_running() && slots_[slot].tid == tid) return slot;
  return 0;
}

uint32_t Slots::reserve(pid_t pid, pid_t tid) {
  for (uint32_t slot = 1; slot < limit_; slot++) {
    if (slot == slots_.size()) slots_.emplace_back();
    if (slots_[slot].state != SlotState::Free || (slot < given_.size() && given_[slot])) continue;
    slots_[slot] = {.state = SlotState::Reserved, .pid = pid, .tid = tid};
    begin_block(slot);
    return slot;
  }
  return 0;
}

void Slots::begin_block(uint32_t slot) {
  rt::ThreadBlock* tb = block(slot);
  tb->self = reinterpret_cast<rt::ThreadBlock*>(address(slot));
  tb->version = rt::abi_version;
  tb->slot = slot;
  tb->spins = rt::max_spins;
  tb->has_wrgsbase = processor().has_fsgsbase;
  tb->enter_link = doors_.enter_link;
  tb->enter_indirect = doors_.enter_indirect;
  tb->enter_syscall = doors_.enter_syscall;
  tb->enter_guard = doors_.enter_guard;
  tb->enter_routine = doors_.enter_routine;
  tb->enter_probe = doors_.enter_probe;
  std::ranges::copy(doors_.enter_light, tb->enter_light);
  tb->hooks = tool_.hooks;
  tb->awaited.returned = tb->awaited.moved = ~uint64_t{0};
  std::ranges::copy(tool_.light, tb->light);
  tb->actions = reinterpret_cast<rt::KernelSigaction*>(address(slot) + offsetof(rt::ThreadBlock, own_actions));
}

Slot Slots::run(uint32_t slot, pid_t pid, pid_t tid) {
  Slot reserved = std::exchange(slots_[slot], {.state = SlotState::Running, .pid = pid, .tid = tid});
  block(slot)->pid = static_cast<uint32_t>(pid);
  block(slot)->tid = static_cast<uint32_t>(tid);
  return reserved;
}

void Slots::end_thread(uint32_t slot) {
  slots_[slot].state = SlotState::Ending;
  ending_.push_back(slot);
}

std::vector<uint32_t> Slots::take_ended() {
  auto is_gone = [&](uint32_t slot) {
    return syscall(SYS_tgkill, slots_[slot].pid, slots_[slot].tid, 0) && errno == ESRCH;
  };
  std::vector<uint32_t> gone;
  std::ranges::copy_if(ending_, std::back_inserter(gone), is_gone);
  std::erase_if(ending_, [&](uint32_t slot) { return std::ranges::find(gone, slot) != gone.end(); });
  return gone;
}

void Slots::free(uint32_t slot) {
  madvise(block(slot), rt::block_stride, MADV_REMOVE);
  slots_[slot] = {};
}

void Slots::retain(uint32_t slot) {
  slots_[slot] = {.state = SlotState::Ending};
  retained_.push_back(slot);
}

void Slots::adopt(uint32_t slot, pid_t tid) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  slots_[slot].tid = tid;
}

std::vector<AppRange> Slots::takings() const {
  std::vector<AppRange> all;
  for (uint32_t slot = 1; slot < slots_.size(); slot++) {
    const rt::Range& taking = block(slot)->taking;
    AppPc end{__atomic_load_n(&taking.end, __ATOMIC_ACQUIRE)}, begin{__atomic_load_n(&taking.begin, __ATOMIC_RELAXED)};
    if (slots_[slot].is_running() && begin < end) all.push_back({begin, end});
  }
  return all;
}

bool Slots::can_give(AppRange range) const {
  SlotRange wanted = slots_of(range);
  for (uint32_t slot = wanted.first; slot < std::min<size_t>(wanted.last, slots_.size()); slot++)
    if (slot == 0 || slots_[slot].state != SlotState::Free) return false;
  return true;
}

void Slots::give(AppRange range) {
  SlotRange wanted = slots_of(range);
  given_.resize(rt::max_slots);
  std::fill(given_.begin() + wanted.first, given_.begin() + wanted.last, true);
}

}  // namespace weir::engine
