// Code is what can be executed; the stack, the mapping in which a thread began, and the main thread's, as far as it may grow; static,
// what is mapped from files, and what an image has behind that (.bss); all else is heap: brk, anonymous and shared memory.
#include "tools/memory/regions.h"

#include <elf.h>
#include <fcntl.h>

#include <algorithm>

#include "elf/image.h"

namespace weir::memory {

using process::Region;
using runtime::Answer;

namespace {

// Mapped from a file? Shared memory only has the name of one.
bool has_file(const Region& r) {
  if (r.path == "[vvar]" || r.path == "[vvar_vclock]") return true;
  return r.path.starts_with("/") && !r.path.starts_with("/dev/zero") && !r.path.starts_with("/memfd:") &&
         !r.path.starts_with("/SYSV");
}

uint64_t up_to_page(uint64_t value) { return (value + runtime::page_size - 1) & ~(runtime::page_size - 1); }

// From the begin of its first segment to the end of its last.
uint64_t extent_of(const std::string& file) {
  Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  auto image = elf::Image::open(std::move(fd), file);
  if (!image) return 0;
  uint64_t begin = ~uint64_t{0}, end = 0;
  for (const elf::Segment& s : (*image)->segments()) {
    if (s.type != PT_LOAD) continue;
    begin = std::min(begin, s.vaddr.value & ~(runtime::page_size - 1));
    end = std::max(end, s.vaddr.value + s.memory_size);
  }
  return end > begin ? up_to_page(end - begin) : 0;
}

}  // namespace

// Of the image whose file is mapped at `index`: where the memory ends that it asked for.
uint64_t Regions::end_of_image(const std::vector<Region>& regions, size_t index, uint32_t pid) {
  const std::string& path = regions[index].path;
  size_t first = index;
  while (first > 0 && (regions[first].path != path || regions[first].offset)) first--;
  if (regions[first].path != path || regions[first].offset) return 0;
  auto [at, is_new] = extents_.try_emplace(path);
  if (is_new) at->second = extent_of(fmt::format("/proc/{}/root{}", pid, path));
  return at->second ? regions[first].range.begin.value + at->second : 0;
}

Answer Regions::find(uint32_t pid, uint32_t tid, const runtime::Question& question) {
  constexpr uint64_t growth = 64 << 10;  // how far below its stack pointer a program may touch the stack
  auto living = process::living_thread(static_cast<pid_t>(pid));
  auto regions = process::regions(living);
  Answer nowhere{0, 0, runtime::Nowhere};
  if (!regions) return nowhere;
  AppPc address{question.address};
  if (question.stack_pointer) stacks_[tid] = {pid, {question.stack_pointer}};
  auto r = std::ranges::upper_bound(*regions, address, {}, [](const Region& x) { return x.range.end; });
  if (r == regions->end()) return nowhere;
  bool is_stack = r->path == "[stack]";
  for (auto& [thread, stack] : stacks_)
    is_stack |= stack.pid == pid && r->range.contains(stack.pointer) && !has_file(*r) && r->path != "[heap]";
  if (!r->range.contains(address)) {  // the stack grows when it is touched
    uint64_t page = address.value & ~(runtime::page_size - 1);
    bool grows = is_stack && r->range.begin - address < static_cast<int64_t>(growth + 8 * runtime::page_size);
    return r->path == "[stack]" && grows ? Answer{page, page + runtime::page_size, runtime::Stack} : nowhere;
  }
  Answer all{r->range.begin.value, r->range.end.value, runtime::Heap};
  auto is = [&](runtime::Kind kind) { return all.kind = kind, all; };
  if (is_stack) return is(runtime::Stack);
  if (r->executable) return is(runtime::Code);
  if (has_file(*r)) return is(runtime::Static);
  auto index = static_cast<size_t>(r - regions->begin());
  bool follows = index > 0 && r->path.empty() && has_file(r[-1]) && r[-1].range.end == r->range.begin;
  uint64_t end = follows ? end_of_image(*regions, index - 1, pid) : 0;
  if (address.value < end) return all.end = std::min(all.end, end), is(runtime::Static);
  all.begin = std::max(all.begin, end);
  return all;
}

}  // namespace weir::memory
