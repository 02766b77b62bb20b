#include "sample/code.h"

#include <algorithm>
#include <cstring>

#include "symbols/mapped_image.h"

namespace weir::sample {

namespace {

bool is_c_library(const std::string& path) {
  return path.contains("/libc.") || path.contains("/libc-") || path.contains("/ld-musl");
}

bool is_loader(const std::string& path) { return path.contains("/ld-linux-"); }

bool is_ours(const process::Region& r) { return r.path.starts_with("/memfd:weir-"); }

}  // namespace

uint32_t Code::name(const std::string& path, const std::shared_ptr<elf::Image>& image) {
  auto [at, is_new] = by_name_.try_emplace(path, static_cast<uint32_t>(names_.size()));
  if (is_new) names_.push_back(path), files_.push_back(image);
  return at->second;
}

// What was mapped there when we looked last is so still: to ask for the files of hundreds of libraries takes time. Null: it is new.
const Known* Code::known_as(const process::Region& r) const {
  auto at = std::ranges::lower_bound(code_, r.range.begin, {}, [](const Found& f) { return f.region.range.begin; });
  if (at == code_.end() || at->region.range != r.range || at->region.offset != r.offset) return nullptr;
  return at->region.inode == r.inode && at->region.path == r.path ? at->known : nullptr;
}

// None: it is not known yet where its addresses lie.
std::optional<Code::Range> Code::range_of(const Found& found) {
  const process::Region& r = found.region;
  Range range{r.range.begin.value, r.range.end.value, 0, 0, 0, true};
  if (found.known && found.known->stage() == Stage::Wanted) return {};
  std::shared_ptr<elf::Image> image = found.known ? found.known->image : nullptr;
  range.image = name(image ? r.path : "[code written at run time]", image);
  if (!image) return range;
  range.bias = symbols::bias_of(r, *image);
  range.is_ready = found.known->stage() == Stage::Ready;
  if (range.is_ready) range.table = found.known->table;
  return range;
}

bool Code::look(pid_t pid, uint32_t index, Shared& shared, Images& images) {
  pid = process::living_thread(pid);
  auto regions = process::regions(pid);
  if (!regions || regions->empty()) return false;
  regions_ = std::move(*regions);
  has_ours_ = std::ranges::any_of(regions_, is_ours);
  std::vector<Found> now;
  for (const process::Region& r : regions_) {
    if (!r.executable || is_ours(r) || r.path == "[vsyscall]") continue;
    const Known* known = known_as(r);
    now.push_back({r, known ? known : images.of(pid, r, is_c_library(r.path) || is_loader(r.path))});
  }
  code_ = std::move(now);
  return renew(index, shared);
}

bool Code::renew(uint32_t index, Shared& shared) {
  std::vector<Range> now;
  auto has_come_to = [](Stage stage) { return [stage](const Found& f) { return !f.known || f.known->stage() >= stage; }; };
  auto is_searched = has_come_to(Stage::Searched);
  auto is_library = [](const Found& f) { return is_c_library(f.region.path); };
  size_t searched = static_cast<size_t>(std::ranges::count_if(code_, is_searched));
  for (const Found& f : code_)
    if (auto range = range_of(f)) now.push_back(*range);
  bool has_more_sites = searched != searched_;
  searched_ = searched;
  is_ready_ = std::ranges::all_of(code_, has_come_to(Stage::Ready));
  is_complete_ = searched == code_.size();
  has_linker_ =
      std::ranges::all_of(code_, [&](const Found& f) { return !is_loader(f.region.path) || has_come_to(Stage::Ready)(f); });
  has_library_ = is_complete_ || (std::ranges::any_of(code_, is_library) && std::ranges::all_of(code_, [&](const Found& f) {
                                    return !is_library(f) || is_searched(f);
                                  }));
  if (now == ranges_ && !has_more_sites) return false;
  for (const Range& r : ranges_) {
    auto at = std::ranges::lower_bound(now, r.begin, {}, &Range::begin);
    if (at == now.end() || *at != r) earlier_.push_back(r);
  }
  ranges_ = std::move(now);
  tell(index, shared);
  find_sites();
  return true;
}

void Code::tell(uint32_t index, Shared& shared) {
  std::vector<rt::CodeRange> told;
  for (const Range& r : ranges_)
    if (r.is_ready) told.push_back({r.begin, r.end, r.bias, reinterpret_cast<const rt::TableHead*>(r.table)});
  uint64_t list = shared.append(std::as_bytes(std::span(told)));
  rt::Code code{reinterpret_cast<const rt::CodeRange*>(list), static_cast<uint32_t>(told.size()), ++generation_};
  uint64_t at = list ? shared.append(std::as_bytes(std::span(&code, 1))) : 0;
  if (at) __atomic_store_n(&shared.control().processes[index].code, at, __ATOMIC_RELEASE);
}

// (An image may have got further since renew() has looked at it, and need not be among the ranges.)
void Code::find_sites() {
  struct Candidate {
    Site site;
    bool is_of_library;
  };
  std::vector<Candidate> found;
  needs_any_ = is_tracer_ = false;
  bool names_execveat = false, names_mlockall = false;
  for (const Found& f : code_) {
    const std::string& path = f.region.path;
    // (The C library's loader has the calls, too, and makes none of them once a program runs.)
    if (!f.known || f.known->stage() < Stage::Searched || !f.known->image || is_loader(path)) continue;
    const Sites& sites = f.known->sites;
    bool is_library = is_c_library(path);
    needs_any_ |= sites.hides_calls;
    names_execveat |= sites.names_execveat && !is_library;
    names_mlockall |= sites.names_mlockall && !is_library;
    is_tracer_ |= sites.names_ptrace && !is_library;
    for (Site site : sites.list) {
      site.at += symbols::bias_of(f.region, *f.known->image);
      if (f.region.range.contains(AppPc{site.at})) found.push_back({site, is_library});
    }
  }
  // There are not breakpoints for all: those that nobody calls are left out, and the C library's come first.
  std::erase_if(found, [&](const Candidate& c) {
    return (c.site.call == Site::Any && !needs_any_) ||
           (c.site.call == Site::ExecuteAt && c.is_of_library && !names_execveat) ||
           (c.site.call == Site::Lock && !names_mlockall) || (c.site.call == Site::Trace && !is_tracer_);
  });
  std::ranges::stable_partition(found, &Candidate::is_of_library);
  std::ranges::stable_partition(found, [&](const Candidate& c) { return is_needed(c.site.call); });
  sites_.clear();
  for (const Candidate& c : found) sites_.push_back(c.site);
}

namespace {
// Where the C library has noted the stack that it gave to a thread: its address and size, one behind the other, near what fs points to, which
// lies on top of that stack. All C libraries have such a pair. 0: there is none that fits.
uint64_t begin_of_stack(pid_t pid, uint64_t fs, uint64_t low, uint64_t high) {
  uint64_t words[512] = {};
  size_t size = std::min(sizeof words, high - fs);
  if (process::read(pid, fs, std::as_writable_bytes(std::span(words)).first(size)) != size) return 0;
  for (size_t i = 0; i + 1 < size / sizeof(uint64_t); i++) {
    uint64_t begin = words[i], length = words[i + 1];
    if (begin >= low && begin < fs && length > fs - begin && length <= high - begin) return begin;
  }
  return 0;
}
}  // namespace

// That of the first thread has a name. What else lies in the same mapping as that of another is not its own: stacks of coroutines, perhaps.
rt::KnownStack Code::own_stack(pid_t pid, uint64_t sp, uint64_t fs, bool is_first_thread) const {
  for (size_t i = 0; i < regions_.size(); i++) {
    const process::Region& r = regions_[i];
    uint64_t low = r.range.begin.value, high = r.range.end.value;
    if (is_first_thread && r.path == "[stack]") {
      // It grows, until it comes near to what lies below it.
      constexpr uint64_t gap = 1 << 20, most = uint64_t{8} << 30;
      uint64_t limit = std::max(high - std::min(high, most), i ? regions_[i - 1].range.end.value + gap : gap);
      limit = std::min(limit, low);
      if (sp >= limit && sp < high) return {limit, low, high};
    }
    bool is_private = r.readable && r.writable && !r.shared && !r.inode && r.path != "[heap]";
    if (is_first_thread || !is_private || sp < low || sp >= fs || fs >= high) continue;
    bool has_guard = i && !regions_[i - 1].readable && regions_[i - 1].range.end.value == low;  // it belongs to the stack
    uint64_t begin = begin_of_stack(pid, fs, has_guard ? regions_[i - 1].range.begin.value : low, high);
    if (begin && sp >= begin) return {std::max(begin, low), std::max(begin, low), fs};
  }
  return {};
}

std::vector<rt::CodeRange> Code::local(const Shared& shared) const {
  std::vector<rt::CodeRange> result;
  for (const Range& r : ranges_)
    result.push_back(
        {r.begin, r.end, r.bias, r.table ? reinterpret_cast<const rt::TableHead*>(shared.at(r.table)) : nullptr});
  return result;
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
