# What cannot be sampled is told, in one line: processes that share their parent's memory, and the time of those that are
# over too soon.
. "$(dirname "$0")/lib.sh"
compile unseen.c <<'C'
#include "posix.h"
#include <sched.h>
static volatile long n;
static void spin(long rounds) { for (long i = 0; i < rounds; i++) n++; }
static int child(void *p) { spin(5000000000); return 3; }
int main(int argc, char **argv) {
  static char stack[1 << 16];
  int status;
  if (argc == 2) CHECK(clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) > 0 && wait(&status) > 0 && WEXITSTATUS(status) == 3);
  else for (int i = 0; i < 300; i++) {
    if (!fork()) { spin(5000000); _exit(0); }
    if (i % 30 == 29) while (wait(&status) > 0) {}
  }
  puts("right");
}
C
"$WEIR" sample -o "$T/run.weir" -- "$T/unseen" shares >"$T/out" 2>"$T/err" && grep -q right "$T/out" || fail "$(cat "$T/err")"
grep -q 'ran unsampled: 1; .*shares the memory' "$T/err" || fail "nothing said: $(cat "$T/err")"
"$WEIR" sample -q -o "$T/run.weir" -- "$T/unseen" >"$T/out"
seconds=$(report summary | sed -n 's/.* \([0-9.]*\) s of the [0-9.]* s of CPU time .* not in the samples.*/\1/p')
[[ -n $seconds ]] || (($(ask 'SELECT samples FROM sampling') > 350)) || fail "$(report summary)"
