// What there is to know of the images that sampled processes have mapped: how to unwind their code, and where it makes system calls that must be
// seen. A large program has hundreds of them, and all of their code may have to be read: a thread of its own does that, beside the programs.
//
//     wanted ── opened: its segments are known, and so is where an address lies ── searched: so are its sites ── ready: so is its table
//
// An image is the same for all processes: each is opened once, and its table put into the tables once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "process/memory.h"
#include "sample/shared.h"
#include "sample/sites.h"

namespace weir::sample {

enum class Stage : uint8_t { Wanted, Opened, Searched, Ready };

struct Known {
  Stage stage() const { return __atomic_load_n(&stage_, __ATOMIC_ACQUIRE); }
  // From Opened on. Null: the file is no image.
  std::shared_ptr<elf::Image> image;
  // From Searched on.
  Sites sites;
  // From Ready on.
  uint64_t table = 0;  // in the tables; 0: it has none

 private:
  friend class Images;
  Stage stage_ = Stage::Wanted;
};

class Images {
 public:
  explicit Images(Shared& shared);
  ~Images();
  // Null where the region is of no file. The first one to ask makes it wanted; `first`: before others.
  const Known* of(pid_t pid, const process::Region& region, bool first);
  // How long the thread has waited for a processor.
  std::chrono::nanoseconds delay() const;
  // Readable when some have got further: then take_news() says so, once.
  int news() const { return news_.get(); }
  bool take_news();
  // Waits until all are opened.
  void wait_until_opened();
  // … or ready.
  void wait_until_ready();
  // There is not much time left: what is not opened is, and no more. What the thread is at is not waited for.
  void stop();
  // In a copy of this process, where the thread does not exist.
  void forget_thread() { (void)thread_.release(); }

 private:
  struct FileKey {
    uint64_t device, inode;
    int64_t seconds, nanoseconds;
    auto operator<=>(const FileKey&) const = default;
  };
  struct Work {
    Known* known;
    pid_t pid;
    process::Region region;
    bool first;
  };
  void work();
  void open(const Work& w);
  void search(Known& known);
  void prepare(Known& known);
  void tell();
  Shared& shared_;
  std::map<FileKey, Known> known_;
  Known vdso_;
  Fd news_;
  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  std::deque<Work> to_open_, to_search_, to_prepare_;
  Stage at_work_ = Stage::Ready;  // on what there is of that stage, or all is done
  bool ends_ = false;             // none is searched or prepared any more
  bool quits_ = false;            // nor opened
  pid_t tid_ = 0;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace weir::sample
