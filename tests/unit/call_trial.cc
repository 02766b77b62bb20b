#include "call_trial.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rt/call_effects.h"

namespace weir::rt {

namespace {

bool read_own(const void* from, void* to, uint64_t size) {
  iovec here{to, size}, there{const_cast<void*>(from), size};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == ssize_t(size);
}

int64_t raw_call(const SystemCall& call) {
  register uint64_t r10 asm("r10") = call.arguments[3];
  register uint64_t r8 asm("r8") = call.arguments[4];
  register uint64_t r9 asm("r9") = call.arguments[5];
  int64_t result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(call.number), "D"(call.arguments[0]), "S"(call.arguments[1]), "d"(call.arguments[2]), "r"(r10),
                 "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

constexpr uint64_t page = 4096, null_end = 65536;

}  // namespace

// [the buffer's room][a page that is not there]; what reaches into that page has no contents.
uint64_t Trial::add(const void* bytes, uint64_t size, uint64_t step) {
  int k = report_.buffers++;
  auto& of = report_.of[k];
  of.size = uint32_t(size), of.is_patterned = !bytes;
  void* memory = mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto base = reinterpret_cast<uint64_t>(memory);
  memset(memory, layout_.pattern, room);
  uint64_t guard = base + room, begin = guard - (layout_.ends[k] ? layout_.ends[k] : size);
  if (layout_.moved == k) begin += step;
  if (bytes) memcpy(reinterpret_cast<void*>(begin), bytes, begin + size > guard ? guard - begin : size);
  mprotect(reinterpret_cast<void*>(guard), page, PROT_NONE);
  guards_[k] = guard, begins_[k] = begin;
  return layout_.nulled == k ? 0 : begin;
}

int64_t Trial::call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
  SystemCall call{number, {a, b, c, d, e, f}};
  auto in_room = [&](int k, const Effect& effect, auto mark) {
    for (uint64_t at = guards_[k] - room; at < guards_[k]; at++)
      if (at >= effect.begin && (at < effect.begin + effect.size || !effect.size)) mark(at - (guards_[k] - room));
  };
  auto excuse = [&](const Effect& effect) {
    if (effect.use != Use::Unknown && effect.use != Use::Later) return;
    report_.is_unknown |= effect.use == Use::Unknown;
    for (int k = 0; k < report_.buffers; k++)
      if (effect.begin >= guards_[k] - room && effect.begin < guards_[k])
        in_room(k, effect, [&](uint64_t at) { report_.of[k].excused[at] = 1; });
  };
  for_each_effect(call, read_own, [&](const Effect& effect) {
    excuse(effect);
    if (effect.use != Use::Read && effect.use != Use::Copied && effect.use != Use::MayWrite) return;
    uint64_t end = effect.begin + effect.size;
    report_.crosses |= effect.begin < null_end;
    for (int k = 0; k < report_.buffers; k++) {
      if (end <= begins_[k] || effect.begin >= guards_[k] + page) continue;
      report_.crosses |= end > guards_[k];
      if (end - begins_[k] > report_.of[k].end) report_.of[k].end = uint32_t(end - begins_[k]);
    }
  });
  std::vector<std::vector<uint8_t>> before;
  for (int k = 0; k < report_.buffers; k++) {
    const auto* begin = reinterpret_cast<const uint8_t*>(guards_[k] - room);
    before.emplace_back(begin, begin + room);
  }
  report_.called = true;
  pid_t parent = getpid();
  int64_t result = raw_call(call);
  if (getpid() != parent) return 0;  // its child
  report_.result = result;
  for (int k = 0; k < report_.buffers; k++) {
    const auto* now = reinterpret_cast<const uint8_t*>(guards_[k] - room);
    for (uint64_t i = 0; i < room; i++) report_.of[k].changed[i] = now[i] != before[size_t(k)][i];
  }
  for_each_effect(call, report_.result, read_own, [&](const Effect& effect) {
    excuse(effect);
    if (effect.use == Use::Written)
      for (int k = 0; k < report_.buffers; k++) in_room(k, effect, [&](uint64_t at) { report_.of[k].told[at] = 1; });
  });
  report_.finished = true;
  return report_.result;
}

}  // namespace weir::rt
