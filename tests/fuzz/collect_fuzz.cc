// The memory of a thread as a hostile program leaves it: what the profile is made of is read inside that memory, is bounded, and
// leads nowhere outside our tables.
//
// Input: 12 bytes each: where in the thread's memory to write, and the eight bytes that go there.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "base/result.h"
#include "tools/count/assemble.h"

using namespace weir;

namespace {

// With pages around it that nobody may touch.
std::byte* new_memory() {
  constexpr size_t guard = 4096;
  auto* p = static_cast<std::byte*>(
      mmap(nullptr, rt::block_stride + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  CHECK(p != MAP_FAILED);
  CHECK(mprotect(p + guard, rt::block_stride, PROT_READ | PROT_WRITE) == 0);
  return p + guard;
}

// Regions that a profile is read from, so that inputs need not find them: the first byte of an offset chooses one.
uint64_t place(uint32_t offset) {
  constexpr uint32_t places[] = {0,
                                 offsetof(rt::ThreadBlock, frames),
                                 offsetof(rt::ThreadBlock, tool),
                                 offsetof(rt::ThreadBlock, interrupted),
                                 rt::counters_offset,
                                 rt::frames_offset,
                                 count::runtime::others_offset,
                                 count::runtime::os_offset,
                                 count::runtime::state_offset,
                                 count::runtime::others_list_offset,
                                 count::runtime::os_list_offset,
                                 count::runtime::contexts_offset};
  return (places[(offset >> 24) % std::size(places)] + (offset & 0xffff)) % (rt::block_stride - 8);
}

//     call f; call rax; ret; f: syscall; ret
constexpr unsigned char code[] = {0xe8, 3, 0, 0, 0, 0xff, 0xd0, 0xc3, 0x0f, 0x05, 0xc3};
constexpr AppRange bounds{{0x400000}, {0x400000 + sizeof code}};

void plan(count::Count& tool, instrument::Counters& counters, AppPc entry) {
  x86::ReadMemory read = [](AppPc at, size_t size) -> std::span<const std::byte> {
    if (!bounds.contains(at)) return {};
    auto offset = static_cast<size_t>(at - bounds.begin);
    return std::as_bytes(std::span(code)).subspan(offset, std::min(size, sizeof code - offset));
  };
  std::function<AppRange(AppPc)> bounds_of = [](AppPc at) {
    AppPc f = bounds.begin + 8;
    return at < f ? AppRange{bounds.begin, f} : AppRange{f, bounds.end};
  };
  x86::Function f;
  x86::lift(entry, bounds_of(entry), read, read, {}, f);
  instrument::Plan plan;
  tool.plan({f, 0, 0, read, read, bounds_of, true, false}, counters, plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::byte *parent = new_memory(), *child = new_memory();
  auto cost = std::make_shared<count::CostModel>([](std::span<const std::byte>, std::span<const x86::Insn> insns) {
    static uint32_t so_far[64];
    for (uint32_t i = 0; i < 64; i++) so_far[i] = i + 1;
    return count::BlockCost{static_cast<uint32_t>(insns.size()), std::span(so_far).first(insns.size())};
  });
  count::Count tool(cost, {.full_paths = size % 2 != 0});
  instrument::Counters counters;
  plan(tool, counters, bounds.begin);
  plan(tool, counters, bounds.begin + 8);
  for (std::byte* memory : {parent, child}) CHECK(madvise(memory, rt::block_stride, MADV_DONTNEED) == 0);
  tool.begin_thread({.memory = parent, .pc = bounds.begin});
  for (; size >= 12; data += 12, size -= 12) {
    uint32_t offset;
    memcpy(&offset, data, 4);
    memcpy(parent + place(offset), data + 4, 8);
  }
  tool.begin_thread({.memory = child, .parent = parent, .is_fork = true, .pc = bounds.begin});
  profile::Profile profile;
  count::Assembler assembler(profile);
  uint32_t pid = 1;
  for (std::byte* memory : {parent, child}) {
    instrument::CellRange all{0, counters.size()};
    auto* cells = reinterpret_cast<uint64_t*>(memory + rt::counters_offset);
    tool.collect({pid, pid, {cells, counters.size()}, memory, {&all, 1}});
    assembler.add(tool, {pid, 0, {}, 0, 0, {}, {"[anonymous]"}});
    pid++;
  }
  for (const profile::Thread& t : profile.threads) {
    for (const auto& c : t.calls) CHECK(c.site < profile.sites.size() && c.callee < profile.functions.size());
    for (const auto& c : t.functions) CHECK(c.function < profile.functions.size());
    for (size_t i = 0; i < t.contexts.size(); i++) {
      const auto& c = t.contexts[i];
      CHECK(c.site < profile.sites.size() && c.function < profile.functions.size());
      CHECK(c.parent == profile::none || c.parent < i);
    }
  }
  return 0;
}
