# The x87 stack and control words across calls, system calls and signals; a handler starts with fresh ones.
. "$(dirname "$0")/lib.sh"
compile x87.c -lm <<'C'
#include "posix.h"
#include <fenv.h>
static volatile int signals; static unsigned short word; static unsigned mxcsr;
static void tick(int number, siginfo_t *info, void *context) {
  unsigned now; unsigned short cw;
  asm volatile("stmxcsr %0; fstcw %1" : "=m"(now), "=m"(cw));
  CHECK(now == 0x1f80 && cw == 0x37f);                            // as after exec
  CHECK((((ucontext_t *)context)->uc_mcontext.fpregs->mxcsr & 0xffc0) == (mxcsr & 0xffc0) && ((ucontext_t *)context)->uc_mcontext.fpregs->cwd == word);
  asm volatile("fninit; fldpi; fld1; ldmxcsr %0" : : "m"((unsigned){0x9fc0}));
  signals++;
}
long double eight(long loops);
asm(R"(
eight: fld1; fldpi; fldl2e; fldl2t; fldlg2; fldln2; fld1; fldpi     # the stack is full
1: fxch %st(7); fsin; fadd %st(3), %st; fxch %st(5); call 2f; mov $110, %eax; cmp $64, %rdi; ja 3f; syscall; 3: dec %rdi; jnz 1b
  faddp; faddp; faddp; faddp; faddp; faddp; faddp; ret
2: fmul %st(1), %st; frndint; fadd %st(2), %st; ret
)");
int main() {
  struct itimerval often = {{0, 400}, {0, 400}}, never = {};
  on_signal(SIGALRM, tick, 0);
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (int m = 0; m < 4; m++) {
    fesetround(modes[m]);
    asm volatile("fstcw %0; stmxcsr %1" : "=m"(word), "=m"(mxcsr));
    long double expected = eight(50000);
    double x = 1; for (volatile int i = 1; i < 1000; i++) x += 1.0 / i;
    setitimer(ITIMER_REAL, &often, NULL);
    for (int end = signals + 150; signals < end;) {
      CHECK(eight(50000) == expected && fegetround() == modes[m]);
      double y = 1; for (volatile int i = 1; i < 1000; i++) y += 1.0 / i;
      CHECK(x == y);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%La %a %x\n", expected, x, word);
  }
  fesetround(FE_TONEAREST), feclearexcept(FE_ALL_EXCEPT);
  volatile double zero = 0, one = 1; zero = one / zero;
  printf("flags %x\n", fetestexcept(FE_ALL_EXCEPT));
}
C
same "$T/x87"
