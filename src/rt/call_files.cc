// Calls on files: vectors of buffers, waiting, asynchronous input and output, mounts.

#include "rt/call_functions.h"

namespace weir::rt {

namespace {
struct IoVector {
  uint64_t begin, size;
};
constexpr uint64_t most_vectors = 1024;  // the kernel's UIO_MAXIOV

// Reading takes a system call, whatever the size. Returns how many were read: one only, where not all can be.
constexpr uint64_t vectors_at_once = 8;
uint64_t load_vectors(const Teller& t, uint64_t from, uint64_t count, IoVector* to) {
  if (count > vectors_at_once) count = vectors_at_once;
  if (t.load(from, to, count * sizeof *to)) return count;
  return t.load(from, to, sizeof *to) ? 1 : 0;
}
}  // namespace

void tell_vectors(Teller& t, int i, uint64_t array, uint64_t count, Direction direction, uint64_t done) {
  if (count > most_vectors) return;  // that fails
  t.reads(i, array, count * sizeof(IoVector));
  if (t.is_after() && direction == Direction::In) return;
  for (uint64_t n = 0, loaded; n < count; n += loaded) {
    IoVector some[vectors_at_once];
    loaded = load_vectors(t, array + n * sizeof(IoVector), count - n, some);
    if (!loaded) return;
    for (uint64_t k = 0; k < loaded; k++) {
      const IoVector& v = some[k];
      uint64_t part = done < v.size ? done : v.size;
      done -= part;
      if (direction == Direction::In) t.reads(i, v.begin, v.size);
      else t.fills(i, v.begin, v.size, part, When::Always);
    }
  }
}

namespace calls {

void poll(Teller& t) {
  constexpr uint32_t most = 1 << 20;  // of descriptors, as the kernel comes
  uint32_t count = t.uint_arg(1);
  if (count > most) return t.unknown(0, t.arg(0), uint64_t{count} * 8);
  for (uint64_t at = t.arg(0); count; at += 8, count--) {
    t.reads(0, at, 6);
    t.writes(0, at + 6, 2, When::Done);
  }
}

void select(Teller& t) {
  if (t.int_arg(0) <= 0) return;
  uint64_t count = uint64_t(t.int_arg(0)), looked_at = (count + 7) / 8, size = (count + 63) / 64 * 8;
  for (int i = 1; i <= 3; i++) {
    if (!t.arg(i)) continue;
    t.reads(i, t.arg(i), looked_at);
    t.copies(i, t.arg(i) + looked_at, size - looked_at);
    t.writes(i, t.arg(i), size);
  }
}

void tell_sized_mask(Teller& t, int i) {
  t.reads(i, t.arg(i), 16);
  uint64_t mask = t.load64(t.arg(i));
  if (mask) t.reads(i, mask, t.load64(t.arg(i) + 8));
}

void pselect6(Teller& t) {
  select(t);
  if (t.arg(4)) t.updates(4, t.arg(4), 16, When::Done);
  if (t.arg(5)) tell_sized_mask(t, 5);
}

void readv(Teller& t) { tell_vectors(t, 1, t.arg(1), t.arg(2), Direction::Out, t.result()); }
void writev(Teller& t) { tell_vectors(t, 1, t.arg(1), t.arg(2), Direction::In, 0); }

// Whether memory goes into the pipe or comes out of it depends on which of its ends it is.
void vmsplice(Teller& t) {
  if (t.arg(2) > most_vectors) return;
  t.reads(1, t.arg(1), t.arg(2) * sizeof(IoVector));
  for (uint64_t n = 0; n < t.arg(2); n++) {
    IoVector v;
    if (!t.load(t.arg(1) + n * sizeof v, &v, sizeof v)) return;
    if (v.size) t.unknown(1, v.begin, v.size);
  }
}

// What the other process's memory is, its own tool knows.
void process_vm_readv(Teller& t) {
  tell_vectors(t, 1, t.arg(1), t.arg(2), Direction::Out, t.result());
  if (t.arg(4) <= most_vectors) t.reads(3, t.arg(3), t.arg(4) * sizeof(IoVector));
}
void process_vm_writev(Teller& t) {
  tell_vectors(t, 1, t.arg(1), t.arg(2), Direction::In, 0);
  if (t.arg(4) <= most_vectors) t.reads(3, t.arg(3), t.arg(4) * sizeof(IoVector));
}

namespace {
// type 2, whence 2, hole 4, start 8, length 8, process 4, hole 4
void tell_lock(Teller& t, bool is_answered, bool process_matters) {
  uint64_t at = t.arg(2);
  t.reads(2, at, 4);
  t.copies(2, at + 4, 4);
  t.reads(2, at + 8, 16);
  t.before(process_matters ? Use::Read : Use::Copied, 2, at + 24, 4);
  t.copies(2, at + 28, 4);
  if (is_answered) t.writes(2, at, 32);
}
}  // namespace

void fcntl(Teller& t) {
  constexpr uint32_t F_GETFD = 1, F_GETFL = 3, F_GETLK = 5, F_SETLK = 6, F_SETLKW = 7, F_GETOWN = 9, F_GETSIG = 11,
                     F_SETOWN_EX = 15, F_GETOWN_EX = 16, F_GETOWNER_UIDS = 17, F_OFD_GETLK = 36, F_OFD_SETLK = 37,
                     F_OFD_SETLKW = 38, F_GETLEASE = 1025, F_GETPIPE_SZ = 1032, F_GET_SEALS = 1034, F_GET_RW_HINT = 1035,
                     F_SET_RW_HINT = 1036, F_GET_FILE_RW_HINT = 1037, F_SET_FILE_RW_HINT = 1038, F_GETDELEG = 1039,
                     F_SETDELEG = 1040, last = F_SETDELEG;
  uint32_t command = t.uint_arg(1);
  switch (command) {
    case F_GETFD:
    case F_GETFL:
    case F_GETOWN:
    case F_GETSIG:
    case F_GETLEASE:
    case F_GETPIPE_SZ:
    case F_GET_SEALS: return t.takes(2);
    case F_GETLK: return tell_lock(t, true, false);
    case F_SETLK:
    case F_SETLKW: return tell_lock(t, false, false);
    case F_OFD_GETLK: return tell_lock(t, true, true);
    case F_OFD_SETLK:
    case F_OFD_SETLKW: return tell_lock(t, false, true);
    case F_SETOWN_EX: return t.reads(2, t.arg(2), 8);
    case F_GETOWN_EX:
    case F_GETOWNER_UIDS:
    case F_GET_RW_HINT:
    case F_GET_FILE_RW_HINT: return t.writes(2, t.arg(2), 8);
    case F_SET_RW_HINT:
    case F_SET_FILE_RW_HINT:
    case F_SETDELEG: return t.reads(2, t.arg(2), 8);
    case F_GETDELEG: return t.updates(2, t.arg(2), 8);
  }
  if (command > last) t.unknown(2, t.arg(2));
}

void epoll_ctl(Teller& t) {
  constexpr int EPOLL_CTL_DEL = 2;
  if (t.int_arg(1) == EPOLL_CTL_DEL) t.takes(3);
  else t.reads(3, t.arg(3), 12);
}

void utimensat(Teller& t) {
  constexpr uint64_t UTIME_NOW = 0x3fff'ffff, UTIME_OMIT = 0x3fff'fffe;
  if (!t.arg(2)) return;
  for (int n = 0; n < 2; n++) {
    uint64_t at = t.arg(2) + uint64_t(n) * 16;
    uint64_t nanoseconds = t.load64(at + 8);
    t.before(nanoseconds == UTIME_NOW || nanoseconds == UTIME_OMIT ? Use::Copied : Use::Read, 2, at, 8);
    t.reads(2, at + 8, 8);
  }
}

void io_setup(Teller& t) { t.updates(1, t.arg(1), 8); }

namespace {
struct IoControlBlock {
  uint64_t data;
  uint32_t key, rw_flags;
  uint16_t opcode, priority;
  uint32_t descriptor;
  uint64_t buffer, size, offset, reserved;
  uint32_t flags, event_descriptor;
};
static_assert(sizeof(IoControlBlock) == 64);
enum IoOpcode : uint16_t { IOCB_CMD_PREAD = 0, IOCB_CMD_PWRITE = 1, IOCB_CMD_PREADV = 7, IOCB_CMD_PWRITEV = 8 };

void tell_submitted(Teller& t, uint64_t at, bool is_done) {
  IoControlBlock b;
  t.reads(2, at, 8);
  t.before(Use::MayWrite, 2, at + 8, 4);
  t.reads(2, at + 12, sizeof b - 12);
  if (is_done) t.after(Use::Written, 2, at + 8, 4);
  if (!t.load(at, &b, sizeof b) || (t.is_after() && !is_done)) return;
  switch (b.opcode) {
    case IOCB_CMD_PREAD: t.before(Use::MayWrite, 2, b.buffer, b.size); break;
    case IOCB_CMD_PWRITE: t.reads(2, b.buffer, b.size); break;
    case IOCB_CMD_PREADV: return tell_vectors(t, 2, b.buffer, b.size, Direction::Out, 0);
    case IOCB_CMD_PWRITEV: return tell_vectors(t, 2, b.buffer, b.size, Direction::In, 0);
    default: return;
  }
  t.later(2, b.buffer, b.size);
}
}  // namespace

void io_submit(Teller& t) {
  constexpr int64_t most = 1 << 16;
  auto count = int64_t(t.arg(1));
  if (count > most) t.unknown(2, t.arg(2) + uint64_t(most) * 8);
  for (int64_t n = 0; n < count && n < most; n++) {
    uint64_t pointer = t.arg(2) + uint64_t(n) * 8, at = 0;
    t.reads(2, pointer, 8);
    if (!t.load(pointer, &at, 8)) return;
    tell_submitted(t, at, uint64_t(n) < t.result());
  }
}

// What was read, with it.
void io_getevents(Teller& t) {
  struct {
    uint64_t data, block;
    int64_t result, second;
  } event;
  auto room = int64_t(t.arg(2));
  t.fills(3, t.arg(3), room > 0 ? uint64_t(room) * sizeof event : 0, t.result() * sizeof event);
  if (t.arg(4)) t.reads(4, t.arg(4), 16);
  for (uint64_t n = 0; t.is_after() && n < t.result(); n++) {
    IoControlBlock b;
    if (!t.load(t.arg(3) + n * sizeof event, &event, sizeof event)) return;
    if (event.result <= 0 || !t.load(event.block, &b, sizeof b)) continue;
    if (b.opcode == IOCB_CMD_PREAD) t.fills(3, b.buffer, b.size, uint64_t(event.result));
    if (b.opcode == IOCB_CMD_PREADV) tell_vectors(t, 3, b.buffer, b.size, Direction::Out, uint64_t(event.result));
  }
}

void io_cancel(Teller& t) {
  t.takes(2);
  t.reads(1, t.arg(1) + 8, 4);
}

// From here on the program and the kernel talk through rings in memory, and nobody tells what is read and written.
void io_uring_setup(Teller& t) { t.updates(1, t.arg(1), 120); }

void io_uring_enter(Teller& t) {
  constexpr uint32_t EXT_ARG = 8;
  t.unknown(no_arg);
  if (!t.arg(4)) return;
  if (!(t.uint_arg(3) & EXT_ARG)) return t.reads(4, t.arg(4), t.arg(5));
  t.reads(4, t.arg(4), t.arg(5));
  struct {
    uint64_t mask;
    uint32_t mask_size, least_wait;
    uint64_t time;
  } wait{};
  if (!t.load(t.arg(4), &wait, sizeof wait)) return;
  if (wait.mask) t.reads(4, wait.mask, wait.mask_size);
  if (wait.time) t.reads(4, wait.time, 16);
}

void io_uring_register(Teller& t) { t.unknown(2, t.arg(2)); }

void mount(Teller& t) {
  for (int i = 0; i <= 4; i += 2)
    if (t.arg(i)) t.text(i, t.arg(i));
  t.text(1, t.arg(1));
}

void fsconfig(Teller& t) {
  enum : uint32_t { Flag, String, Binary, Path, PathEmpty, Descriptor };
  uint32_t command = t.uint_arg(1);
  if (command <= Descriptor) t.text(2, t.arg(2), 256);
  if (command == String) t.text(3, t.arg(3), 256);
  if (command == Path || command == PathEmpty) t.text(3, t.arg(3));
  if (command == Binary && t.int_arg(4) > 0) t.reads(3, t.arg(3), uint64_t(t.int_arg(4)));
}

void openat2(Teller& t) { t.reads(2, t.arg(2), t.arg(3)); }

void statmount(Teller& t) {
  sized_in<0>(t);
  t.fills(1, t.arg(1), t.arg(2), t.is_after() ? t.load32(t.arg(1)) : 0);
}

namespace {
void tell_quota(Teller& t, uint32_t command, int i) {
  uint64_t at = t.arg(i);
  switch (command >> 8) {
    case 0x800001:                              // Q_SYNC
    case 0x800003:                              // Q_QUOTAOFF
    case 0x5807: return;                        // Q_XQUOTASYNC
    case 0x800002: return t.text(i, at);        // Q_QUOTAON
    case 0x800004: return t.writes(i, at, 4);   // Q_GETFMT
    case 0x800005: return t.writes(i, at, 24);  // Q_GETINFO
    case 0x800006: return t.reads(i, at, 24);   // Q_SETINFO
    case 0x800007:                              // Q_GETQUOTA
    case 0x800009: return t.writes(i, at, 72);  // Q_GETNEXTQUOTA
    case 0x800008: return t.reads(i, at, 72);   // Q_SETQUOTA
    case 0x5801:                                // Q_XQUOTAON
    case 0x5802:                                // Q_XQUOTAOFF
    case 0x5806: return t.reads(i, at, 4);      // Q_XQUOTARM
    case 0x5803:                                // Q_XGETQUOTA
    case 0x5809: return t.writes(i, at, 112);   // Q_XGETNEXTQUOTA
    case 0x5804: return t.reads(i, at, 112);    // Q_XSETQLIM
    case 0x5805: return t.writes(i, at, 80);    // Q_XGETQSTAT
  }
  t.unknown(i, at);
}
}  // namespace

void quotactl(Teller& t) {
  if (t.arg(1)) t.text(1, t.arg(1));
  tell_quota(t, t.uint_arg(0), 3);
}
void quotactl_fd(Teller& t) { tell_quota(t, t.uint_arg(1), 3); }

// Names of file systems; how large the buffer is for one is not said.
void sysfs(Teller& t) {
  if (t.int_arg(0) == 1) return t.takes(2), t.text(1, t.arg(1));
  if (t.int_arg(0) != 2) return t.takes(1);
  if (t.is_before()) t.unknown(2, t.arg(2));
  else if (!t.has_failed()) t.after(Use::Written, 2, t.arg(2), t.text_size(t.arg(2), 4096));
}

void name_to_handle(Teller& t) {
  constexpr uint32_t AT_HANDLE_MNT_ID_UNIQUE = 1, most = 128;
  constexpr int64_t EOVERFLOW = 75;
  uint64_t at = t.arg(2), mount = t.arg(3), mount_size = t.uint_arg(4) & AT_HANDLE_MNT_ID_UNIQUE ? 8 : 4;
  uint32_t room = t.kept32(0, at);
  t.reads(2, at, 4);
  if (t.is_before()) {
    t.before(Use::MayWrite, 2, at + 4, 4 + uint64_t{room < most ? room : most});
    t.before(Use::MayWrite, 3, mount, mount_size);
  } else if (!t.has_failed() || t.error() == EOVERFLOW) {
    t.after(Use::Written, 2, at, 8 + (t.has_failed() ? 0 : uint64_t{t.load32(at)}), When::Always);
    t.after(Use::Written, 3, mount, mount_size, When::Always);
  }
}

void open_by_handle(Teller& t) { t.reads(1, t.arg(1), 8 + uint64_t{t.load32(t.arg(1))}); }

// The value of an attribute, its size and flags are in a structure.
void setxattrat(Teller& t) {
  t.reads(4, t.arg(4), t.arg(5));
  t.reads(4, t.load64(t.arg(4)), t.load32(t.arg(4) + 8));
}
void getxattrat(Teller& t) {
  t.reads(4, t.arg(4), t.arg(5));
  t.fills(4, t.load64(t.arg(4)), t.load32(t.arg(4) + 8), t.result());
}

void landlock_add_rule(Teller& t) {
  switch (t.int_arg(1)) {
    case 1: return t.reads(2, t.arg(2), 12);  // LANDLOCK_RULE_PATH_BENEATH
    case 2: return t.reads(2, t.arg(2), 16);  // LANDLOCK_RULE_NET_PORT
  }
  t.unknown(2, t.arg(2));
}

void lsm_get_self_attr(Teller& t) {
  constexpr uint32_t LSM_FLAG_SINGLE = 1;
  uint32_t room = t.kept32(0, t.arg(2));
  if (t.arg(1) && (t.uint_arg(3) & LSM_FLAG_SINGLE)) t.reads(1, t.arg(1), 8);
  t.updates(2, t.arg(2), 4, When::Always);
  if (t.arg(1)) t.fills(1, t.arg(1), room, t.is_after() ? t.load32(t.arg(2)) : 0);
}

void lsm_list_modules(Teller& t) {
  uint32_t room = t.kept32(0, t.arg(1));
  t.updates(1, t.arg(1), 4, When::Always);
  t.fills(0, t.arg(0), room, t.is_after() ? t.load32(t.arg(1)) : 0);
}

}  // namespace calls
}  // namespace weir::rt
