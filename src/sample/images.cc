#include "sample/images.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#include <fstream>

#include "symbols/debug_frame.h"
#include "symbols/mapped_image.h"
#include "unwind/table.h"

namespace weir::sample {

Images::Images(Shared& shared) : shared_(shared), news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Images::~Images() {
  if (!thread_) return;
  stop();
  {
    std::lock_guard lock(mutex_);
    quits_ = true;
    changed_.notify_all();
  }
  thread_->join();
}

const Known* Images::of(pid_t pid, const process::Region& region, bool first) {
  if (region.path == "[vdso]") {
    if (vdso_.stage() == Stage::Ready) return &vdso_;
    vdso_.image = symbols::open_image(pid, region).value_or(nullptr);
    search(vdso_);
    prepare(vdso_);
    return &vdso_;
  }
  if (!region.inode) return nullptr;
  struct stat st{};
  if (stat(region.path.c_str(), &st) || st.st_ino != region.inode) {  // it is deleted, or the process has another root
    Fd file = symbols::open_file(pid, region);
    if (!file || fstat(file.get(), &st)) return nullptr;
  }
  FileKey key{st.st_dev, st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
  auto [at, is_new] = known_.try_emplace(key);
  Known& known = at->second;
  if (!is_new) return &known;
  std::lock_guard lock(mutex_);
  to_open_.push_back({&known, pid, region, first});
  if (!thread_) thread_ = std::make_unique<std::thread>([this] { work(); });
  changed_.notify_all();
  return &known;
}

void Images::open(const Work& w) {
  if (auto image = elf::Image::open(symbols::open_file(w.pid, w.region), w.region.path)) w.known->image = std::move(*image);
  __atomic_store_n(&w.known->stage_, Stage::Opened, __ATOMIC_RELEASE);
}

void Images::search(Known& known) {
  if (known.image) known.sites = sites_of(*known.image);
  __atomic_store_n(&known.stage_, Stage::Searched, __ATOMIC_RELEASE);
}

void Images::prepare(Known& known) {
  auto debug_frame = [&] { return symbols::debug_frame_of(known.image->path()); };
  if (known.image)
    if (auto table = unwind::table_of(*known.image, debug_frame)) known.table = shared_.append((*table)->bytes());
  __atomic_store_n(&known.stage_, Stage::Ready, __ATOMIC_RELEASE);
}

void Images::tell() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(news_.get(), &one, sizeof one);
}

bool Images::take_news() {
  uint64_t count = 0;
  return read(news_.get(), &count, sizeof count) == sizeof count;
}

// First all are opened, which is quick; then all are searched, as programs wait for that; then each gets its table. Who waits is told when there is
// something to tell, but not of each.
void Images::work() {
  using std::chrono::steady_clock;
  constexpr auto pause = std::chrono::milliseconds(5);
  __atomic_store_n(&tid_, gettid(), __ATOMIC_RELAXED);
  auto told = steady_clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ends_) to_search_.clear(), to_prepare_.clear();
    changed_.wait(lock, [&] { return quits_ || !to_open_.empty() || !to_search_.empty() || !to_prepare_.empty(); });
    std::deque<Work>& from = !to_open_.empty() ? to_open_ : !to_search_.empty() ? to_search_ : to_prepare_;
    if (from.empty()) return;
    Work w = std::move(from.front());
    from.pop_front();
    at_work_ = &from == &to_open_ ? Stage::Wanted : &from == &to_search_ ? Stage::Opened : Stage::Searched;
    lock.unlock();
    if (&from == &to_open_) open(w);
    else if (&from == &to_search_) search(*w.known);
    else prepare(*w.known);
    lock.lock();
    at_work_ = Stage::Ready;
    bool is_over = from.empty();
    if (is_over || (w.first && &from != &to_open_) || steady_clock::now() >= told + pause)
      tell(), told = steady_clock::now();
    if (is_over) changed_.notify_all();
    if (&from == &to_prepare_) continue;
    std::deque<Work>& to = &from == &to_open_ ? to_search_ : to_prepare_;
    to.insert(w.first ? to.begin() : to.end(), std::move(w));
  }
}

std::chrono::nanoseconds Images::delay() const {
  std::ifstream file(fmt::format("/proc/self/task/{}/schedstat", __atomic_load_n(&tid_, __ATOMIC_RELAXED)));
  int64_t ran = 0, waited = 0;
  file >> ran >> waited;
  return std::chrono::nanoseconds(waited);
}

void Images::wait_until_opened() {
  if (!thread_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return to_open_.empty() && at_work_ != Stage::Wanted; });
}

void Images::wait_until_ready() {
  if (!thread_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return to_open_.empty() && to_search_.empty() && to_prepare_.empty() && at_work_ == Stage::Ready; });
}

void Images::stop() {
  if (!thread_) return;
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  wait_until_opened();
}

}  // namespace weir::sample
