# strace and gdb under weir sample: Weir holds no process that they are about to trace, and comes back to one that they have left.
. "$(dirname "$0")/lib.sh"
need strace gdb
compile work.c -g <<'S'
#include <stdio.h>
#include <stdlib.h>
int inner(int n) { return n + 1; }
int main(int argc, char** argv) {
  volatile int sum = 0;
  for (long i = 0; i < atol(argv[1]) * 100000; i++) sum = inner(sum);
  printf("done %d\n", sum);
}
S
# Many that begin at the same time as what they trace.
for i in 1 2 3 4 5; do
  sampled strace -f -e trace=write -e signal=none -o /dev/null bash -c "$T/work 1; $T/work 2"
  sampled bash -c "strace -o /dev/null $T/work 1; strace -o /dev/null $T/work 1"
done
sampled bash -c "gdb -q -nx -batch -ex 'break inner' -ex run -ex delete -ex continue --args $T/work 1 2>&1 | sed 's/process [0-9]*/process/'"
# A tracer that attaches by itself, to one that is sampled already or not yet.
compile attach.c <<'S'
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  int failures = 0, traps = 0;
  for (int i = 0; i < 60; i++) {
    pid_t child = fork();
    if (!child) {
      if (i % 3 == 0) execl("/bin/sleep", "sleep", "100", (char*)0);
      for (volatile long k = 0;; k++) {}
    }
    usleep(i * 400);
    int status = 0;
    if (ptrace(PTRACE_SEIZE, child, 0, 0)) failures++, printf("seize: %s\n", strerror(errno));
    else if (ptrace(PTRACE_INTERRUPT, child, 0, 0) || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) failures++;
    else traps += status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP;
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {}
  }
  printf("%d failures, %d signals that are not the program's\n", failures, traps);
}
S
sampled "$T/attach"
