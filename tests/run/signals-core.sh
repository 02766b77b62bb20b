# Core dumps: the status of a program whose core may be written, and SIGQUIT, SIGXCPU and SIGSYS.
. "$(dirname "$0")/lib.sh"
compile core.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}; setrlimit(RLIMIT_CORE, &all);
  static const int numbers[] = {SIGABRT, SIGSEGV, SIGQUIT, SIGXCPU, SIGSYS, SIGBUS, SIGTRAP};
  for (int i = 0; i < 7; i++) {
    pid_t child = fork();
    if (!child) { signal(numbers[i], SIG_DFL); if (i == 1) *(volatile int *)0 = 0; raise(numbers[i]); }
    int status; CHECK(waitpid(child, &status, 0) == child);
    print_status("child", status);
  }
  struct rlimit second = {1, 2}; setrlimit(RLIMIT_CPU, &second);
  for (volatile long n = 0;; n++) {}
}
C
STATUS=152 same "$T/core"
