# System calls are told in order, each once: also those that signals interrupt, that the kernel begins again, that handlers leave, and that do not return.
. "$(dirname "$0")/lib.sh"
use_tool marks
compile order.c -pthread <<'C'
#include "marks.h"
static struct MarksNote notes[MARKS_LOG_SIZE]; static uint64_t count;
static char text[64], other[64]; static int fds[2], others[2];
static sigjmp_buf before_read; static volatile int leaves, handled;
static void begin_log(void) { ask_marks(MARKS_LOG, 0, 0, 0); }
// What has been told of calls with these numbers: "read(", ")=3", "!" for a frame.
static const char *log_of(int a, int b, int c) {
  static char line[4000]; char *p = line; *p = 0;
  ask_marks(MARKS_LOG, notes, MARKS_LOG_SIZE, &count);
  for (unsigned i = 0; i < count; i++) {
    struct MarksNote *n = &notes[i];
    if (n->time == 2) { if (p == line || p[-1] != '!') *p++ = '!', *p = 0; continue; }
    if ((int)n->number != a && (int)n->number != b && (int)n->number != c) continue;
    if (n->use == MARKS_BEGIN) p += sprintf(p, "%d(", (int)n->number);
    if (n->use == 3 && n->time == 1) p += sprintf(p, "w%ld", (long)n->size);
    if (n->use == MARKS_END) p += sprintf(p, ")=%ld ", (long)n->result);
  }
  return line;
}
static void expect(const char *what, const char *log, const char *expected) { if (strcmp(log, expected)) printf("%s: %s, not %s\n", what, log, expected); }
static void await_read(void) {  // of the first thread, which is to be in it
  for (char name[60], line[60];; usleep(2000)) {
    sprintf(name, "/proc/self/task/%d/syscall", getpid());
    int f = open(name, O_RDONLY), n = read(f, line, 59), call = -1, file = -1; close(f), line[n < 0 ? 0 : n] = 0;
    if (sscanf(line, "%d 0x%x", &call, &file) == 2 && call == SYS_read && file == fds[0]) return;
  }
}
static void *later(void *x) { handled = 0; await_read(), pthread_kill(*(pthread_t *)x, SIGUSR1); while (!handled) usleep(1000); await_read(), write(fds[1], "abc", 3); return NULL; }
static void handler(int s, siginfo_t *info, void *context) {
  ucontext_t *uc = context;
  CHECK(marked(&uc->uc_mcontext, 22 * 8) == 22 * 8 && marked(&uc->uc_sigmask, 8) == 8 && marked(info, 128) == 128 && marked(uc->uc_mcontext.fpregs, 512) == 512);
  if (s == SIGUSR2) return;
  clear_marks(other, sizeof other);
  write(others[1], "12", 2), read(others[0], other, 9);
  CHECK(marked(other, 9) == 2);
  if (leaves == 2) raise(SIGUSR2);
  handled = 1;
  if (leaves == 1) siglongjmp(before_read, 1);
}
static void one(const char *what, int flags, int how, const char *expected) {
  pthread_t t, self = pthread_self();
  on_signal(SIGUSR1, handler, flags), on_signal(SIGUSR2, handler, 0), leaves = how;
  clear_marks(text, sizeof text), pthread_create(&t, NULL, later, &self);
  begin_log();
  long n = 0;
  if (!sigsetjmp(before_read, 1)) n = syscall(SYS_read, fds[0], text, 8);
  if (n <= 0) CHECK(marked(text, 8) == 0), n = syscall(SYS_read, fds[0], text, 8);
  CHECK(n == 3 && marked(text, 8) == 3);
  expect(what, log_of(SYS_read, SYS_rt_sigreturn, SYS_tgkill), expected), pthread_join(t, NULL);
}
static void *many(void *x) {
  char own[64]; int pair[2]; pipe(pair);
  for (int i = 1; i < 400; i++) {
    int n = 1 + i % 50; clear_marks(own, 64);
    CHECK(write(pair[1], notes, n) == n && read(pair[0], own, 64) == n && marked(own, 64) == n);
  }
  return NULL;
}
static volatile sig_atomic_t ticks;
static void tick(int s) { ticks++; int e = errno; char c; getppid(); read(others[0], &c, 0); errno = e; }
int main(int argc, char **argv) {
  static char stack[65536]; stack_t alternate = {stack, 0, sizeof stack};
  CHECK(pipe(fds) == 0 && pipe(others) == 0);
  one("restarted", SA_RESTART, 0, "0(!0(w2)=2 15(w3)=3 ");
  one("restarted, on another stack", SA_RESTART | SA_ONSTACK, (sigaltstack(&alternate, NULL), 0), "0(!0(w2)=2 15(w3)=3 ");
  one("interrupted", 0, 0, "0(!0(w2)=2 15()=-4 0(w3)=3 ");
  one("left", 0, 1, "0(!0(w2)=2 0(w3)=3 ");
  one("nested", SA_RESTART, 2, "0(!0(w2)=2 234(!15()=0 15(w3)=3 ");
  // Stopped and continued, the kernel goes on with what is left of it by another call.
  pid_t parent = getpid();
  if (fork() == 0) { usleep(100000), kill(parent, SIGSTOP), usleep(50000), kill(parent, SIGCONT), _exit(0); }
  begin_log();
  struct timespec t = {0, 300000000}; syscall(SYS_nanosleep, &t, NULL);
  const char *log = log_of(SYS_nanosleep, SYS_restart_syscall, -1);
  expect("stopped", strchr(log, '=') ? log : "", "35()=0 "); wait(NULL);
  // Calls that do not return, or return twice, and those that Weir makes.
  begin_log(); syscall(SYS_execve, "/nowhere", argv, NULL); expect("exec that fails", log_of(SYS_execve, -1, -1), "59()=-2 ");
  begin_log(); pid_t child = vfork(); if (!child) { execl("/bin/true", "true", NULL); _exit(1); }
  log = log_of(SYS_vfork, SYS_clone, SYS_clone3); char end[50]; sprintf(end, ")=%d ", child); CHECK(strstr(log, end)); wait(NULL);
  begin_log();
  char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(p + 4096, 4096); mprotect(p, 4096, PROT_READ);
  ask_marks(MARKS_LOG, notes, MARKS_LOG_SIZE, &count); int seen = 0;
  for (unsigned i = 0; i < count; i++) {
    if (notes[i].use == 4 && notes[i].number == SYS_mmap) CHECK(notes[i].begin == (uint64_t)p && notes[i].size == 8192 && notes[i].result == (int64_t)p), seen |= 1;
    if (notes[i].use == 4 && notes[i].number == SYS_munmap) CHECK(notes[i].begin == (uint64_t)p + 4096 && notes[i].size == 4096), seen |= 2;
    if (notes[i].use == 4 && notes[i].number == SYS_mprotect) CHECK(notes[i].begin == (uint64_t)p && notes[i].size == 4096), seen |= 4;
  }
  CHECK(seen == 7);
  struct sigaction action = {.sa_handler = tick}, old; begin_log();
  CHECK(syscall(SYS_rt_sigaction, SIGALRM, NULL, &old, 8) == 0); log_of(0, 0, 0); CHECK(marked(&old, 32) == 32);
  // A timer that interrupts all the time, threads, and children.
  sigaction(SIGALRM, &action, NULL); struct itimerval fast = {{0, 300}, {0, 300}}; setitimer(ITIMER_REAL, &fast, NULL);
  pthread_t threads[4]; for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, many, NULL);
  for (int i = 0; i < 20; i++) { pid_t c = fork(); if (!c) { many(NULL); _exit(0); } int status; while (waitpid(c, &status, 0) < 0) {} CHECK(status == 0); }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  struct MarksCounts counts; ask_marks(MARKS_COUNTS, &counts, 0, NULL); CHECK(counts.without_begin == 0 && counts.told > 100);
  puts("fine"), fflush(stdout);
  if (argc > 1) syscall(SYS_exit_group, 7);
}
C
STATUS=7 under "$T/order" exit
[[ $(<"$T/weir.out") == fine && ! -s $T/weir.err ]] || fail "$(<"$T/weir.out") $(<"$T/weir.err")"
[[ $(told 'j["without_begin"]') == 0 ]] || fail "$(<"$T/weir.json")"

# A call that becomes SIGSYS is told before, and never as done; under a filter the runtime does not read what pointers lead to, and says so.
compile filters.c <<'C'
#include "marks.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
static char text[64], selector;
static void handler(int s, siginfo_t *info, void *context) { selector = 0; ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 5; }
int main(void) {
  int fds[2]; CHECK(pipe(fds) == 0); static struct MarksCounts a, b; static struct MarksNote notes[100]; static uint64_t count;
  on_signal(SIGSYS, handler, 0);
  if (prctl(59, 1, 0, 0, &selector) == 0) {  // syscall user dispatch
    ask_marks(MARKS_LOG, 0, 0, 0);
    selector = 1; long n = syscall(SYS_read, fds[0], text, 8); CHECK(n == 5 && marked(text, 8) == 0);
    ask_marks(MARKS_LOG, notes, 100, &count); int begun = 0;
    for (unsigned i = 0; i < count; i++) if (notes[i].number == SYS_read && notes[i].time < 2) begun += notes[i].use == MARKS_BEGIN, CHECK(notes[i].use != MARKS_END);
    CHECK(begun == 1 && write(fds[1], "abcde", 5) == 5 && read(fds[0], text, 3) == 3 && marked(text, 8) == 3);
    CHECK(prctl(59, 0, 0, 0, 0) == 0);
  } else CHECK(write(fds[1], "de", 2) == 2);
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {4, code};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
  CHECK(syscall(SYS_getpgid, 0) == 5);
  clear_marks(text, 64), CHECK(read(fds[0], text, 8) == 2 && marked(text, 8) == 2);
  ask_marks(MARKS_COUNTS, &a, 0, 0), ask_marks(MARKS_COUNTS, &b, 0, 0);
  uint64_t questions = b.unknown - a.unknown;
  ask_marks(MARKS_COUNTS, &a, 0, 0), getppid(), access("/", R_OK), ask_marks(MARKS_COUNTS, &b, 0, 0);
  CHECK(b.unknown - a.unknown == questions + 1);
  puts("fine"), fflush(stdout);
}
C
under "$T/filters"
[[ $(<"$T/weir.out") == fine && ! -s $T/weir.err ]] || fail "$(<"$T/weir.out") $(<"$T/weir.err")"
