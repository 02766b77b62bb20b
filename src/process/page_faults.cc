#include "process/page_faults.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

namespace weir::process {

namespace {

constexpr size_t page = 4096;
// An unprivileged user may have 516 KiB of them a processor, unless the machine says otherwise.
constexpr size_t most_ring_pages = 128, least_ring_pages = 8, all_ring_pages = 8192;
constexpr size_t most_open = 1 << 16;

uint64_t nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

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

// What the records are of is seen by their sizes: that of an end has a thread and a time, that of a begin a place and an address besides.
constexpr uint64_t ends_with = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
constexpr uint64_t begins_with = ends_with | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
struct Thread {
  uint32_t pid, tid;
};
struct BeginRecord {
  perf_event_header header;
  uint64_t ip;
  Thread thread;
  uint64_t time, address;
};
struct EndRecord {  // and of a switch
  perf_event_header header;
  Thread thread;
  uint64_t time;
};
struct LostRecord {
  perf_event_header header;
  uint64_t id, lost;
};

perf_event_attr attributes(uint64_t event, size_t ring_size) {
  bool is_begin = event == PERF_COUNT_SW_PAGE_FAULTS;
  perf_event_attr a{};
  a.size = sizeof a;
  a.type = PERF_TYPE_SOFTWARE;
  a.config = event;
  a.sample_period = 1;
  a.sample_type = is_begin ? begins_with : ends_with;
  a.sample_id_all = 1;
  a.context_switch = is_begin;
  a.exclude_kernel = a.exclude_hv = 1;
  a.use_clockid = 1;
  a.clockid = CLOCK_MONOTONIC_RAW;
  a.watermark = 1;
  a.wakeup_watermark = static_cast<uint32_t>(ring_size / 4);
  return a;
}

constexpr std::array<uint64_t, 3> events = {PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN,
                                            PERF_COUNT_SW_PAGE_FAULTS_MAJ};

Fd open_event(perf_event_attr& a, pid_t tid, int cpu) {
  return Fd(static_cast<int>(syscall(SYS_perf_event_open, &a, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
}

perf_event_mmap_page& head_of(const Mapping& pages) { return *reinterpret_cast<perf_event_mmap_page*>(pages.data()); }

bool is_filling(const Mapping& pages) {
  if (!pages) return false;
  const perf_event_mmap_page& head = head_of(pages);
  uint64_t written = __atomic_load_n(&head.data_head, __ATOMIC_RELAXED),
           read = __atomic_load_n(&head.data_tail, __ATOMIC_RELAXED);
  return written - read > (pages.size() - page) / 4;
}

// Calls use(header, bytes) for each record that is there.
template <class Use>
void read_ring(const Mapping& pages, Use use) {
  perf_event_mmap_page& head = head_of(pages);
  const std::byte* data = pages.data() + page;
  const uint64_t size = pages.size() - page;
  uint64_t end = __atomic_load_n(&head.data_head, __ATOMIC_ACQUIRE), at = head.data_tail;
  std::array<std::byte, 256> record;
  auto copy = [&](uint64_t from, void* to, size_t n) {
    size_t first = std::min<size_t>(n, size - from % size);
    memcpy(to, data + from % size, first);
    memcpy(static_cast<std::byte*>(to) + first, data, n - first);
  };
  while (at + sizeof(perf_event_header) <= end) {
    perf_event_header h;
    copy(at, &h, sizeof h);
    if (h.size < sizeof h || h.size > end - at) break;
    if (h.size <= record.size()) {
      copy(at, record.data(), h.size);
      use(h, record.data());
    }
    at += h.size;
  }
  __atomic_store_n(&head.data_tail, at, __ATOMIC_RELEASE);
}

template <class Record>
Record as(const std::byte* bytes) {
  Record r;
  memcpy(&r, bytes, sizeof r);
  return r;
}

int64_t median(std::vector<int64_t>& values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What the interval between the records of a fault has more than the fault took natively: what perf takes for writing the first, less the
// processor's way into the kernel and back. Measured with faults of our own.
int64_t measure_own_time() {
  constexpr size_t faults = 64, ring_pages = 8;
  void* fresh = mmap(nullptr, 2 * faults * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return 0;
  Mapping memory(fresh, 2 * faults * page);
  madvise(fresh, memory.size(), MADV_NOHUGEPAGE);
  auto touch = [&](size_t n) { *reinterpret_cast<volatile char*>(memory.data() + n * page) = 1; };
  std::vector<int64_t> native, seen;
  for (size_t i = 0; i < faults; i++) {
    uint64_t before = nanoseconds();
    touch(i);
    uint64_t after = nanoseconds(), clock = nanoseconds() - after;
    native.push_back(static_cast<int64_t>(after - before) - static_cast<int64_t>(clock));
  }
  perf_event_attr a = attributes(events[0], ring_pages * page), b = attributes(events[1], ring_pages * page);
  Fd begins = open_event(a, 0, -1), ends = open_event(b, 0, -1);
  if (!begins || !ends) return 0;
  void* ring = mmap(nullptr, (1 + ring_pages) * page, PROT_READ | PROT_WRITE, MAP_SHARED, begins.get(), 0);
  if (ring == MAP_FAILED) return 0;
  Mapping pages(ring, (1 + ring_pages) * page);
  if (ioctl(ends.get(), PERF_EVENT_IOC_SET_OUTPUT, begins.get())) return 0;
  for (size_t i = faults; i < 2 * faults; i++) touch(i);
  uint64_t begin = 0;
  read_ring(pages, [&](const perf_event_header& h, const std::byte* bytes) {
    if (h.type != PERF_RECORD_SAMPLE) return;
    if (h.size == sizeof(BeginRecord)) begin = as<BeginRecord>(bytes).time;
    else if (begin) seen.push_back(static_cast<int64_t>(as<EndRecord>(bytes).time - std::exchange(begin, 0)));
  });
  return seen.empty() ? 0 : std::clamp<int64_t>(median(seen) - median(native), -10'000, 10'000);
}

}  // namespace

Result<std::unique_ptr<PageFaults>> PageFaults::create(std::function<void()> wake) {
  std::unique_ptr<PageFaults> p(new PageFaults(std::move(wake)));
  p->first_time_ = nanoseconds();
  p->first_stamp_ = __rdtsc();
  std::vector<int> cpus = online_cpus();
  if (cpus.empty()) return fail("/sys/devices/system/cpu/online cannot be read");
  for (int cpu : cpus) p->rings_.push_back({cpu, {}, {}});
  size_t pages = most_ring_pages;
  while (pages > least_ring_pages && pages * cpus.size() > all_ring_pages) pages /= 2;
  p->ring_size_ = pages * page;
  return p;
}

PageFaults::~PageFaults() { end_waking(); }

// (What others of this user have counts, too: less is better than nothing.)
Result<> PageFaults::map(Ring& ring) {
  for (;; ring_size_ /= 2) {
    void* pages = mmap(nullptr, page + ring_size_, PROT_READ | PROT_WRITE, MAP_SHARED, ring.first.get(), 0);
    if (pages != MAP_FAILED) return ring.pages = Mapping(pages, page + ring_size_), Result<>();
    if (errno != EPERM || ring_size_ <= least_ring_pages * page)
      return fail_errno("the memory for perf's records (ulimit -l)");
  }
}

Result<> PageFaults::watch(pid_t tid) {
  for (Ring& ring : rings_)
    for (uint64_t event : events) {
      perf_event_attr a = attributes(event, ring_size_);
      a.inherit = 1;
      Fd fd = open_event(a, tid, ring.cpu);
      if (!fd && errno == ENODEV) continue;  // (the processor is gone)
      if (!fd) return fail_errno("perf_event_open");
      if (!ring.first) {
        ring.first = std::move(fd);
        TRY_VOID(map(ring));
        continue;
      }
      if (ioctl(fd.get(), PERF_EVENT_IOC_SET_OUTPUT, ring.first.get())) return fail_errno("PERF_EVENT_IOC_SET_OUTPUT");
      others_.push_back(std::move(fd));
    }
  if (!waker_.joinable()) begin_waking();
  return {};
}

// (It allocates nothing and holds no lock: this process forks.)
void PageFaults::begin_waking() {
  ended_ = Fd(eventfd(0, EFD_CLOEXEC));
  std::vector<pollfd> fds{{ended_.get(), POLLIN, 0}};
  for (const Ring& ring : rings_)
    if (ring.first) fds.push_back({ring.first.get(), POLLIN, 0});
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  waker_ = std::thread([this, fds = std::move(fds)]() mutable {
    prctl(PR_SET_NAME, "weir-faults");
    constexpr int look_ms = 10;
    int timeout = -1;
    while (poll(fds.data(), fds.size(), timeout) >= 0 || errno == EINTR) {
      if (fds[0].revents) return;
      bool any = false;
      for (pollfd& fd : fds) {
        any |= (fd.revents & POLLIN) != 0;
        // The threads of this event have ended, those of others may go on.
        if (fd.revents & (POLLHUP | POLLERR)) fd.fd = -1, timeout = look_ms;
      }
      for (const Ring& ring : rings_) any |= timeout > 0 && is_filling(ring.pages);
      if (any) wake_();
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void PageFaults::end_waking() {
  if (!waker_.joinable()) return;
  eventfd_write(ended_.get(), 1);
  waker_.join();
}

// The kernel leaves a ring out of a fork's memory, and the thread is not there either. It takes a ring away from its event when the
// last process has unmapped it: then this one maps another.
Result<> PageFaults::take_over() {
  new (&waker_) std::thread;
  for (Ring& ring : rings_) {
    if (!ring.pages) continue;
    ring_size_ = ring.pages.size() - page;
    new (&ring.pages) Mapping;  // (what is there by now is others')
    TRY_VOID(map(ring));
    if (head_of(ring.pages).data_head) continue;
    for (const Fd& other : others_) (void)ioctl(other.get(), PERF_EVENT_IOC_SET_OUTPUT, ring.first.get());
  }
  begin_waking();
  return {};
}

void PageFaults::stop() {
  for (const Ring& ring : rings_)
    if (ring.first) ioctl(ring.first.get(), PERF_EVENT_IOC_DISABLE, 0);
  for (const Fd& other : others_) ioctl(other.get(), PERF_EVENT_IOC_DISABLE, 0);
}

double PageFaults::cycles_in_a_nanosecond() const {
  uint64_t time = nanoseconds() - first_time_, stamp = __rdtsc() - first_stamp_;
  return double(stamp) / double(std::max<uint64_t>(time, 1));
}

void PageFaults::read_notes(Ring& ring) {
  if (!ring.pages) return;
  read_ring(ring.pages, [&](const perf_event_header& h, const std::byte* bytes) {
    if (h.type == PERF_RECORD_LOST && h.size >= sizeof(LostRecord)) lost_ += as<LostRecord>(bytes).lost;
    if (h.type == PERF_RECORD_SAMPLE && h.size == sizeof(BeginRecord)) {
      auto r = as<BeginRecord>(bytes);
      notes_.push_back({Note::Begin, static_cast<pid_t>(r.thread.tid), r.time, r.ip, r.address});
    } else if ((h.type == PERF_RECORD_SAMPLE || h.type == PERF_RECORD_SWITCH) && h.size == sizeof(EndRecord)) {
      auto r = as<EndRecord>(bytes);
      Note::Kind kind = h.type == PERF_RECORD_SAMPLE           ? Note::End
                        : h.misc & PERF_RECORD_MISC_SWITCH_OUT ? Note::Out
                                                               : Note::In;
      notes_.push_back({kind, static_cast<pid_t>(r.thread.tid), r.time, 0, 0});
    }
  });
}

// A thread may change its processor inside a fault, and so the ring: all that happened up to now is looked at in the order of time, what
// has come since while we read waits for the next time.
void PageFaults::read(const std::function<void(const PageFault&)>& take) {
  uint64_t until = nanoseconds();
  for (Ring& ring : rings_) read_notes(ring);
  if (notes_.empty()) return;
  if (!std::ranges::is_sorted(notes_, {}, &Note::time)) std::ranges::stable_sort(notes_, {}, &Note::time);
  auto end = std::ranges::lower_bound(notes_, until, {}, &Note::time);
  double rate = cycles_in_a_nanosecond();
  auto in_cycles = [&](const PageFault& f) {
    PageFault g = f;
    g.work = static_cast<uint64_t>(double(f.work) * rate), g.waited = static_cast<uint64_t>(double(f.waited) * rate);
    take(g);
  };
  for (auto n = notes_.begin(); n != end; ++n) note(*n, in_cycles);
  notes_.erase(notes_.begin(), end);
}

void PageFaults::note(const Note& n, const std::function<void(const PageFault&)>& take) {
  if (n.kind == Note::Begin) {
    if (open_.size() >= most_open) open_.clear();  // (they ended with their threads)
    open_.insert_or_assign(n.tid, Fault{n.pc, n.address, n.time});
    return;
  }
  if (open_.empty()) return;
  auto known = open_.find(n.tid);
  if (known == open_.end()) return;
  Fault& f = known->second;
  if (n.kind == Note::Out) {
    f.out = n.time;
  } else if (n.kind == Note::In) {
    if (f.out) f.off += n.time - std::exchange(f.out, 0);
  } else {
    if (!own_) own_ = measure_own_time();
    int64_t work = static_cast<int64_t>(n.time - f.begin - f.off) - *own_;
    take({n.tid, f.pc, f.address, static_cast<uint64_t>(std::max<int64_t>(work, 0)), f.off});
    open_.erase(known);
  }
}

}  // namespace weir::process
