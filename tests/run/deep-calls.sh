# More calls inside each other than the parallel stack has room for: the profile says so, and has what came before.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile deep.c -O1 -fno-optimize-sibling-calls <<'C'
#include "posix.h"
__attribute__((noipa)) static long deep(long n) { return n ? deep(n - 1) + 1 : 0; }
static void *thread(void *n) { return (void *)deep((long)n); }
static void ignored(int number, siginfo_t *info, void *context) { _exit(3); }
int main(int argc, char **argv) {
  char *stack = malloc(16384); stack_t other = {stack, 0, 16384};
  if (argc > 2) sigaltstack(&other, NULL), on_signal(SIGSEGV, ignored, SA_ONSTACK);
  pthread_t t; pthread_attr_t a; void *result;
  pthread_attr_init(&a), pthread_attr_setstacksize(&a, 400 << 20);
  CHECK(pthread_create(&t, &a, thread, (void *)atol(argv[1])) == 0), pthread_join(t, &result), printf("%ld\n", (long)result);
}
C
profile "$T/deep" 1900000; [[ $(<"$T/profile.out") == 1900000 ]] || fail "$(<"$T/profile.out")"
ends() {  # ends OPTION [ARGUMENT]
  run weir "$WEIR" profile -q $1 -o "$T/run.weir" -- "$T/deep" 3000000 ${2:-}
  [[ $(<"$T/weir.status") == 125 && $(wc -l <"$T/weir.err") == 1 ]] && grep -q 'calls inside each other' "$T/weir.err" || fail "$*: $(<"$T/weir.status"): $(head -c 2000 "$T/weir.err")"
  [[ $(ask "SELECT calls > 1900000 FROM function_total WHERE name = 'deep'") == 1 ]] || fail "$*: no counts"
}
ends --paths=callers
ends --paths=callers handler
ends --paths=full
