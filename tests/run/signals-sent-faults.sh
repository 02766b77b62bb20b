# Signals that instructions raise, sent by others while the thread is on its way to a boundary: the mask stays the program's.
. "$(dirname "$0")/lib.sh"
compile sent.c <<'C'
#include "posix.h"
static volatile int handled;
static void on_any(int number, siginfo_t *info, void *context) { handled++; CHECK(info->si_code <= 0); }
static void spin(void) { for (volatile unsigned i = 0;; i++) { sigset_t now; if (i % 64 == 0) CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && *(uint64_t *)&now == 0); } }
int main() {
  static const int kinds[][2] = {{SIGSEGV, SIGSEGV}, {SIGBUS, SIGFPE}, {SIGILL, SIGSEGV}, {SIGTRAP, SIGBUS}, {SIGUSR1, SIGSEGV}};
  for (int k = 0; k < 5; k++) {
    pid_t child = fork(); int status;
    if (!child) { on_signal(kinds[k][0], on_any, SA_RESTART), on_signal(kinds[k][1], on_any, SA_RESTART); alarm(20); raise(kinds[k][0]); spin(); }
    usleep(100000);
    for (int i = 0; i < 600; i++) { kill(child, kinds[k][i & 1]); for (volatile int j = 0; j < i * 37 % 5000; j++); }
    kill(child, SIGTERM), CHECK(waitpid(child, &status, 0) == child), print_status("child", status);
  }
}
C
same "$T/sent"
