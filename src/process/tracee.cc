#include "process/tracee.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/fd.h"
#include "process/memory.h"
#include "process/threads.h"

namespace weir::process {

namespace {
// A stop. How the process has ended is never taken: others ask for that. No status: WNOHANG is in `options`, and nothing has happened.
Result<std::optional<int>> wait_with(pid_t pid, int options) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WEXITED | WNOWAIT | __WALL | options))
      return fail_errno("process {}: cannot be waited for", pid);
    if (!info.si_pid) return std::nullopt;
    if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
      return fail("process {} has ended", pid);
    info = {};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG | __WALL))
      return fail_errno("process {}: cannot be waited for", pid);
    if (info.si_pid) return W_STOPCODE(info.si_status);
  }
}
}  // namespace

Result<int> wait_stop(pid_t pid) {
  TRY(auto status, wait_with(pid, 0));
  return *status;
}

Result<std::optional<int>> wait_stop(pid_t pid, std::chrono::milliseconds patience) {
  auto end = std::chrono::steady_clock::now() + patience;
  for (timespec t{0, 20'000};; nanosleep(&t, nullptr)) {
    TRY(auto status, wait_with(pid, WNOHANG));
    if (status || std::chrono::steady_clock::now() > end) return status;
  }
}

Result<user_regs_struct> Tracee::registers() const {
  user_regs_struct regs;
  if (ptrace(PTRACE_GETREGS, pid_, 0, &regs)) return fail_errno("process {}: cannot read registers", pid_);
  return regs;
}

Result<> Tracee::set_registers(const user_regs_struct& regs) const {
  if (ptrace(PTRACE_SETREGS, pid_, 0, &regs)) return fail_errno("process {}: cannot set registers", pid_);
  return {};
}

Result<uint64_t> Tracee::block_signals() const {
  uint64_t mask = 0, all = ~uint64_t{0};
  if (ptrace(PTRACE_GETSIGMASK, pid_, sizeof mask, &mask) || ptrace(PTRACE_SETSIGMASK, pid_, sizeof all, &all))
    return fail_errno("process {}: cannot block signals", pid_);
  return mask;
}

Result<> Tracee::detach(int signal) const {
  if (ptrace(PTRACE_DETACH, pid_, 0, signal)) return fail_errno("process {}: cannot detach", pid_);
  return {};
}

void Tracee::end() const {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, __WALL);
}

Result<> Tracee::write(uint64_t address, std::span<const std::byte> bytes) const {
  iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()}, remote{reinterpret_cast<void*>(address), bytes.size()};
  if (process_vm_writev(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno("process {}: cannot write memory", pid_);
  return {};
}

Result<> exchange_zmm31(pid_t tid, uint32_t offset, std::span<uint8_t, 64> value) {
  constexpr size_t in_use = 512, first_in_area = 16, area_size = 1024;
  constexpr uint64_t area_bit = 1 << 7;
  std::vector<std::byte> state(64 << 10);
  iovec io{state.data(), state.size()};
  if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io)) return fail_errno("thread {}: cannot read vector registers", tid);
  size_t area = offset - (31 - first_in_area) * 64;
  if (area > io.iov_len || io.iov_len < area + area_size) return fail("thread {}: has no AVX-512 registers", tid);
  auto* bits = reinterpret_cast<uint64_t*>(state.data() + in_use);
  if (!(*bits & area_bit)) memset(state.data() + area, 0, area_size);
  *bits |= area_bit;
  std::swap_ranges(value.begin(), value.end(), reinterpret_cast<uint8_t*>(state.data() + offset));
  if (ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &io)) return fail_errno("thread {}: cannot set vector registers", tid);
  return {};
}

// rbx: the first FileMapping, rbp: how many. In the end r13 is the last result, and rbp how many were not mapped.
asm(R"(
    .pushsection .rodata
    .type weir_map_files, @object
weir_map_files:
1:  mov   $-1, %eax
    testb $0x20, 32(%rbx)       # MAP_ANONYMOUS
    jnz   3f
    lea   40(%rbx), %rdi
    mov   (%rbx), %rsi
    mov   $2, %eax              # open
    syscall
    mov   %rax, %r13
    test  %rax, %rax
    js    2f
3:  mov   %eax, %r12d
    mov   8(%rbx), %rdi
    mov   16(%rbx), %rsi
    mov   24(%rbx), %rdx
    mov   32(%rbx), %r10
    mov   %eax, %r8d
    xor   %r9d, %r9d
    mov   $9, %eax              # mmap
    syscall
    mov   %rax, %r13
    mov   %r12d, %edi
    mov   $3, %eax              # close
    syscall
    test  %r13, %r13
    js    2f
    add   $80, %rbx
    dec   %rbp
    jnz   1b
2:  mov   $39, %eax             # getpid
    syscall
    mov   %eax, %edi
    mov   $186, %eax            # gettid
    syscall
    mov   %eax, %esi
    mov   $19, %edx             # SIGSTOP: it can be neither blocked nor ignored
    mov   $234, %eax            # tgkill
    syscall
weir_map_files_stop:
    ud2                         # where that is not allowed
weir_map_files_end:
    .popsection
)");
extern "C" const std::byte weir_map_files[], weir_map_files_stop[], weir_map_files_end[];

namespace {

// Code can be written, too.
Result<> exchange(int memory, uint64_t address, std::span<std::byte> bytes) {
  std::vector<std::byte> old(bytes.size());
  auto size = static_cast<ssize_t>(bytes.size());
  if (pread(memory, old.data(), old.size(), static_cast<off_t>(address)) != size ||
      pwrite(memory, bytes.data(), bytes.size(), static_cast<off_t>(address)) != size)
    return fail_errno("cannot write code at {:#x}", address);
  std::ranges::copy(old, bytes.begin());
  return {};
}

}  // namespace

Result<> map_files(const Tracee& tracee, uint64_t page, std::span<const FileMapping> files) {
  static_assert(offsetof(FileMapping, path) == 40 && sizeof(FileMapping) == 80);
  TRY(auto regs, tracee.registers());
  regs.orig_rax = ~0ull, regs.rax = 0;  // execve is done
  const user_regs_struct saved = regs;
  TRY(uint64_t mask, tracee.block_signals());
  std::vector<std::byte> bytes(weir_map_files, weir_map_files_end);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  regs.rip = page;
  regs.rbx = page + bytes.size();
  regs.rbp = files.size();
  auto list = std::as_bytes(files);
  bytes.insert(bytes.end(), list.begin(), list.end());
  Fd memory(::open(fmt::format("/proc/{}/mem", tracee.pid()).c_str(), O_RDWR | O_CLOEXEC));
  TRY_VOID(exchange(memory.get(), page, bytes));
  TRY_VOID(tracee.set_registers(regs));
  uint64_t stop = page + static_cast<uint64_t>(weir_map_files_stop - weir_map_files);
  for (int signal = 0;;) {
    if (ptrace(PTRACE_CONT, tracee.pid(), 0, signal)) return fail_errno("process {}: cannot continue", tracee.pid());
    TRY(int status, wait_stop(tracee.pid()));
    TRY(regs, tracee.registers());
    if (regs.rip == stop) break;
    signal = status >> 16 ? 0 : WSTOPSIG(status);  // SIGSTOP of others takes effect when the tracee is let go
  }
  TRY_VOID(exchange(memory.get(), page, bytes));
  TRY_VOID(tracee.set_registers(saved));
  if (ptrace(PTRACE_SETSIGMASK, tracee.pid(), sizeof mask, &mask))
    return fail_errno("process {}: cannot restore the signal mask", tracee.pid());
  if (!regs.rbp) return {};
  errno = -static_cast<int>(regs.r13);
  const FileMapping& failed = files[files.size() - regs.rbp];
  return fail_errno("process {}: Weir's memory cannot be mapped at {:#x}", tracee.pid(), failed.address);
}

namespace {
constexpr uint64_t syscall_code = 0x050f, syscall_mask = 0xffff;
}  // namespace

uint64_t find_syscall(pid_t pid) {
  auto all = regions(pid);
  if (!all) return 0;
  std::ranges::stable_partition(*all, [](const Region& r) { return r.path == "[vdso]"; });
  std::vector<std::byte> bytes(64 << 10);
  for (const Region& r : *all)
    for (uint64_t at = r.range.begin.value; r.executable && r.path != "[vsyscall]" && at < r.range.end.value;
         at += bytes.size()) {
      size_t n = read(pid, at, std::span(bytes).first(std::min<size_t>(bytes.size(), r.range.end.value - at)));
      for (size_t i = 0; i + 1 < n; i++)
        if (bytes[i] == std::byte{0x0f} && bytes[i + 1] == std::byte{0x05}) return at + i;
    }
  return 0;
}

namespace {
constexpr auto set_dispatch_config = static_cast<__ptrace_request>(0x4210),
               get_dispatch_config = static_cast<__ptrace_request>(0x4211);
}  // namespace

std::optional<DispatchConfig> dispatch_of(pid_t tid) {
  DispatchConfig config{};
  if (ptrace(get_dispatch_config, tid, sizeof config, &config) || !config.mode) return {};
  return config;
}

void set_dispatch(pid_t tid, const DispatchConfig& config) { ptrace(set_dispatch_config, tid, sizeof config, &config); }

Result<RemoteSyscalls> RemoteSyscalls::begin(const Tracee& tracee, uint64_t at) {
  TRY(auto regs, tracee.registers());
  ptrace(PTRACE_SETOPTIONS, tracee.pid(), 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  errno = 0;
  auto code = static_cast<uint64_t>(ptrace(PTRACE_PEEKTEXT, tracee.pid(), at, 0));
  if (errno) return fail_errno("process {}: cannot read code", tracee.pid());
  if ((code & syscall_mask) != syscall_code &&
      ptrace(PTRACE_POKETEXT, tracee.pid(), at, (code & ~syscall_mask) | syscall_code))
    return fail_errno("process {}: cannot write code", tracee.pid());
  TRY(uint64_t mask, tracee.block_signals());
  auto dispatch = dispatch_of(tracee.pid());
  if (dispatch) set_dispatch(tracee.pid(), {});
  return RemoteSyscalls(tracee, regs, at, code, mask, dispatch);
}

Result<> RemoteSyscalls::end() {
  if (std::exchange(ended_, true)) return {};
  if ((code_ & syscall_mask) != syscall_code && ptrace(PTRACE_POKETEXT, tracee_.pid(), at_, code_))
    return fail_errno("process {}: cannot restore code", tracee_.pid());
  TRY_VOID(tracee_.set_registers(saved_));
  if (dispatch_) set_dispatch(tracee_.pid(), *dispatch_);
  if (ptrace(PTRACE_SETSIGMASK, tracee_.pid(), sizeof mask_, &mask_))
    return fail_errno("process {}: cannot restore the signal mask", tracee_.pid());
  return is_in_restart(saved_) ? stop_anew() : Result<>{};
}

// A call is begun again by the kernel on its way from a signal, or from a stop like one: there, not behind the last of our calls.
Result<> RemoteSyscalls::stop_anew() {
  if (ptrace(PTRACE_INTERRUPT, tracee_.pid(), 0, 0) || ptrace(PTRACE_CONT, tracee_.pid(), 0, 0))
    return fail_errno("process {}: cannot be stopped", tracee_.pid());
  TRY_VOID(wait_stop(tracee_.pid()));
  return {};
}

Result<uint64_t> RemoteSyscalls::call(const char* name, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                      uint64_t f) {
  user_regs_struct regs = saved_;
  regs.orig_rax = ~0ull;  // no system call is under way that the kernel could restart
  regs.rip = at_;
  regs.rax = static_cast<uint64_t>(nr);
  regs.rdi = a, regs.rsi = b, regs.rdx = c, regs.r10 = d, regs.r8 = e, regs.r9 = f;
  TRY_VOID(tracee_.set_registers(regs));
  for (int stops = 0, signal = 0; stops < 2;) {  // at its begin and at its end
    if (ptrace(PTRACE_SYSCALL, tracee_.pid(), 0, signal)) return fail_errno("process {}: cannot continue", tracee_.pid());
    TRY(int status, wait_stop(tracee_.pid()));
    bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    stops += is_call;
    // All signals are blocked but SIGSTOP: it takes effect when the tracee is let go.
    signal = is_call || status >> 16 ? 0 : WSTOPSIG(status);
  }
  TRY(user_regs_struct after, tracee_.registers());
  auto result = static_cast<int64_t>(after.rax);
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return fail_errno("process {}: {}", tracee_.pid(), name);
  }
  return after.rax;
}

// The path is written over what is on top of the stack, which is there for sure, and that is put back.
Result<int> RemoteSyscalls::open(const std::string& path, int flags) {
  std::vector<std::byte> kept(path.size() + 1);
  if (read(tracee_.pid(), saved_.rsp, kept) != kept.size()) return fail("process {}: cannot read its stack", tracee_.pid());
  TRY_VOID(tracee_.write(saved_.rsp, std::as_bytes(std::span(path.c_str(), path.size() + 1))));
  auto fd = call("open", SYS_open, saved_.rsp, static_cast<uint64_t>(flags));
  TRY_VOID(tracee_.write(saved_.rsp, kept));
  if (!fd) return std::unexpected(fd.error());
  return static_cast<int>(*fd);
}

namespace {

// What recvmsg(2) needs in the tracee, and what it leaves there.
struct Receiving {
  int sockets[2];
  char byte;
  iovec part;
  msghdr head;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

Receiving receiving_at(uint64_t at) {
  auto pointer = [at](size_t offset) { return reinterpret_cast<void*>(at + offset); };
  Receiving r{};
  r.part = {pointer(offsetof(Receiving, byte)), 1};
  r.head.msg_iov = static_cast<iovec*>(pointer(offsetof(Receiving, part)));
  r.head.msg_iovlen = 1;
  r.head.msg_control = pointer(offsetof(Receiving, control));
  r.head.msg_controllen = sizeof r.control;
  return r;
}

Result<> send_descriptor(int socket, int file) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr head{};
  head.msg_iov = &part, head.msg_iovlen = 1;
  head.msg_control = control, head.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&head);
  c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(c), &file, sizeof file);
  if (sendmsg(socket, &head, MSG_NOSIGNAL) < 0) return fail_errno("a descriptor cannot be sent");
  return {};
}

// A copy of a descriptor of the process.
Result<Fd> copy_of(pid_t tid, int fd) {
  pid_t pid = static_cast<pid_t>(strtol(status_word(tid, "Tgid").c_str(), nullptr, 10));
  Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  if (!copy) return fail_errno("process {}: pidfd_getfd", pid);
  return copy;
}

}  // namespace

Result<int> RemoteSyscalls::receive(int file) {
  pid_t tid = tracee_.pid();
  Receiving r{};
  std::vector<std::byte> kept(sizeof r);
  auto bytes_of = [&] { return std::as_writable_bytes(std::span(&r, 1)); };
  if (read(tid, saved_.rsp, kept) != kept.size()) return fail("process {}: cannot read its stack", tid);
  auto passed = [&]() -> Result<int> {
    TRY_VOID(call("socketpair", SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, saved_.rsp));
    int sockets[2] = {};
    if (read(tid, saved_.rsp, std::as_writable_bytes(std::span(sockets))) != sizeof sockets)
      return fail("process {}: cannot read its stack", tid);
    auto sent = [&]() -> Result<uint64_t> {
      TRY(Fd ours, copy_of(tid, sockets[1]));
      TRY_VOID(send_descriptor(ours.get(), file));
      r = receiving_at(saved_.rsp);
      TRY_VOID(tracee_.write(saved_.rsp, bytes_of()));
      return call("recvmsg", SYS_recvmsg, static_cast<uint64_t>(sockets[0]), saved_.rsp + offsetof(Receiving, head),
                  MSG_CMSG_CLOEXEC);
    }();
    for (int s : sockets) (void)call("close", SYS_close, static_cast<uint64_t>(s));
    if (!sent) return std::unexpected(sent.error());
    if (read(tid, saved_.rsp, bytes_of()) != sizeof r) return fail("process {}: cannot read its stack", tid);
    int received = -1;
    if (r.head.msg_controllen < CMSG_LEN(sizeof received)) return fail("process {}: it has no room for a descriptor", tid);
    memcpy(&received, r.control + CMSG_LEN(0), sizeof received);
    return received;
  }();
  TRY_VOID(tracee_.write(saved_.rsp, kept));
  return passed;
}

}  // namespace weir::process
