// The code of this very process, with its unwind tables, and guarded reads that survive: what the walker is given in a test or in a
// benchmark.
#pragma once

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "guarded_memory.h"
#include "sample_memory.h"
#include "unwind/table.h"

namespace weir::test {

class OwnCode {
 public:
  OwnCode() {
    dl_iterate_phdr(add, this);
    std::ranges::sort(ranges_, {}, &rt::CodeRange::begin);
  }
  rt::Code code() const { return {ranges_.data(), static_cast<uint32_t>(ranges_.size()), 1}; }

 private:
  static int add(dl_phdr_info* info, size_t, void* self) {
    static_cast<OwnCode*>(self)->add(*info);
    return 0;
  }
  void add(const dl_phdr_info& info) {
    std::string path = *info.dlpi_name ? info.dlpi_name : "/proc/self/exe";
    auto image = path.starts_with("linux-vdso") ? vdso(info.dlpi_addr) : elf::Image::open(open_to_read(path), path);
    if (!image) return;
    auto table = unwind::compile(**image);
    if (!table) return;
    tables_.push_back(std::move(*table));
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& p = info.dlpi_phdr[i];
      if (p.p_type != PT_LOAD || !(p.p_flags & PF_X)) continue;
      ranges_.push_back({info.dlpi_addr + p.p_vaddr, info.dlpi_addr + p.p_vaddr + p.p_memsz, info.dlpi_addr,
                         reinterpret_cast<const rt::TableHead*>(tables_.back().data())});
    }
  }
  static Result<std::unique_ptr<elf::Image>> vdso(uint64_t address) {
    auto base = reinterpret_cast<const std::byte*>(address);
    auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
    return elf::Image::from_memory({base, base + header->e_shoff + header->e_shnum * sizeof(ElfW(Shdr))}, "[vdso]");
  }

  std::deque<std::vector<std::byte>> tables_;
  std::vector<rt::CodeRange> ranges_;
};

inline rt::State state_of(const ucontext_t& c) {
  auto reg = [&](int i) { return static_cast<uint64_t>(c.uc_mcontext.gregs[i]); };
  return {reg(REG_RIP), reg(REG_RSP), reg(REG_RBP), true,
          reinterpret_cast<const rt::SavedRegisters*>(&c.uc_mcontext.gregs)};
}

// The stack of the calling thread.
inline rt::Stack own_stack() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<uint64_t>(low), reinterpret_cast<uint64_t>(low) + size};
}

// A guarded read that faults goes on where it says; another fault ends the process.
inline void survive_reads() {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = [](int sig, siginfo_t*, void* context) {
    auto& rip = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
    uint64_t landing = rt::landing_of(static_cast<uint64_t>(rip));
    if (landing) rip = static_cast<int64_t>(landing);
    else signal(sig, SIG_DFL);
  };
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace weir::test
