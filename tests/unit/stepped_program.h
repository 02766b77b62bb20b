// A program that is executed one instruction at a time: its registers and its memory.
#pragma once

#include <cpuid.h>
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "accesses.h"

namespace weir::x86 {

struct Area {
  uint64_t begin, end;
  bool readable, writable;
  std::vector<std::byte> copy;  // of what can be written
};

class SteppedProgram {
 public:
  enum Streams { Quiet, Own };
  explicit SteppedProgram(std::vector<std::string> command, Streams streams = Quiet) {
    child_ = fork();
    if (child_ == 0) {
      std::vector<char*> arguments;
      for (std::string& word : command) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      // The kernel writes to the memory of restartable sequences whenever it likes.
      char tunables[] = "GLIBC_TUNABLES=glibc.pthread.rseq=0", locale[] = "LC_ALL=C";
      char* environment[] = {tunables, locale, nullptr};
      if (streams == Quiet && (!freopen("/dev/null", "r", stdin) || !freopen("/dev/null", "w", stdout))) _exit(126);
      ptrace(PTRACE_TRACEME, 0, 0, 0);
      execve(arguments[0], arguments.data(), streams == Quiet ? environment : environ);
      _exit(127);
    }
    is_stopped_ = wait();
  }
  ~SteppedProgram() {
    kill(child_, SIGKILL);
    int status;
    waitpid(child_, &status, 0);
  }
  SteppedProgram(const SteppedProgram&) = delete;
  SteppedProgram& operator=(const SteppedProgram&) = delete;

  bool is_stopped() const { return is_stopped_; }
  int exit_status() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_); }
  pid_t pid() const { return child_; }

  // Past the loader.
  void run_to_entry() {
    uint64_t entry = 0;
    std::ifstream vector(fmt::format("/proc/{}/auxv", child_), std::ios::binary);
    for (uint64_t pair[2]; vector.read(reinterpret_cast<char*>(pair), sizeof pair);)
      if (pair[0] == AT_ENTRY) entry = pair[1];
    auto at = reinterpret_cast<void*>(entry);
    long code = ptrace(PTRACE_PEEKTEXT, child_, at, 0);
    ptrace(PTRACE_POKETEXT, child_, at, (code & ~0xffL) | 0xcc);
    ptrace(PTRACE_CONT, child_, 0, 0);
    is_stopped_ = wait();
    user_regs_struct r = registers();
    ASSERT_EQ(r.rip, entry + 1);
    r.rip = entry;
    ptrace(PTRACE_SETREGS, child_, 0, &r);
    ptrace(PTRACE_POKETEXT, child_, at, code);
  }

  // False: the program has ended.
  bool step() {
    ptrace(PTRACE_SINGLESTEP, child_, 0, 0);
    return is_stopped_ = wait();
  }

  user_regs_struct registers() const {
    user_regs_struct r{};
    ptrace(PTRACE_GETREGS, child_, 0, &r);
    return r;
  }

  // The mask and vector registers.
  void read_vectors(Registers& r) const {
    alignas(64) static std::byte state[16384];
    iovec to{state, sizeof state};
    ASSERT_EQ(ptrace(PTRACE_GETREGSET, child_, NT_X86_XSTATE, &to), 0);
    auto at = [&](unsigned component) {
      unsigned size = 0, offset = 0, c, d;
      __cpuid_count(13, component, size, offset, c, d);
      return size && offset + size <= to.iov_len ? state + offset : nullptr;
    };
    for (int i = 0; i < 16; ++i) {
      memcpy(r.vec[i], state + 160 + 16 * i, 16);
      if (auto* upper = at(2)) memcpy(r.vec[i] + 16, upper + 16 * i, 16);
      if (auto* upper = at(6)) memcpy(r.vec[i] + 32, upper + 32 * i, 32);
      if (auto* others = at(7)) memcpy(r.vec[16 + i], others + 64 * i, 64);
    }
    if (auto* masks = at(5)) memcpy(r.mask, masks, sizeof r.mask);
    for (int i = 0; i < 8; ++i) memcpy(&r.mmx[i], state + 32 + 16 * i, 8);
  }

  size_t read(uint64_t address, std::span<std::byte> to) const {
    iovec local{to.data(), to.size()}, remote{reinterpret_cast<void*>(address), to.size()};
    ssize_t got = process_vm_readv(child_, &local, 1, &remote, 1, 0);
    return got < 0 ? 0 : static_cast<size_t>(got);
  }

  std::vector<Area> areas() const {
    std::vector<Area> all;
    std::ifstream maps(fmt::format("/proc/{}/maps", child_));
    for (std::string line; std::getline(maps, line);) {
      Area a{};
      char r, w;
      if (sscanf(line.c_str(), "%lx-%lx %c%c", &a.begin, &a.end, &r, &w) != 4) continue;
      a.readable = r == 'r', a.writable = w == 'w';
      all.push_back(std::move(a));
    }
    return all;
  }

 private:
  bool wait() { return waitpid(child_, &status_, 0) == child_ && WIFSTOPPED(status_) && WSTOPSIG(status_) == SIGTRAP; }

  pid_t child_;
  int status_ = 0;
  bool is_stopped_;
};

inline Registers of(const user_regs_struct& u) {
  Registers r{};
  const unsigned long long gpr[] = {u.rax, u.rcx, u.rdx, u.rbx, u.rsp, u.rbp, u.rsi, u.rdi,
                                    u.r8,  u.r9,  u.r10, u.r11, u.r12, u.r13, u.r14, u.r15};
  std::ranges::copy(gpr, r.gpr);
  r.flags = u.eflags, r.fs = u.fs_base, r.gs = u.gs_base;
  return r;
}

inline bool needs_vectors(const MemoryOperand& o) { return o.mask_in != MaskIn::Nothing || o.extent == Extent::Indexed; }

}  // namespace weir::x86
