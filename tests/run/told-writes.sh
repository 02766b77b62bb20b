# What a tool is told that system calls write is what they write: each call is made twice over memory with other contents, and all that has changed, and
# nothing else, is marked. Calls that the kernel makes, and calls that Weir makes.
. "$(dirname "$0")/lib.sh"
use_tool marks
compile writes.c <<'C'
#include "marks.h"
#include <asm/prctl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
enum { SIZE = 4096 };
static unsigned char out[SIZE] __attribute__((aligned(4096)));  // the calls write here
static int fds[2], sockets[2];
static const char *name; static long result;
static void tick_every(int us) { struct itimerval t = {{0, us}, {0, us}}; setitimer(ITIMER_REAL, &t, NULL); }
static void ignore(int s) {}
#define CALL(what, ...) (name = #what, result = syscall(SYS_##what, __VA_ARGS__), 1)
static int run(int i) {
  static struct iovec vectors[2], sources[2]; static struct msghdr head; static struct sockaddr_un sun; static socklen_t length; static struct timespec t;
  static struct sigaction action; static stack_t stack; static struct rlimit limit = {1ul << 50, 1ul << 50}; static char text[] = "abcdef"; static int child, queue;
  vectors[0] = (struct iovec){out + 100, 2}, vectors[1] = (struct iovec){out + 200, 9}, sources[0] = (struct iovec){text, 5};
  struct sigaction ours = {.sa_handler = ignore}; struct epoll_event event = {EPOLLIN, {.u64 = ~0ul}};
  switch (i) {
    case 0: write(fds[1], "xyz", 3); return CALL(read, fds[0], out, 8);
    case 1: write(fds[1], "xyz", 3); return CALL(readv, fds[0], vectors, 2);
    case 2: return CALL(read, -1, out, 8);
    case 3: send(sockets[1], "12345", 5, 0); length = 1; return CALL(recvfrom, sockets[0], out, 4, 0, out + 64, &length);
    case 4: send(sockets[1], "12345", 5, 0); memset(&head, 0, sizeof head); head.msg_iov = vectors, head.msg_iovlen = 2; return CALL(recvmsg, sockets[0], &head, 0);
    case 5: length = 2; return CALL(getsockname, sockets[0], out, &length);
    case 6: length = 3; return CALL(getsockopt, sockets[0], SOL_SOCKET, SO_TYPE, out, &length);
    case 7: return CALL(newfstatat, AT_FDCWD, "/", out, 0);
    case 8: return CALL(getcwd, out, 100);
    case 9: return CALL(uname, out);
    case 10: { int r = CALL(pipe2, out, O_CLOEXEC); close(((int *)out)[0]), close(((int *)out)[1]); return r; }
    case 11: return CALL(getrlimit, RLIMIT_AS, out);  // Weir answers some of these itself
    case 12: return CALL(prlimit64, 0, RLIMIT_AS, NULL, out);
    case 13: return CALL(prlimit64, 0, RLIMIT_CORE, NULL, out);
    case 14: return CALL(rt_sigaction, SIGUSR2, NULL, out, 8);
    case 15: return CALL(rt_sigprocmask, SIG_BLOCK, NULL, out, 8);
    case 16: return CALL(sigaltstack, NULL, out);
    case 17: return CALL(arch_prctl, ARCH_GET_FS, out);
    case 18: return CALL(arch_prctl, ARCH_GET_GS, out);
    case 19: return CALL(clock_gettime, CLOCK_MONOTONIC, out);
    case 20: sigaction(SIGALRM, &ours, NULL), tick_every(20000), t.tv_sec = 100; CALL(nanosleep, &t, out); return tick_every(0), 1;
    case 21: t.tv_sec = 0, t.tv_nsec = 1000; return CALL(nanosleep, &t, out);
    case 22: { struct pollfd *p = (void *)out; p->fd = sockets[0], p->events = POLLOUT; clear_marks(out, SIZE); return CALL(poll, p, 1, 0); }
    case 23: if (!(child = fork())) _exit(3); return CALL(wait4, child, out, 0, out + 100);
    case 24: if (!(child = fork())) _exit(3); return CALL(waitid, P_PID, child, out, WEXITED, NULL);
    case 25: write(fds[1], "xyz", 3); CALL(ioctl, fds[0], FIONREAD, out); read(fds[0], text, 3); return 1;
    case 26: return CALL(getrandom, out, 77, 0);
    case 27: return CALL(sched_getaffinity, 0, 128, out);
    case 28: return CALL(readlink, "/proc/self/fd/0", out, 5);
    case 29: vectors[0].iov_len = 3; return CALL(process_vm_readv, getpid(), vectors, 2, sources, 1, 0);
    case 30: { int e = eventfd(7, 0), r = CALL(read, e, out, 100); close(e); return r; }
    case 31: queue = epoll_create1(0), epoll_ctl(queue, EPOLL_CTL_ADD, sockets[0], &event), send(sockets[1], "1", 1, 0); CALL(epoll_wait, queue, out, 5, -1); recv(sockets[0], text, 6, 0), close(queue); return 1;
    case 32: sigaction(SIGALRM, &ours, NULL), tick_every(20000); CALL(read, fds[0], out, 8); return tick_every(0), 1;
    case 33: write(fds[1], "xyz", 3); CALL(read, fds[0], (void *)8, 8); read(fds[0], text, 3); return 1;
    case 34: return CALL(getgroups, 32, out);
    case 35: return CALL(prctl, PR_GET_NAME, out);
    case 36: return CALL(clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0, out, out + 64, 0) && (result || (_exit(marked(out + 64, 4) == 4 && marked(out, 64) == 0 ? 0 : 9), 1)) && (wait(&child), CHECK(child == 0), 1);
    case 37: return CALL(sched_getparam, 0, out);
    case 38: name = "vsyscall time"; result = ((long (*)(void *))0xffffffffff600400)(out) > 0; return 1;
    case 39: return CALL(sysinfo, out);
    default: return 0;
  }
}
int main(void) {
  static unsigned char before[SIZE], changed[SIZE], marks[SIZE];
  CHECK(pipe(fds) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0);
  for (int i = 0;; i++) {
    memset(changed, 0, SIZE);
    for (int fill = 0; fill < 3; fill++) {
      memset(out, fill == 2 ? 0x5a : -fill, SIZE), memcpy(before, out, SIZE), clear_marks(out, SIZE);
      if (!run(i)) return 0;
      ask_marks(MARKS_READ, out, SIZE, marks);
      for (int k = 0; k < SIZE; k++) if (out[k] != before[k]) { changed[k] = 1; if (!marks[k] && i != 22) printf("%s: %d was written, and not told\n", name, k); }
    }
    printf("%s:", name);
    for (int k = 0, begin; k < SIZE; k++) if (marks[k]) { for (begin = k; k < SIZE && marks[k]; k++) if (!changed[k]) printf(" [%d was not written]", k); printf(" %d-%d", begin, k); }
    puts(""), fflush(stdout);
  }
}
C
under "$T/writes" </dev/null
sed -E 's/(getdents64|newfstatat|sysinfo): .*/\1/; s/^(getcwd|readlink|getgroups|sched_getaffinity|uname):.*/\1/' "$T/weir.out" >"$T/got"
cat >"$T/expected" <<'X'
read: 0-3
readv: 100-102 200-201
read:
recvfrom: 0-4
recvmsg: 100-102 200-203
getsockname: 0-2
getsockopt: 0-3
newfstatat
getcwd
uname
pipe2: 0-8
getrlimit: 0-16
prlimit64: 0-16
prlimit64: 0-16
rt_sigaction: 0-32
rt_sigprocmask: 0-8
sigaltstack: 0-24
arch_prctl: 0-8
arch_prctl: 0-8
clock_gettime: 0-16
nanosleep: 0-16
nanosleep:
poll: 6-8
wait4: 0-4 100-244
waitid: 0-12 16-28
ioctl: 0-4
getrandom: 0-77
sched_getaffinity
readlink
process_vm_readv: 100-103 200-202
read: 0-8
epoll_wait: 0-12
read:
read:
getgroups
prctl: 0-16
clone: 0-4
sched_getparam: 0-4
vsyscall time: 0-8
sysinfo
X
diff "$T/expected" "$T/got" || { cat "$T/weir.out"; fail "not as expected (<)"; }
! grep -E 'not told|not written' "$T/weir.out" | grep -v '^\(newfstatat\|sysinfo\|wait4\|sigaltstack\)' || fail "not exact"
[[ $(told 'j["without_begin"]') == 0 ]] || fail "$(<"$T/weir.json")"
