// Calls on memory itself, and on what processes share: segments, semaphores, messages, futexes. What is mapped is told as Remapped; the
// engine knows more of it.

#include "rt/call_functions.h"

namespace weir::rt::calls {

namespace {
constexpr uint64_t page = 4096;
uint64_t whole_pages(uint64_t size) { return (size + page - 1) & ~(page - 1); }
}  // namespace

void mmap(Teller& t) { t.remaps(0, t.result(), whole_pages(t.arg(1))); }
void map_shadow_stack(Teller& t) { t.remaps(0, t.result(), whole_pages(t.arg(1))); }
void change_mapping(Teller& t) { t.remaps(0, t.arg(0), whole_pages(t.arg(1))); }
void shmat(Teller& t) { t.remaps(1, t.result(), 0); }
void shmdt(Teller& t) { t.remaps(0, t.arg(0), 0); }
void brk(Teller& t) {
  if (t.arg(0)) t.remaps(0, t.result(), 0);
}

void mremap(Teller& t) {
  constexpr uint64_t MREMAP_FIXED = 2;
  if (!(t.arg(3) & MREMAP_FIXED)) t.takes(4);
  uint64_t old_size = whole_pages(t.arg(1)), size = whole_pages(t.arg(2));
  if (t.result() != t.arg(0)) t.remaps(0, t.arg(0), old_size), t.remaps(4, t.result(), size);
  else if (size > old_size) t.remaps(0, t.arg(0) + old_size, size - old_size);
  else if (size < old_size) t.remaps(0, t.arg(0) + size, old_size - size);
}

void mincore(Teller& t) { t.writes(2, t.arg(2), whole_pages(t.arg(1)) / page); }

void madvise(Teller& t) {
  constexpr int MADV_DONTNEED = 4, MADV_FREE = 8, MADV_REMOVE = 9, MADV_DONTNEED_LOCKED = 24, MADV_HWPOISON = 100,
                MADV_GUARD_INSTALL = 102, MADV_GUARD_REMOVE = 103;
  int advice = t.int_arg(2);
  bool changes = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
                 advice == MADV_DONTNEED_LOCKED || advice == MADV_HWPOISON || advice == MADV_GUARD_INSTALL ||
                 advice == MADV_GUARD_REMOVE;
  if (changes) t.remaps(0, t.arg(0), whole_pages(t.arg(1)));
}

void process_madvise(Teller& t) {
  constexpr uint64_t most = 1024;
  if (t.arg(2) <= most) t.reads(1, t.arg(1), t.arg(2) * 16);
}

// The kernel counts one bit less than it is told, and takes whole words.
void tell_nodes(Teller& t, int i, uint64_t count) {
  constexpr uint64_t most = page * 8;
  if (count > 1 && count - 1 <= most) t.reads(i, t.arg(i), (count - 1 + 63) / 64 * 8);
}
void get_mempolicy(Teller& t) {
  if (t.arg(0)) t.writes(0, t.arg(0), 4);
  if (t.arg(1) && t.arg(2)) t.writes(1, t.arg(1), (t.arg(2) - 1 + 63) / 64 * 8);
}

void move_pages(Teller& t) {
  uint64_t count = t.arg(1);
  t.reads(2, t.arg(2), count * 8);
  if (t.arg(3)) t.reads(3, t.arg(3), count * 4);
  t.writes(4, t.arg(4), count * 4);
}

namespace {
enum IpcCommand { IPC_RMID = 0, IPC_SET = 1, IPC_STAT = 2, IPC_INFO = 3 };
// Who owns it, and who may use it: all that is taken from the head of a struct shmid_ds, semid_ds, msqid_ds.
constexpr uint64_t owner_begin = 4, owner_end = 12, mode_begin = 20, mode_end = 24;
void tell_owner(Teller& t, int i, uint64_t end) {
  uint64_t at = t.arg(i);
  t.copies(i, at, owner_begin);
  t.reads(i, at + owner_begin, owner_end - owner_begin);
  t.copies(i, at + owner_end, mode_begin - owner_end);
  t.reads(i, at + mode_begin, mode_end - mode_begin);
  t.copies(i, at + mode_end, end - mode_end);
}
}  // namespace

void shmctl(Teller& t) {
  constexpr int SHM_LOCK = 11, SHM_UNLOCK = 12, SHM_STAT = 13, SHM_INFO = 14, SHM_STAT_ANY = 15;
  switch (t.int_arg(1)) {
    case IPC_RMID:
    case SHM_LOCK:
    case SHM_UNLOCK: return t.takes(2);
    case IPC_SET: return tell_owner(t, 2, 112);
    case IPC_STAT:
    case SHM_STAT:
    case SHM_STAT_ANY: return t.writes(2, t.arg(2), 112);
    case IPC_INFO: return t.writes(2, t.arg(2), 72);
    case SHM_INFO: return t.writes(2, t.arg(2), 48);
  }
  t.unknown(2, t.arg(2));
}

// How many semaphores there are, the kernel knows.
void semctl(Teller& t) {
  constexpr int GETPID = 11, GETVAL = 12, GETALL = 13, GETNCNT = 14, GETZCNT = 15, SETVAL = 16, SETALL = 17, SEM_STAT = 18,
                SEM_INFO = 19, SEM_STAT_ANY = 20;
  switch (t.int_arg(2)) {
    case IPC_RMID:
    case GETPID:
    case GETVAL:
    case GETNCNT:
    case GETZCNT: return t.takes(3);
    case SETVAL: return;
    case GETALL:
    case SETALL: break;
    case IPC_SET: return tell_owner(t, 3, 104);
    case IPC_STAT:
    case SEM_STAT:
    case SEM_STAT_ANY: return t.writes(3, t.arg(3), 104);
    case IPC_INFO:
    case SEM_INFO: return t.writes(3, t.arg(3), 40);
  }
  t.unknown(3, t.arg(3));
}

// A message is its type, of 8 bytes, and its text.
void msgsnd(Teller& t) { t.reads(1, t.arg(1), 8 + t.arg(2)); }
void msgrcv(Teller& t) { t.fills(1, t.arg(1), 8 + t.arg(2), 8 + t.result()); }

void msgctl(Teller& t) {
  constexpr int MSG_STAT = 11, MSG_INFO = 12, MSG_STAT_ANY = 13;
  constexpr uint64_t limit_begin = 88, limit_end = 96, end = 120;  // of the queue, in bytes
  switch (t.int_arg(1)) {
    case IPC_RMID: return t.takes(2);
    case IPC_SET:
      tell_owner(t, 2, limit_begin);
      t.reads(2, t.arg(2) + limit_begin, limit_end - limit_begin);
      return t.copies(2, t.arg(2) + limit_end, end - limit_end);
    case IPC_STAT:
    case MSG_STAT:
    case MSG_STAT_ANY: return t.writes(2, t.arg(2), end);
    case IPC_INFO:
    case MSG_INFO: return t.writes(2, t.arg(2), 32);
  }
  t.unknown(2, t.arg(2));
}

void mq_open(Teller& t) {
  constexpr uint32_t O_CREAT = 0100;
  t.text(0, t.arg(0));
  if (!(t.uint_arg(1) & O_CREAT)) return t.takes(2);
  if (!t.arg(3)) return;
  t.copies(3, t.arg(3), 8);
  t.reads(3, t.arg(3) + 8, 16);
  t.copies(3, t.arg(3) + 24, 40);
}

void mq_notify(Teller& t) {
  constexpr uint32_t SIGEV_THREAD = 2;
  if (!t.arg(1)) return;
  tell_sigevent(t, 1);
  if (t.load32(t.arg(1) + 12) == SIGEV_THREAD) t.reads(1, t.load64(t.arg(1)), 32);
}

// Only the flags can be changed.
void mq_getsetattr(Teller& t) {
  if (!t.arg(1)) return;
  t.reads(1, t.arg(1), 8);
  t.copies(1, t.arg(1) + 8, 56);
}

namespace {
void tell_time(Teller& t, int i) {
  if (t.arg(i)) t.reads(i, t.arg(i), 16);
}
uint64_t futex_size(uint64_t flags) { return uint64_t{1} << (flags & 3); }
}  // namespace

void futex(Teller& t) {
  enum : uint32_t {
    Wait,
    Wake,
    Descriptor,
    Requeue,
    CompareRequeue,
    WakeOperation,
    LockPi,
    UnlockPi,
    TrylockPi,
    WaitBits,
    WakeBits,
    WaitRequeuePi,
    CompareRequeuePi,
    LockPi2
  };
  constexpr uint32_t flags = 128 | 256;
  constexpr int address = 1, operation = 2, value = 4, time = 8, second = 16, third_value = 32;
  uint64_t at = t.arg(0), other = t.arg(4);
  switch (t.uint_arg(1) & ~flags) {
    case Wait:
      t.takes_only(address | operation | value | time);
      tell_time(t, 3);
      return t.reads(0, at, 4);
    case Wake: return t.takes_only(address | operation | value);
    case Requeue: return t.takes_only(address | operation | value | time | second);
    case CompareRequeue: return t.reads(0, at, 4);
    case WakeOperation: return t.updates(4, other, 4);
    case LockPi:
    case LockPi2:
      t.takes_only(address | operation | time);
      tell_time(t, 3);
      return t.updates(0, at, 4);
    case UnlockPi:
    case TrylockPi: t.takes_only(address | operation); return t.updates(0, at, 4);
    case WaitBits:
      t.takes_only(address | operation | value | time | third_value);
      tell_time(t, 3);
      return t.reads(0, at, 4);
    case WakeBits: return t.takes_only(address | operation | value | third_value);
    case WaitRequeuePi:
      tell_time(t, 3);
      t.reads(0, at, 4);
      return t.updates(4, other, 4);
    case CompareRequeuePi: t.reads(0, at, 4); return t.updates(4, other, 4);
  }
  t.unknown(0, at);
}

void futex_wait(Teller& t) {
  if (t.arg(4)) t.reads(4, t.arg(4), 16);
  else t.takes(5);
  t.reads(0, t.arg(0), futex_size(t.arg(3)));
}

namespace {
// value 8, address 8, flags 4, reserved 4
void tell_waiter(Teller& t, uint64_t at) {
  struct {
    uint64_t value, address;
    uint32_t flags, reserved;
  } waiter;
  t.reads(0, at, sizeof waiter);
  if (t.load(at, &waiter, sizeof waiter)) t.reads(0, waiter.address, futex_size(waiter.flags));
}
}  // namespace

void futex_waitv(Teller& t) {
  constexpr uint32_t most = 128;
  uint32_t count = t.uint_arg(1);
  if (t.arg(3)) t.reads(3, t.arg(3), 16);
  else t.takes(4);
  for (uint32_t n = 0; n < count && count <= most; n++) {
    tell_waiter(t, t.arg(0) + n * uint64_t{24});
  }
}

void futex_requeue(Teller& t) {
  t.reads(0, t.arg(0) + 24, 24);
  tell_waiter(t, t.arg(0));
}

}  // namespace weir::rt::calls
