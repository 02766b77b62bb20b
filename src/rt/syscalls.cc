// The system calls that concern the engine. All others run where they stand in the translated code, natively.
//
// The code of a call whose number is not known beforehand, or is one of these:
//     lea rcx, [inline]; jmp gs:[enter_syscall]; inline: syscall; …
// (rcx is overwritten by the instruction anyway). What is none of our business goes back to `inline`, so that signals
// find the thread at an exact place even when the call blocks; what we have done ourselves goes on behind it.

#include "rt/runtime.h"
#include "rt/virtual_clock.h"
#include "rt/where.h"

namespace weir::rt {

namespace {

constexpr uint64_t syscall_length = 2;
constexpr uint64_t page_size = 4096;
constexpr uint64_t entry_length = 15;  // of the instructions before `inline`
constexpr int64_t restart = -512;      // no error that a program ever sees: the kernel's ERESTARTSYS
constexpr uint64_t PROT_WRITE = 2, PROT_EXEC = 4, PROT_GROWSDOWN = 0x01000000, MREMAP_FIXED = 2;
constexpr uint64_t CLONE_SETTLS = 0x80000;
constexpr uint64_t MAP_PRIVATE = 2, MAP_TYPE = 15, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20, MAP_32BIT = 0x40,
                   MAP_FIXED_NOREPLACE = 0x100000;

uint64_t whole_pages(uint64_t size) { return (size + page_size - 1) & ~(page_size - 1); }

// Does [begin, begin + size) touch translated code?
bool is_translated(uint64_t begin, uint64_t size) {
  const auto* page = reinterpret_cast<const volatile SpacePage*>(space_base);
  for (;;) {
    uint32_t version = page->version;
    bool hit = page->count > max_ranges;
    for (uint32_t i = 0; !hit && i < page->count; i++)
      hit = begin < page->ranges[i].end && begin + size > page->ranges[i].begin;
    if (version % 2 == 0 && page->version == version) return hit;
  }
}

// Is some of [begin, begin + size) known to be executable, or to have been? All of it?
struct KnownCode {
  bool any = false, all = false;
  uint64_t end = 0;  // of the stretch that has all of it
};
KnownCode known_code(uint64_t begin, uint64_t size) {
  const auto* page = reinterpret_cast<const volatile SpacePage*>(space_base);
  for (;;) {
    uint32_t version = page->version;
    KnownCode known{page->code_count > max_code};
    for (uint32_t i = 0; i < page->code_count && i < max_code && !known.all; i++) {
      known.any |= begin < page->code[i].end && begin + size > page->code[i].begin;
      known.all = begin >= page->code[i].begin && begin + size <= page->code[i].end;
      if (known.all) known.end = page->code[i].end;
    }
    if (version % 2 == 0 && page->version == version) return known;
  }
}

struct Changes {
  struct {
    uint64_t begin, size;
  } ranges[2];
  int count = 0;
  uint64_t protection = 0;
  void add(uint64_t begin, uint64_t size) { ranges[count++] = {begin, size}; }
  void announce(ThreadBlock* tb, bool no_code = false) const {
    for (int i = 0; i < count; i++)
      if (is_translated(ranges[i].begin, ranges[i].size) || (no_code && known_code(ranges[i].begin, ranges[i].size).any))
        ask(tb, ChangeRequest{{ranges[i].begin, ranges[i].begin + ranges[i].size}, no_code, protection});
  }
};

// The first part of [begin, end) that is ours; an empty one at `end`: nothing is.
Range next_of_ours(uint64_t begin, uint64_t end) {
  const auto* page = reinterpret_cast<const volatile SpacePage*>(space_base);
  auto part = [&](uint64_t from, uint64_t to) { return Range{from > begin ? from : begin, to < end ? to : end}; };
  for (;;) {
    uint32_t version = page->version;
    Range first{end, end};
    if (begin < blocks_base && end > runtime_base) first = part(runtime_base, blocks_base);
    for (uint32_t i = 0; i < page->own_count && i < max_own; i++)
      if (begin < page->own[i].end && first.begin > page->own[i].begin) first = part(page->own[i].begin, page->own[i].end);
    if (version % 2 == 0 && page->version == version) return first;
  }
}

bool is_ours(uint64_t begin, uint64_t size) {
  Range first = next_of_ours(begin, begin + size);
  return first.begin < first.end;
}

bool is_claimed(uint64_t begin, uint64_t size) {
  const auto* page = reinterpret_cast<const volatile SpacePage*>(space_base);
  for (;;) {
    uint32_t version = page->version;
    bool is_claim = begin < page->claim.end && page->claim.begin < begin + size;
    if (version % 2 == 0 && page->version == version) return is_claim;
  }
}

// (The claim is read first: it is part of what is ours before it ends.)
bool is_free(uint64_t begin, uint64_t size) { return !is_claimed(begin, size) && !is_ours(begin, size); }

// Weir may claim addresses for a new code cache at any time, as it answers another thread: see Space::claim. What the program is about to
// change is told before we look whether it is claimed. (What the kernel chooses need not be: Weir's mapping replaces nothing.)
class Taking {
 public:
  Taking(ThreadBlock* tb, uint64_t begin, uint64_t size) : tb_(tb) {
    __atomic_store_n(&tb->taking.begin, begin, __ATOMIC_RELAXED);
    __atomic_store_n(&tb->taking.end, size ? begin + size : 0, __ATOMIC_SEQ_CST);
  }
  ~Taking() { __atomic_store_n(&tb_->taking.end, 0, __ATOMIC_RELEASE); }
  Taking(const Taking&) = delete;

 private:
  ThreadBlock* tb_;
};

// Memory that a call has made executable is told before anybody can go there.
void announce_code(ThreadBlock* tb, uint64_t begin, uint64_t size) {
  size = whole_pages(size);
  if (!known_code(begin, size).all) ask(tb, ExecutableRequest{{begin, begin + size}});
}

// A loader that maps a library anywhere maps it where Weir wants it: at the same place in every run. Elsewhere if that is taken.
int64_t place(ThreadBlock* tb, const uint64_t* a) {
  constexpr uint64_t elsewhere = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_ANONYMOUS | MAP_32BIT;
  constexpr uint32_t elf_magic = 0x464c457f;
  constexpr uint16_t shared_object = 3;
  struct {
    uint32_t magic, words[3];
    uint16_t type;
  } head{};
  bool may_place = !a[0] && (a[3] & MAP_TYPE) == MAP_PRIVATE && !(a[3] & elsewhere) && !a[5] && !tb->quiet;
  if (!may_place || sys(SYS_pread64, a[4], address(&head), 18) != 18 || head.magic != elf_magic ||
      head.type != shared_object)
    return -EEXIST;
  for (uint64_t attempt = 0; attempt < 8; attempt++) {
    uint64_t at = ask(tb, PlaceRequest{int64_t(a[4]), a[1], attempt}).begin;
    if (!at) break;
    Taking taking(tb, at, whole_pages(a[1]));
    if (!is_free(at, a[1])) continue;
    int64_t result = own_call(tb, SYS_mmap, at, a[1], a[2], a[3] | MAP_FIXED_NOREPLACE, a[4], a[5]);
    if (result != -EEXIST) return result;
  }
  return -EEXIST;
}

// Code that may be anywhere must be where the table has room for it: see GiveRequest.
bool has_room_in_table(uint64_t begin, uint64_t size) {
  const auto* page = reinterpret_cast<const volatile SpacePage*>(space_base);
  for (uint32_t i = 0; i < page->given_count && i < max_given; i++) {
    uint64_t low = page->given[i].begin;
    if (uint32_t(begin - low) < page->given[i].end - low || uint32_t(low - begin) < size) return false;
  }
  return true;
}
int64_t move_code(ThreadBlock* tb, const uint64_t* a, int64_t result) {
  constexpr uint64_t step = 16 << 20, tries = 256;
  if (a[0] || !(a[2] & PROT_EXEC) || (a[3] & (MAP_FIXED | MAP_32BIT)) || is_error(result)) return result;
  auto from = uint64_t(result);
  for (uint64_t to = from; to > from - tries * step && !has_room_in_table(uint64_t(result), a[1]); to -= step) {
    Taking taking(tb, to, whole_pages(a[1]));
    if (!has_room_in_table(to, a[1]) || !is_free(to, a[1])) continue;
    int64_t moved = sys(SYS_mmap, to, a[1], a[2], a[3] | MAP_FIXED_NOREPLACE, a[4], a[5]);
    if (is_error(moved)) continue;
    sys(SYS_munmap, from, a[1]);
    return moved;
  }
  return result;
}

// What was translated is forgotten before its memory changes, and, as another thread may have run it meanwhile, once more after.
int64_t mapping_call(ThreadBlock* tb, int64_t nr, const uint64_t* a) {
  bool is_mmap = nr == SYS_mmap, is_mremap = nr == SYS_mremap;
  Changes changes;
  if (!is_mmap || (a[3] & MAP_FIXED)) changes.add(a[0], a[1]);
  if (is_mremap && (a[3] & MREMAP_FIXED)) changes.add(a[4], a[2]);
  bool is_protect = nr == SYS_mprotect || nr == SYS_pkey_mprotect;
  if (is_protect) changes.protection = a[2];
  changes.announce(tb);
  bool moves_code = is_mremap && known_code(a[0], a[1]).any;
  int64_t result = is_mmap ? place(tb, a) : -EEXIST;
  if (result == -EEXIST) result = own_call(tb, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (is_mmap) result = move_code(tb, a, result);
  bool is_executable = is_mremap ? moves_code : nr != SYS_munmap && (a[2] & PROT_EXEC);
  if (is_executable && is_protect && (is_error(result) || (a[2] & PROT_GROWSDOWN)))
    ask(tb, ExecutableRequest{});  // it may have changed more than it was told to, or less
  is_executable &= !is_error(result);
  changes.announce(tb, !is_error(result) && (nr == SYS_munmap || is_mremap || (is_mmap && !is_executable)));
  // (What the program may write to is looked at when it comes to be executed.)
  bool is_code = is_mmap && (a[2] & (PROT_WRITE | PROT_EXEC)) == PROT_EXEC && (a[3] & MAP_TYPE) == MAP_PRIVATE &&
                 !(a[3] & MAP_ANONYMOUS);
  if (is_code && !is_error(result)) ask(tb, MappedRequest{uint64_t(result), a[1], a[5], int64_t(a[4])});
  if (is_executable) announce_code(tb, is_mmap || is_mremap ? uint64_t(result) : a[0], is_mremap ? a[2] : a[1]);
  return result;
}

// ---- Addresses that are Weir's ----
// As far as the program knows there is nothing there: it gets them when it asks for them, if Weir can do without (GiveRequest).

// The program wants these. False: it cannot have them.
bool get(ThreadBlock* tb, uint64_t begin, uint64_t size, Giving how = Giving::All) {
  begin &= ~(page_size - 1), size = whole_pages(size);
  if (!size || begin + size < begin || is_free(begin, size)) return true;
  return ask(tb, GiveRequest{{begin, begin + size}, how}).is_given;
}

// Until a claim is ours, or nobody's.
void settle(ThreadBlock* tb, uint64_t begin, uint64_t size) {
  if (is_claimed(begin, size)) ask(tb, SettleRequest{});
}

// Unmaps what is the program's.
int64_t unmap(ThreadBlock* tb, const uint64_t* a) {
  uint64_t end = a[0] + whole_pages(a[1]);
  if (a[0] % page_size || !a[1] || end < a[0]) return mapping_call(tb, SYS_munmap, a);
  int64_t result = 0;
  for (uint64_t at = a[0]; at < end && !result;) {
    Range ours = next_of_ours(at, end);
    const uint64_t part[6] = {at, ours.begin - at};
    if (part[1]) result = mapping_call(tb, SYS_munmap, part);
    at = ours.end;
  }
  return result;
}

[[noreturn]] void no_room() { die("it wants memory at an address that weir needs"); }

int64_t map(ThreadBlock* tb, const uint64_t* a) {
  Taking taking(tb, a[0], a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? whole_pages(a[1]) : 0);
  bool has_it =
      !a[0] || get(tb, a[0], a[1]);  // (what is not replaced, or need not be there, is told or placed by the kernel)
  if (!has_it && (a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED) no_room();
  int64_t result = mapping_call(tb, SYS_mmap, a);
  constexpr uint64_t first = 0x4000'0000, size = 0x4000'0000;  // where the kernel looks
  if (result != -ENOMEM || !(a[3] & MAP_32BIT) || !is_ours(first, size)) return result;
  get(tb, first, size, Giving::Some);
  return mapping_call(tb, SYS_mmap, a);
}

int64_t remap(ThreadBlock* tb, const uint64_t* a) {
  constexpr uint64_t MREMAP_MAYMOVE = 1;
  uint64_t wanted = a[0] + whole_pages(a[1]), size = a[1] && a[2] > a[1] ? a[2] - a[1] : 0;
  if (a[3] & MREMAP_FIXED) wanted = a[4], size = a[2];
  Taking taking(tb, wanted, whole_pages(size));
  // (An old size of 0 makes a second mapping of what is shared there, elsewhere.)
  if (is_ours(a[0], a[1] ? a[1] : 1)) return a[3] & ~(MREMAP_MAYMOVE | MREMAP_FIXED) ? -EINVAL : -EFAULT;
  if (!get(tb, wanted, size) && (a[3] & MREMAP_FIXED)) no_room();
  return mapping_call(tb, SYS_mremap, a);
}

int64_t change_mapping(ThreadBlock* tb, int64_t nr, const uint64_t* a) {
  if (nr == SYS_mmap) return map(tb, a);
  if (nr == SYS_mremap) return remap(tb, a);
  Taking taking(tb, a[0], whole_pages(a[1]));
  settle(tb, a[0], a[1]);
  if (nr == SYS_munmap) return unmap(tb, a);
  if (is_ours(a[0], a[1])) return -ENOMEM;
  return nr == SYS_madvise ? own_call(tb, nr, a[0], a[1], a[2]) : mapping_call(tb, nr, a);
}

// The end of the heap moves: not to be stopped by us.
int64_t move_break(ThreadBlock* tb, const uint64_t* a) {
  auto now = uint64_t(sys(SYS_brk, 0));
  Taking taking(tb, now, a[0] > now ? whole_pages(a[0] - now) : 0);
  Changes changes;
  if (a[0] > now) get(tb, now, a[0] - now);
  else if (a[0]) changes.add(a[0], now - a[0]);
  changes.announce(tb);
  int64_t result = own_call(tb, SYS_brk, a[0]);
  changes.announce(tb, uint64_t(result) == a[0]);
  return result;
}

int64_t attach_segment(ThreadBlock* tb, const uint64_t* a) {
  constexpr uint64_t SHM_RND = 020000, SHM_REMAP = 040000, SHM_EXEC = 0100000, IPC_STAT = 2;
  uint64_t status[14] = {};  // the kernel's struct shmid_ds: its size is the word behind ipc_perm, which has six
  bool knows = (a[1] || (a[2] & SHM_EXEC)) && !is_error(sys(SYS_shmctl, a[0], IPC_STAT, address(status)));
  uint64_t size = knows ? status[6] : 0, at = a[2] & SHM_RND ? a[1] & ~(page_size - 1) : a[1];
  Taking taking(tb, at, at ? whole_pages(size) : 0);
  Changes changes;
  if (at && (a[2] & SHM_REMAP)) changes.add(at, size);
  if (at && !get(tb, at, size) && (a[2] & SHM_REMAP)) no_room();
  changes.announce(tb);
  int64_t result = own_call(tb, SYS_shmat, a[0], a[1], a[2]);
  changes.announce(tb, !is_error(result));
  if ((a[2] & SHM_EXEC) && !is_error(result)) announce_code(tb, uint64_t(result), size);
  return result;
}

// How large the segment is that goes is not known: what is forgotten may be more.
int64_t detach_segment(ThreadBlock* tb, const uint64_t* a) {
  KnownCode known = known_code(a[0], 1);
  Changes changes;
  if (known.all) changes.add(a[0], known.end - a[0]);
  changes.announce(tb);
  int64_t result = own_call(tb, SYS_shmdt, a[0]);
  changes.announce(tb);
  if (known.any) ask(tb, ExecutableRequest{});
  return result;
}

// Limits on address space: what is ours is not the program's, and is added to them. (Under a filter no other call than the program's own is
// made: a pointer that is wrong then faults.)
int64_t limit_call(ThreadBlock* tb, int64_t nr, const uint64_t* a) {
  constexpr uint64_t RLIMIT_AS = 9, infinity = ~uint64_t{0};
  const auto* page = reinterpret_cast<const volatile SpacePage*>(space_base);
  const uint64_t ours = page->own_address_space + page->regions_size;
  bool is_prlimit = nr == SYS_prlimit64;
  if (a[is_prlimit] != RLIMIT_AS || (is_prlimit && a[0] && !tb->quiet && int64_t(a[0]) != sys(SYS_getpid)))
    return own_call(tb, nr, a[0], a[1], a[2], a[3]);
  uint64_t wanted = is_prlimit            ? a[2]
                    : nr == SYS_setrlimit ? a[1]
                                          : 0,
           old = is_prlimit            ? a[3]
                 : nr == SYS_getrlimit ? a[1]
                                       : 0;
  uint64_t to_set[2] = {}, was[2] = {};
  auto *from = reinterpret_cast<void*>(wanted), *to = reinterpret_cast<void*>(old);
  if (wanted && tb->quiet) memcpy(to_set, from, sizeof to_set);
  else if (wanted && !read_memory(from, to_set, sizeof to_set)) return -EFAULT;
  for (uint64_t& limit : to_set) limit = limit < infinity - ours ? limit + ours : infinity;
  int64_t result = is_prlimit ? own_call(tb, nr, 0, RLIMIT_AS, wanted ? address(to_set) : 0, old ? address(was) : 0)
                              : own_call(tb, nr, RLIMIT_AS, address(wanted ? to_set : was));
  if (is_error(result) || !old) return result;
  for (uint64_t& limit : was)
    if (limit != infinity && limit >= ours) limit -= ours;
  if (tb->quiet) return memcpy(to, was, sizeof was), result;
  return write_memory(to, was, sizeof was) ? result : -EFAULT;
}

// To lock all memory would be to make all of ours, which is sparse: it is not done, where it may be.
int64_t lock_all(ThreadBlock* tb, uint64_t flags) {
  constexpr uint64_t MCL_ONFAULT = 4, all = 7, RLIMIT_MEMLOCK = 8;
  if (!flags || (flags & ~all) || flags == MCL_ONFAULT) return -EINVAL;
  if (tb->quiet) return 0;
  uint64_t limit[2] = {};
  sys(SYS_prlimit64, 0, RLIMIT_MEMLOCK, 0, address(limit));
  if (limit[0]) return 0;
  int64_t result = sys(SYS_mlock, address(tb), 1);  // may it without a limit?
  if (!is_error(result)) sys(SYS_munlock, address(tb), 1);
  return result;
}

struct CloneArgs {  // the kernel's struct clone_args, as far as we look
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

ThreadBlock* block_of(uint64_t slot) { return reinterpret_cast<ThreadBlock*>(blocks_base + slot * block_stride); }

// fork, vfork, clone, clone3: the child gets a thread block of its own before it runs.
int64_t new_thread(ThreadBlock* tb, int64_t nr, const uint64_t* a) {
  uint64_t flags = 0, stack = 0, tls = a[4];
  if (nr == SYS_vfork) flags = CLONE_VM | CLONE_VFORK;
  if (nr == SYS_clone) flags = a[0], stack = a[1];
  if (nr == SYS_clone3) {
    CloneArgs args;
    if (a[1] < sizeof args || !read_memory(reinterpret_cast<void*>(a[0]), &args, sizeof args))
      return own_call(tb, nr, a[0], a[1]);
    flags = args.flags, tls = args.tls;
    if (args.stack) stack = args.stack + args.stack_size;
  }
  uint64_t mask = block_signals(tb);
  uint64_t slot = ask(tb, NewThreadRequest{flags}).slot;
  if (!slot) return unblock_signals(tb, mask), -EAGAIN;
  ThreadBlock* child = block_of(slot);
  child->regs = tb->regs;
  child->regs.gpr[0] = 0;
  if (stack) child->regs.gpr[4] = stack;
  child->regs.pc = tb->regs.gpr[1] + syscall_length;
  child->app_gs = tb->app_gs;
  child->app_fs = (flags & CLONE_SETTLS) ? tls : tb->app_fs;
  child->code_version = tb->code_version;
  memcpy(child->clock.zmm31, tb->clock.zmm31, sizeof tb->clock.zmm31);
  child->quiet = tb->quiet;
  child->elsewhere = tb->elsewhere;
  child->has_rseq = tb->has_rseq;
  child->has_places = tb->has_places;
  child->has_trap = tb->has_trap;
  pass_calls_on(tb, child);
  if (!(flags & CLONE_VM) || (flags & CLONE_VFORK)) guard_doors(child, tb->guarded);  // it is on the same stack
  unblock_signals(child, mask);
  if (flags & CLONE_SIGHAND) {
    child->actions = tb->actions;
  } else {
    for (int i = 0; i < 64; i++) child->own_actions[i] = tb->actions[i];
    child->actions = child->own_actions;
  }
  call_hook(tb, &Hooks::kernel_begins);
  int64_t result = rt_clone(nr, a, child);
  call_hook(tb, &Hooks::kernel_ends);
  if (result < 0) ask(tb, NoThreadRequest{slot});
  else if (!(flags & CLONE_VM) && reinterpret_cast<const SpacePage*>(space_base)->copies_regions)
    ask(tb, ForkedRequest{slot, result});
  unblock_signals(tb, mask);
  return result;
}

// Weir takes hold of the process just before, to be there when the new program begins. The new program inherits the signal mask, so it
// must be the program's own when the call is made: a signal that came before is delivered first, and the call begun again.
int64_t exec(ThreadBlock* tb, int64_t nr, const uint64_t* a) {
  constexpr int64_t working_directory = -100;
  ask(tb, nr == SYS_execve ? ExecRequest{a[0], working_directory} : ExecRequest{a[1], int64_t(a[0])});
  uint64_t mask = block_signals(tb);
  int64_t result = restart;
  bool ignores_traps = give_trap_back(tb);
  call_hook(tb, &Hooks::kernel_begins);
  if (!tb->signal_pending) result = rt_exec(nr, a, &mask);
  call_hook(tb, &Hooks::kernel_ends);
  if (ignores_traps) take_trap_again(tb);
  ask(tb, ExecFailedRequest{});
  return result;
}

int64_t arch_prctl(ThreadBlock* tb, const uint64_t* a) {
  constexpr uint64_t set_gs = 0x1001, set_fs = 0x1002, get_gs = 0x1004;
  if (a[0] == set_gs) {
    tb->app_gs = a[1];
    return 0;
  }
  if (a[0] == get_gs) return write_memory(reinterpret_cast<void*>(a[1]), &tb->app_gs, 8) ? 0 : -EFAULT;
  int64_t result = own_call(tb, SYS_arch_prctl, a[0], a[1]);
  if (a[0] == set_fs && !is_error(result)) tb->app_fs = a[1];
  return result;
}

// A seccomp filter might kill us for a call of our own: from here on the runtime makes none to wait, and none to block signals.
int64_t seccomp(ThreadBlock* tb, int64_t nr, const uint64_t* a) {
  constexpr uint64_t PR_SET_NAME = 15, PR_SET_SECCOMP = 22, PR_SET_TSC = 26, PR_TSC_ENABLE = 1,
                     PR_SET_SYSCALL_USER_DISPATCH = 59;
  if (nr == SYS_prctl && a[0] == PR_SET_SYSCALL_USER_DISPATCH) return set_dispatch(tb, a);
  if (nr == SYS_prctl && a[0] != PR_SET_SECCOMP) {
    if (a[0] == PR_SET_TSC && a[1] != PR_TSC_ENABLE) call_hook(tb, &Hooks::stamps_change, false);
    int64_t result = own_call(tb, nr, a[0], a[1], a[2], a[3], a[4]);
    if (a[0] == PR_SET_TSC && a[1] == PR_TSC_ENABLE) call_hook(tb, &Hooks::stamps_change, true);
    if (a[0] == PR_SET_NAME) call_hook(tb, &Hooks::name_changes);
    return result;
  }
  bool is_strict = nr == SYS_prctl ? a[1] == 1 : a[0] == 0;  // it forbids to read the time stamp counter, too
  ask(tb, QuietRequest{false});                              // what must be mapped for it,
  ask(tb, QuietRequest{true});
  own_trap(tb);
  tb->quiet = 1;
  int64_t result = is_strict ? sys(nr, a[0], a[1], a[2], a[3], a[4]) : own_call(tb, nr, a[0], a[1], a[2], a[3], a[4]);
  if (is_strict && !result) call_hook(tb, &Hooks::stamps_change, false);
  return result;
}

}  // namespace

// The thread is about to go on behind a system call.
static void change_version(ThreadBlock* tb) {
  if (!tb->is_wanted) return;
  Spot at = where(tb, tb->regs.pc);
  if (at.place != Place::Exact) return;
  tb->regs.gpr[1] = at.app;
  tb->regs.pc = ask(tb, ResumeRequest{at.app, Resuming::AtPoint}).pc;
}

extern "C" {

void rt_syscall(ThreadBlock* tb) {
  Registers& regs = tb->regs;
  int64_t nr = int64_t(regs.gpr[0]);
  uint64_t inline_pc = regs.gpr[1];
  const uint64_t a[6] = {regs.gpr[7], regs.gpr[6], regs.gpr[2], regs.gpr[10], regs.gpr[8], regs.gpr[9]};
  int64_t result;
  auto leave_to_kernel = [&] { regs.pc = inline_pc, call_hook(tb, &Hooks::kernel_begins); };
  call_hook(tb, &Hooks::kernel_dropped);  // what is the program's in what we do is timed where it is made
  if (is_dispatched(tb, inline_pc)) return leave_to_kernel();
  switch (nr) {
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
    case SYS_mremap:
    case SYS_madvise: result = change_mapping(tb, nr, a); break;
    case SYS_brk: result = move_break(tb, a); break;
    case SYS_shmat: result = attach_segment(tb, a); break;
    case SYS_shmdt: result = detach_segment(tb, a); break;
    case SYS_mlockall: result = lock_all(tb, a[0]); break;
    case SYS_getrlimit:
    case SYS_setrlimit:
    case SYS_prlimit64: result = limit_call(tb, nr, a); break;
    case SYS_rt_sigaction: result = set_action(tb, int(a[0]), a[1], a[2], a[3]); break;
    case SYS_rt_sigreturn: return return_from_signal(tb);
    case SYS_clone:
    case SYS_clone3:
    case SYS_fork:
    case SYS_vfork: result = new_thread(tb, nr, a); break;
    case SYS_execve:
    case SYS_execveat: result = exec(tb, nr, a); break;
    case SYS_exit:
      unblock_signals(tb, block_signals(tb));
      if (tb->signal_pending) {  // first
        result = restart;
        break;
      }
      call_hook(tb, &Hooks::name_changes);  // (others may have given it one)
      tell(tb, ThreadEndRequest{});
      rt_exit_thread(tb, a[0]);
    case SYS_arch_prctl: result = arch_prctl(tb, a); break;
    case SYS_prctl:
    case SYS_seccomp: result = seccomp(tb, nr, a); break;
    case SYS_rseq:  // its critical sections are addresses of the program: libraries do without
      if (!tb->has_rseq) {
        result = -ENOSYS;
        break;
      }
      [[fallthrough]];  // where they have it they must have it in all threads
    default: return leave_to_kernel();
  }
  // (rcx, as the process may have moved meanwhile: see engine/move.cc.)
  if (result == restart) {
    regs.pc = regs.gpr[1] - entry_length;
    return;
  }
  regs.gpr[0] = uint64_t(result);
  regs.pc = regs.gpr[1] + syscall_length;
  change_version(tb);
}

// The first words of a new program. Where Weir cannot have it, it runs natively.
void rt_program(ThreadBlock* tb) {
  GoOn to = ask(tb, BeginRequest{});
  tb->regs.pc = to.pc;
  if (to.native == NotNative) {
    call_hook(tb, &Hooks::name_changes);
    tb->regs.pc = ask(tb, ResumeRequest{to.pc, Resuming::Anywhere}).pc;
    return;
  }
  constexpr uint64_t set_gs = 0x1001;
  uint64_t rsp = tb->regs.gpr[4], pc = tb->regs.pc;
  sys(SYS_rt_sigprocmask, 2, address(&tb->exit_mask), 0, 8);
  sys(SYS_arch_prctl, set_gs, 0);
  rt_go_native(rsp, pc);
}

// The first words of a new thread or process.
void rt_child(ThreadBlock* tb) {
  if (!ask(tb, HelloRequest{uint64_t(sys(SYS_getpid)), uint64_t(sys(SYS_gettid))}).is_known)
    die("the weir process cannot find it");
  if (tb->clock.is_in_register) set_clock(tb, {});
  call_hook(tb, &Hooks::name_changes);
  change_version(tb);
}

}  // extern "C"

}  // namespace weir::rt
