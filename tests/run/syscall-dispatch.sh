# Syscall user dispatch: calls of the program go to its handler, with what the kernel says there; nothing of ours does.
. "$(dirname "$0")/lib.sh"
compile dispatch.c <<'C'
#include "posix.h"
static volatile char selector; static volatile int hits; static volatile long last;
static void on_sys(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  selector = 0, hits++, last = info->si_syscall;
  CHECK(info->si_code == 2 && info->si_arch == 0xC000003E && info->si_call_addr == (void *)r[REG_RIP] && r[REG_RAX] == info->si_syscall && r[REG_RCX] == r[REG_RIP]);
  r[REG_RAX] = 4242 + info->si_syscall;
}
static long call(long number, long a, long b) { long r; selector = 1; asm volatile("syscall" : "=a"(r) : "a"(number), "D"(a), "S"(b), "d"(1) : "rcx", "r11", "memory"); selector = 0; return r; }
static void on_alarm(int number, siginfo_t *info, void *context) { selector = 0; }
static void *thread(void *unused) { printf("thread: %d\n", call(SYS_getppid, 0, 0) == getppid()); return NULL; }
int main() {
  on_signal(SIGSYS, on_sys, 0);
  for (int mode = 0; mode < 5; mode++) printf("%d", prctl(59, mode, mode == 3 ? 1 : 0, mode == 4 ? 1 : 0, mode == 3 ? NULL : &selector) < 0 ? errno : 0), prctl(59, 0, 0, 0, 0);
  printf("\n%d\n", prctl(59, 1, 0, 0, &selector));
  printf("%d", call(SYS_getppid, 0, 0) == 4242 + SYS_getppid); printf(" %d", call(SYS_mmap, 0, 4096) == 4242 + SYS_mmap); printf(" %d", call(SYS_prctl, 0, 0) == 4242 + SYS_prctl);
  printf(" %d", call(SYS_exit_group, 0, 0) == 4242 + SYS_exit_group); printf(" %d hits, last %ld\n", hits, last);
  pthread_t t; pthread_create(&t, NULL, thread, NULL), pthread_join(t, NULL);
  fflush(stdout);
  if (!fork()) { printf("child: %d\n", call(SYS_getppid, 0, 0) == getppid()); fflush(stdout); _exit(0); }
  wait(NULL);
  // Calls of this program itself are allowed, those of the library are not.
  extern char __executable_start, etext;
  printf("%d\n", prctl(59, 1, &__executable_start, &etext - &__executable_start, &selector));
  hits = 0; printf("%d", call(SYS_getppid, 0, 0) == getppid()); selector = 1; long r = syscall(SYS_getppid); selector = 0; printf(" %d, %d hits\n", r == 4242 + SYS_getppid, hits);
  // A call that is allowed, and waits: a signal ends it.
  int ends[2]; char byte; CHECK(pipe(ends) == 0); on_signal(SIGALRM, on_alarm, 0); ualarm(20000, 20000);
  printf("%ld\n", call(SYS_read, ends[0], (long)&byte)); ualarm(0, 0);
  CHECK(prctl(59, 0, 0, 0, 0) == 0);
  printf("%d\n", call(SYS_getppid, 0, 0) == getppid());
}
C
same "$T/dispatch"
