#include "sample/events.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace weir::sample {

namespace {

struct Named {
  const char* name;
  uint32_t type;
  uint64_t config, period;
};
constexpr uint64_t often = 1'000'000, seldom = 10'000;
constexpr Named named[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, often},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, often},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, seldom},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, seldom},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, often},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, seldom},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, often},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, often},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 1},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1},
};

int open_raw(perf_event_attr& a, pid_t tid, int cpu) {
  return static_cast<int>(syscall(SYS_perf_event_open, &a, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

// Synchronous signals of one thread and of those that it creates.
perf_event_attr signalling(uint32_t type, uint64_t period, uint64_t word) {
  perf_event_attr a{};
  a.size = sizeof a;
  a.type = type;
  a.sample_period = period;
  a.disabled = a.sigtrap = a.remove_on_exec = a.inherit = a.inherit_thread = 1;
  a.exclude_hv = 1;
  a.sig_data = word;
  return a;
}

}  // namespace

std::vector<std::string> event_names() {
  std::vector<std::string> names;
  for (const Named& n : named) names.push_back(n.name);
  return names;
}

std::optional<Event> find_event(const std::string& name) {
  auto at = std::ranges::find(named, name, &Named::name);
  if (at == std::end(named)) return {};
  return Event{at->type, at->config, at->period};
}

Event task_clock(double rate) { return {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, static_cast<uint64_t>(1e9 / rate)}; }

Event context_switches() { return {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1}; }

Result<Fd> open_event(pid_t tid, const Event& event, uint64_t word) {
  perf_event_attr a = signalling(event.type, event.period, word);
  a.config = event.config;
  a.exclude_kernel = event.excludes_kernel;
  Fd fd(open_raw(a, tid, -1));
  if (!fd) return fail_errno("thread {}: perf_event_open", tid);
  return fd;
}

Result<Fd> open_breakpoint(pid_t tid, uint64_t address, uint64_t word) {
  perf_event_attr a = signalling(PERF_TYPE_BREAKPOINT, 1, word);
  a.bp_type = HW_BREAKPOINT_X;
  a.bp_addr = address;
  a.bp_len = sizeof(long);
  a.exclude_kernel = 1;
  Fd fd(open_raw(a, tid, -1));
  if (!fd) return fail_errno("thread {}: a hardware breakpoint", tid);
  return fd;
}

void enable(const Fd& event) { ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0); }

uint64_t count_of(const Fd& event) {
  uint64_t count = 0;
  return read(event.get(), &count, sizeof count) == sizeof count ? count : 0;
}

void close_event(Fd& event) {
  if (event) ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
  event = Fd();
}

Result<> try_event(Event& event) {
  auto opened = open_event(0, event, 0);
  if (opened) return {};
  event.excludes_kernel = true;
  opened = open_event(0, event, 0);
  if (opened) return {};
  return std::unexpected(opened.error());
}

// ---- Watching -----------------------------------------------------------------------------------------------------------
namespace {

constexpr size_t ring_pages = 16;

std::vector<int> online_cpus() {
  std::ifstream file("/sys/devices/system/cpu/online");  // "0-3,8"
  std::vector<int> cpus;
  for (int first, last; file >> first;) {
    last = first;
    if (file.peek() == '-') file.ignore(), file >> last;
    for (int cpu = first; cpu <= last; cpu++) cpus.push_back(cpu);
    if (file.peek() == ',') file.ignore();
  }
  return cpus;
}

}  // namespace

Result<> Watch::add(pid_t tid) {
  perf_event_attr a{};
  a.size = sizeof a;
  a.type = PERF_TYPE_SOFTWARE;
  a.config = PERF_COUNT_SW_DUMMY;
  a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = a.inherit = 1;
  a.watermark = 1, a.wakeup_watermark = 1;
  a.exclude_kernel = a.exclude_hv = 1;
  if (rings_.empty())
    for (int cpu : online_cpus()) rings_.push_back({{}, {}, cpu});
  for (Ring& ring : rings_) {
    Fd fd(open_raw(a, tid, ring.cpu));
    if (!fd) return fail_errno("thread {}: perf_event_open", tid);
    if (ring.first) {
      if (ioctl(fd.get(), PERF_EVENT_IOC_SET_OUTPUT, ring.first.get())) return fail_errno("perf's ring");
      others_.push_back(std::move(fd));
      continue;
    }
    size_t size = (1 + ring_pages) * 4096;
    void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (pages == MAP_FAILED) return fail_errno("perf's ring");
    ring.first = std::move(fd), ring.pages = Mapping(pages, size);
  }
  return {};
}

std::vector<int> Watch::descriptors() const {
  std::vector<int> result;
  for (const Ring& r : rings_) result.push_back(r.first.get());
  return result;
}

std::vector<Watch::Record> Watch::read() {
  std::vector<Record> records;
  for (Ring& ring : rings_) {
    if (!ring.pages) continue;
    auto* page = reinterpret_cast<perf_event_mmap_page*>(ring.pages.data());
    const std::byte* data = ring.pages.data() + 4096;
    constexpr uint64_t size = ring_pages * 4096;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    auto copy = [&](uint64_t from, void* to, size_t n) {
      for (size_t i = 0; i < n; i++) static_cast<std::byte*>(to)[i] = data[(from + i) % size];
    };
    while (tail < head) {
      perf_event_header h;
      copy(tail, &h, sizeof h);
      if (h.size < sizeof h) break;
      uint32_t words[4] = {};  // pid and tid; of a fork: pid, ppid, tid, ptid
      copy(tail + sizeof h, words, std::min<size_t>(sizeof words, h.size - sizeof h));
      auto pid = static_cast<pid_t>(words[0]), second = static_cast<pid_t>(words[1]);
      if (h.type == PERF_RECORD_FORK && pid != second) records.push_back({Record::Forked, pid, second});
      if (h.type == PERF_RECORD_COMM && h.misc & PERF_RECORD_MISC_COMM_EXEC) records.push_back({Record::Executed, pid});
      if (h.type == PERF_RECORD_MMAP2) records.push_back({Record::Mapped, pid});
      if (h.type == PERF_RECORD_LOST) records.push_back({Record::Lost});
      tail += h.size;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
  }
  return records;
}

}  // namespace weir::sample
