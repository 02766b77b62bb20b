# Limits on address space, data and stacks, and regions of a tool: they are had, or a line says why the program does not run; what the program sees and sets of
# its limits is as natively.
. "$(dirname "$0")/lib.sh"
use_tool marks
refused_by() {  # refused_by LIMIT
  local said; said=$(ulimit $1; status=0; timeout $LIMIT "$WEIR" run -- touch "$T/made" 2>&1 || status=$?; echo "status $status")
  [[ $said =~ ^weir:\ [^$'\n']+$'\n'status\ 125$ && ! -e $T/made ]] || fail "$1: $said"
  echo "$said" | head -n 1
}
[[ $(refused_by "-v $((9000 << 20))") == *'no room for marks, '*'ulimit -v'* ]] || fail "$(refused_by "-v $((9000 << 20))")"
refused_by '-v 4000000' >/dev/null
compile limits.c <<'C'
#include "posix.h"
static void show(int what) { struct rlimit r; CHECK(getrlimit(what, &r) == 0), printf("%lx %lx ", r.rlim_cur, r.rlim_max), CHECK(prlimit(0, what, NULL, &r) == 0), printf("%lx %lx\n", r.rlim_cur, r.rlim_max), fflush(stdout); }
static int room(void) { int n = 0; while (n < 100 && mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) n++; return n; }
int main(int argc, char **argv) {
  show(RLIMIT_DATA); if (argc > 2) show(RLIMIT_AS);
  if (argc > 3) { printf("room %d\n", room()); return 0; }
  struct rlimit r = {atol(argv[1]), atol(argv[1])};
  if (r.rlim_cur) { CHECK(setrlimit(RLIMIT_DATA, &r) == 0); show(RLIMIT_DATA); }
  if (fork() == 0) { show(RLIMIT_DATA), printf("child %d\n", room()), fflush(stdout), _exit(0); }
  wait(NULL);
  if (vfork() == 0) { execl(argv[0], argv[0], "0", "all", "again", NULL); _exit(1); }
  wait(NULL);
  printf("room %d\n", room());
}
C
same "$T/limits" $((1 << 30))
same bash -c 'ulimit -d 1000000; exec "$0" 0' "$T/limits"
same bash -c 'ulimit -d 1000000; "$0" 900000000 all; ulimit -v 4000000; "$0" 900000000 all' "$T/limits"
(ulimit -d 1000000; same "$T/limits" $((1 << 29)))
TOOLS=marks WEIR=$WEIR bash "$HERE/limits-own.sh"
# With stacks without a limit, private memory that is like a stack does not grow.
compile below.c <<'C'
#include "marks.h"
static sigjmp_buf back;
static void handler(int s, siginfo_t *i, void *c) { siglongjmp(back, 1); }
int main(void) {
  volatile int faults = 0;
  on_signal(SIGSEGV, handler, 0);
  for (int i = 0; i < MARKS_REGIONS; i++)
    for (unsigned long below = 8; below < 1ul << 30; below *= 8) {
      volatile char *p = (volatile char *)region(i) - below; char own = 0;
      for (int k = 0; k < MARKS_REGIONS; k++) own |= (unsigned long)p - (unsigned long)region(k) < region_size(k);
      if (!own && !sigsetjmp(back, 1)) *p = 1, printf("%d: %#lx below there is memory\n", i, below); else faults += !own;
    }
  printf("%d\n", faults > 15);
}
C
for stack in 8192 unlimited; do
  (ulimit -s $stack; under "$T/below"; [[ $(<"$T/weir.out") == 1 ]] || fail "$stack: $(<"$T/weir.out")")
done
