// Injection: at the exec stop the kernel has mapped the program as it would natively. The stopped process maps the
// runtime and the space, gets a thread block, and goes on in the translation of its first instruction.

#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "engine/server.h"
#include "process/tracee.h"

namespace weir::engine {

namespace {

Result<> map(process::RemoteSyscalls& remote, const SharedMemory& memory, uint64_t address, int protection) {
  bool writable = protection & PROT_WRITE;
  TRY(int fd,
      remote.open(fmt::format("/proc/{}/fd/{}", getpid(), memory.file.get()), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
  size_t size = memory.mapping.size();
  auto mapped = remote.call("mmap", SYS_mmap, address, size, static_cast<uint64_t>(protection),
                            MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, static_cast<uint64_t>(fd), 0);
  if (!mapped) return fail("{}: the address range {:#x} that Weir needs is taken", mapped.error().what, address);
  TRY_VOID(remote.call("madvise", SYS_madvise, address, size, MADV_DONTDUMP));
  TRY_VOID(remote.call("close", SYS_close, static_cast<uint64_t>(fd)));
  return {};
}

// The table is indexed by the low 32 bits of an address: no two executable mappings may share them. The kernel places the
// program and its loader by chance, libraries come where there is room. So a loader that is in the way of the program is moved
// (it has not begun to run), and where a library would be, nothing is left free.
constexpr uint64_t low32 = 0xffffffff;

bool share_low_half(AppRange a, AppRange b) {
  uint64_t begin = a.begin.value & low32, other = b.begin.value & low32;
  return begin < other + b.size() && other < begin + a.size();
}

// A value of the auxiliary vector.
uint64_t auxiliary(pid_t pid, uint64_t type) {
  Fd fd(open(fmt::format("/proc/{}/auxv", pid).c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_auxv_t entry;
  while (fd && read(fd.get(), &entry, sizeof entry) == sizeof entry && entry.a_type != AT_NULL)
    if (entry.a_type == type) return entry.a_un.a_val;
  return 0;
}

// Where on the new program's stack the value of an entry is: behind argc, argv, 0, envp, 0.
uint64_t auxiliary_address(pid_t pid, uint64_t rsp, uint64_t type) {
  std::vector<uint64_t> words(8u << 20);
  words.resize(process::read(pid, rsp, std::as_writable_bytes(std::span(words))) / 8);
  size_t i = words.empty() ? 0 : 2 + words[0];
  while (i < words.size() && words[i]) i++;
  for (i++; i + 1 < words.size() && words[i]; i += 2)
    if (words[i] == type) return rsp + (i + 1) * 8;
  return 0;
}

Result<> move_loader(const process::Tracee& tracee, process::RemoteSyscalls& remote, user_regs_struct& regs,
                     std::span<const process::Region> regions, AppRange program) {
  uint64_t base = auxiliary(tracee.pid(), AT_BASE);
  auto first =
      std::find_if(regions.begin(), regions.end(), [&](const process::Region& r) { return r.range.begin.value == base; });
  if (!base || first == regions.end()) return {};
  auto last = first;
  while (last + 1 != regions.end() && (last + 1)->range.begin == last->range.end &&
         ((last + 1)->inode == first->inode || (last + 1)->inode == 0) && (last + 1)->path.find('[') == std::string::npos)
    ++last;
  if (!share_low_half({first->range.begin, last->range.end}, program)) return {};
  auto distance = static_cast<int64_t>((program.size() + (64u << 20)) & ~uint64_t{0xfff});
  for (auto r = first; r <= last; ++r)
    TRY_VOID(remote.call("mremap", SYS_mremap, r->range.begin.value, r->range.size(), r->range.size(),
                         MREMAP_MAYMOVE | MREMAP_FIXED,
                         static_cast<uint64_t>(static_cast<int64_t>(r->range.begin.value) - distance)));
  uint64_t moved = base - static_cast<uint64_t>(distance);
  uint64_t place = auxiliary_address(tracee.pid(), regs.rsp, AT_BASE);
  if (!place) return fail("{}: no room for its code", program_name(tracee.pid()));
  TRY_VOID(tracee.write(place, std::as_bytes(std::span(&moved, 1))));
  regs.rip -= static_cast<uint64_t>(distance);
  return {};
}

void keep_free(process::RemoteSyscalls& remote, AppRange program, uint64_t near) {
  for (uint64_t window = 0; window < 4; window++) {
    uint64_t at = ((near >> 32) - window) << 32 | (program.begin.value & low32);
    // Where something is mapped already the call fails: that cannot become code of a library.
    (void)remote.call("mmap", SYS_mmap, at & ~uint64_t{0xfff}, program.size(), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, ~0ull, 0);
  }
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
  uint64_t entry_point = auxiliary(pid, AT_ENTRY);
  TRY(auto regions, process::regions(pid));
  auto program = std::find_if(regions.begin(), regions.end(),
                              [&](const process::Region& r) { return r.range.contains({entry_point}); });
  if (program == regions.end()) return fail("{}: its entry point is not mapped", program_name(pid));
  TRY(auto remote, process::RemoteSyscalls::begin(tracee, entry_point));
  TRY_VOID(move_loader(tracee, remote, regs, regions, program->range));
  if (regs.rip >> 32 != entry_point >> 32) keep_free(remote, program->range, regs.rip);
  auto image = open_image(pid, *program);
  bool sanitized = image && (*image)->uses_address_sanitizer();
  TRY(auto made, Space::create(options_.make_tool(), sanitized ? rt::high_table_base : rt::table_base));
  std::shared_ptr<Space> space = std::move(made);
  TRY(regions, process::regions(pid));
  TRY_VOID(space->cover(regions));
  TRY_VOID(map(remote, runtime_, rt::runtime_base, PROT_READ | PROT_EXEC));
  TRY_VOID(map(remote, blocks_, rt::blocks_base, PROT_READ | PROT_WRITE));
  TRY_VOID(map(remote, space->table(), space->table_address(), PROT_READ));
  TRY_VOID(map(remote, space->page(), rt::space_base, PROT_READ));
  for (const Arena& a : space->arenas()) TRY_VOID(map(remote, a.memory, a.base.value, PROT_READ | PROT_EXEC));
  TRY_VOID(remote.end());

  uint32_t slot = allocate_slot(pid, pid);
  if (!slot) return fail("too many threads");
  slots_[slot] = {SlotState::Running, pid, pid, 0, nullptr};
  rt::ThreadBlock* tb = block(slot);
  tb->pid = tb->tid = static_cast<uint32_t>(pid);
  Process& p = processes_[pid];
  p.pid = pid;
  if (!p.pidfd) p.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  p.space = space;
  p.program = program_name(pid);
  p.slots = {slot};
  p.first_slot = slot;
  p.memory = ++next_memory_;
  p.quiet = false;
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
