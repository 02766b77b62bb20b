#include "base/truncation.h"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace weir {

namespace {

constexpr uintptr_t page_size = 4096;
std::atomic<int> guards = 0;
struct sigaction before;

// The page of the fault becomes an anonymous one. Any other SIGBUS happens again, now with the action it had before.
void on_bus_error(int, siginfo_t* info, void*) {
  auto page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(info->si_addr) & ~(page_size - 1));
  if (info->si_code == BUS_ADRERR &&
      mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page)
    return;
  sigaction(SIGBUS, &before, nullptr);
}

}  // namespace

TruncationGuard::TruncationGuard() {
  if (guards++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &before);
}

TruncationGuard::~TruncationGuard() {
  if (--guards == 0) sigaction(SIGBUS, &before, nullptr);
}

}  // namespace weir
