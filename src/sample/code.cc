#include "sample/code.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "symbols/debug_frame.h"
#include "unwind/table.h"

namespace weir::sample {

namespace {

// mov $13, %eax ; syscall: how compilers and assemblers make the call, in all C libraries and in Go.
std::vector<uint64_t> find_sigactions(const elf::Image& image) {
  constexpr std::string_view code("\xb8\x0d\0\0\0\x0f\x05", 7);
  constexpr uint64_t syscall_at = 5;
  std::vector<uint64_t> found;
  std::string_view bytes(reinterpret_cast<const char*>(image.bytes().data()), image.bytes().size());
  for (const elf::Segment& s : image.segments()) {
    if (s.type != PT_LOAD || !(s.flags & PF_X)) continue;
    std::string_view text = bytes.substr(std::min(s.offset, bytes.size()), s.file_size);
    for (size_t at = text.find(code); at != text.npos; at = text.find(code, at + 1))
      found.push_back(s.vaddr.value + at + syscall_at);
  }
  return found;
}

bool is_ours(const process::Region& r) { return r.path.starts_with("/memfd:weir-"); }

}  // namespace

const Images::Known* Images::of(pid_t pid, const process::Region& region) {
  if (region.path == "[vdso]" && !vdso_) vdso_ = process::open_image(pid, region).value_or(nullptr);
  auto image = region.path == "[vdso]" ? vdso_ : process::open_image(pid, region).value_or(nullptr);
  if (!image) return nullptr;
  auto [at, is_new] = known_.try_emplace(image.get());
  Known& k = at->second;
  if (!is_new) return &k;
  k.image = image;
  k.sigactions = find_sigactions(*image);
  auto debug_frame = [&] { return symbols::debug_frame_of(image->path()); };
  if (auto table = unwind::table_of(*image, debug_frame)) k.table = shared_.append((*table)->bytes());
  return &k;
}

uint32_t Code::name(const std::string& path) {
  auto at = std::ranges::find(names_, path);
  if (at == names_.end()) at = names_.insert(at, path);
  return static_cast<uint32_t>(at - names_.begin());
}

bool Code::look(pid_t pid, uint32_t index, Shared& shared, Images& images) {
  auto regions = process::regions(pid);
  if (!regions || regions->empty()) return false;
  regions_ = std::move(*regions);
  has_ours_ = std::ranges::any_of(regions_, is_ours);
  std::vector<Range> now;
  std::vector<uint64_t> sigactions;
  for (const process::Region& r : regions_) {
    if (!r.executable || is_ours(r) || r.path == "[vsyscall]") continue;
    const Images::Known* known = images.of(pid, r);
    std::string path = known ? r.path : "[code written at run time]";
    Range range{r.range.begin.value, r.range.end.value, known ? process::bias_of(r, *known->image) : 0, name(path),
                known ? known->table : 0};
    now.push_back(range);
    if (!known) continue;
    for (uint64_t v : known->sigactions)
      if (uint64_t at = v + range.bias; at >= range.begin && at < range.end) sigactions.push_back(at);
  }
  std::ranges::sort(now, {}, &Range::begin);
  if (now == ranges_) return false;
  for (const Range& r : ranges_)
    if (std::ranges::find(now, r) == now.end()) earlier_.push_back(r);
  ranges_ = std::move(now);
  sigactions_ = std::move(sigactions);

  std::vector<rt::CodeRange> told;
  for (const Range& r : ranges_)
    told.push_back({r.begin, r.end, r.bias, reinterpret_cast<const rt::TableHead*>(r.table)});
  uint64_t list = shared.append(std::as_bytes(std::span(told)));
  rt::Code code{reinterpret_cast<const rt::CodeRange*>(list), static_cast<uint32_t>(told.size()), ++generation_};
  uint64_t at = list ? shared.append(std::as_bytes(std::span(&code, 1))) : 0;
  if (at) __atomic_store_n(&shared.control().processes[index].code, at, __ATOMIC_RELEASE);
  return true;
}

rt::KnownStack Code::stack_of(uint64_t sp) const {
  for (size_t i = 0; i < regions_.size(); i++) {
    const process::Region& r = regions_[i];
    bool is_main = r.path == "[stack]";
    uint64_t low = r.range.begin.value, high = r.range.end.value, limit = low;
    // The main stack grows, until it comes near to what lies below it.
    constexpr uint64_t gap = 1 << 20, most = uint64_t{8} << 30;
    if (is_main) limit = std::max(high - std::min(high, most), i ? regions_[i - 1].range.end.value + gap : gap);
    if (sp < std::min(limit, low) || sp >= high) continue;
    // The heap may shrink, and a file may be cut off: such stacks are read with the kernel's help.
    if (!r.readable || r.path == "[heap]" || r.inode) return {};
    return {std::min(limit, low), low, high};
  }
  return {};
}

Code::Place Code::find(uint64_t address) const {
  auto in = [&](const Range& r) { return address >= r.begin && address < r.end; };
  auto at = std::ranges::find_if(ranges_, in);
  if (at != ranges_.end()) return {at->image, address - at->bias};
  auto gone = std::find_if(earlier_.rbegin(), earlier_.rend(), in);
  if (gone != earlier_.rend()) return {gone->image, address - gone->bias};
  return {UINT32_MAX, address};
}

}  // namespace weir::sample
