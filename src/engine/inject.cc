// Injection: at the exec stop the kernel has mapped the program as it would natively. The stopped process maps the
// runtime and the space, gets a thread block, and goes on in the translation of its first instruction.

#include <fcntl.h>
#include <sys/syscall.h>

#include "engine/server.h"
#include "process/tracee.h"

namespace weir::engine {

namespace {

Result<> map(process::RemoteSyscalls& remote, const SharedMemory& memory, uint64_t address, int protection) {
  bool writable = protection & PROT_WRITE;
  TRY(int fd, remote.open(fmt::format("/proc/{}/fd/{}", getpid(), memory.file.get()), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
  size_t size = memory.mapping.size();
  auto mapped = remote.call("mmap", SYS_mmap, address, size, static_cast<uint64_t>(protection), MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, static_cast<uint64_t>(fd), 0);
  if (!mapped) return fail("{}: the address range {:#x} that Weir needs is taken", mapped.error().what, address);
  TRY_VOID(remote.call("madvise", SYS_madvise, address, size, MADV_DONTDUMP));
  TRY_VOID(remote.call("close", SYS_close, static_cast<uint64_t>(fd)));
  return {};
}

}  // namespace

std::string program_name(pid_t pid) {
  char name[4096];
  ssize_t n = readlink(fmt::format("/proc/{}/exe", pid).c_str(), name, sizeof name);
  return n > 0 ? std::string(name, static_cast<size_t>(n)) : "?";
}

Result<> Server::inject(pid_t pid) {
  process::Tracee tracee(pid);
  TRY(user_regs_struct regs, tracee.registers());
  constexpr uint64_t cs_64 = 0x33;
  if (regs.cs != cs_64) return fail("{}: a 32-bit program; Weir runs 64-bit x86 programs", program_name(pid));
  TRY(auto regions, process::regions(pid));
  TRY(auto made, Space::create(options_.make_tool(), pid));
  std::shared_ptr<Space> space = std::move(made);
  TRY_VOID(space->cover(regions));

  TRY(auto remote, process::RemoteSyscalls::begin(tracee));
  TRY_VOID(map(remote, runtime_, rt::runtime_base, PROT_READ | PROT_EXEC));
  TRY_VOID(map(remote, blocks_, rt::blocks_base, PROT_READ | PROT_WRITE));
  TRY_VOID(map(remote, space->table(), rt::table_base, PROT_READ));
  TRY_VOID(map(remote, space->page(), rt::space_base, PROT_READ));
  for (const Arena& a : space->arenas()) TRY_VOID(map(remote, a.memory, a.base.value, PROT_READ | PROT_EXEC));
  TRY_VOID(remote.end());

  uint32_t slot = allocate_slot(pid, pid);
  if (!slot) return fail("too many threads");
  slots_[slot] = {SlotState::Running, pid, pid};
  rt::ThreadBlock* tb = block(slot);
  tb->pid = tb->tid = static_cast<uint32_t>(pid);
  Process& p = processes_[pid];
  p.pid = pid;
  if (!p.pidfd) p.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  p.space = space;
  p.program = program_name(pid);
  p.slots = {slot};
  p.first_slot = slot;
  stats_.processes++;
  stats_.threads++;
  TRY(CachePc entry, space->translate({regs.rip}, pid));
  regs.rip = entry.value;
  regs.gs_base = rt::blocks_base + slot * rt::block_stride;
  regs.orig_rax = ~0ull;
  TRY_VOID(tracee.set_registers(regs));
  return {};
}

}  // namespace weir::engine
