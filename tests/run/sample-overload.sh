# spec 3, S8: samples that take longer than their period do not keep the program from getting on; what is not taken is counted as lost.
. "$(dirname "$0")/lib.sh"
compile deep.c <<'C'
#include "posix.h"
static volatile long n;
__attribute__((noipa)) static long leaf(long x) { for (int i = 0; i < 200000; i++) n++; return x; }
__attribute__((noipa)) static long down(long depth) { long below = 0; if (depth) below = down(depth - 1), n++; else for (int i = 0; i < 300; i++) leaf(i); return below + 1; }
int main() { printf("%ld\n", down(30000)); }
C
OPTIONS=--verify RATE=20000 sampled "$T/deep"
# A stack that is not the thread's own, and is read with the kernel's help.
compile elsewhere.c <<'C'
#include "posix.h"
static ucontext_t back, there; static volatile long n; static long result;
__attribute__((noipa)) static long down(long depth) { char room[1500]; room[depth % 1500] = 1; long below = depth ? down(depth - 1) : 0; n += room[depth % 1500]; return below + 1; }
static void coroutine(void) { for (int i = 0; i < 30; i++) result += down(20000); }
int main() {
  getcontext(&there);
  there.uc_stack.ss_size = 64 << 20, there.uc_stack.ss_sp = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), there.uc_link = &back;
  makecontext(&there, coroutine, 0), swapcontext(&back, &there), printf("%ld\n", result);
}
C
RATE=20000 sampled "$T/elsewhere"
