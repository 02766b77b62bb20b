# Unmasked floating-point exceptions, SSE and x87; a handler that reads and changes vector registers.
. "$(dirname "$0")/lib.sh"
compile fpe.c -lm <<'C'
#include "posix.h"
#include <fenv.h>
static void fpe(int number, siginfo_t *info, void *context) {
  ucontext_t *uc = context; extern char sse_fault[], sse_next[];
  printf("code %d at the division %d, xmm0 %g, xmm1 %g\n", info->si_code, uc->uc_mcontext.gregs[REG_RIP] == (long)sse_fault,
         *(double *)&uc->uc_mcontext.fpregs->_xmm[0], *(double *)&uc->uc_mcontext.fpregs->_xmm[1]);
  *(double *)&uc->uc_mcontext.fpregs->_xmm[0] = 1234.5;
  uc->uc_mcontext.fpregs->mxcsr |= 0x1f80;                        // masked again
  uc->uc_mcontext.gregs[REG_RIP] = (long)sse_next;
}
static sigjmp_buf back;
static void leave(int number, siginfo_t *info, void *context) { siglongjmp(back, info->si_code); }
double divide(double, double);
asm("divide: sse_fault: divsd %xmm1, %xmm0; sse_next: ret");
int main() {
  on_signal(SIGFPE, fpe, 0);
  feenableexcept(FE_DIVBYZERO);
  printf("%g\n", divide(3, 0));
  printf("%g\n", divide(3, 2));
  on_signal(SIGFPE, leave, 0);
  for (volatile int i = 0; i < 3; i++) {
    int code = sigsetjmp(back, 1);
    if (code) { printf("x87 code %d\n", code); asm volatile("fninit"); continue; }
    feenableexcept(i == 0 ? FE_DIVBYZERO : i == 1 ? FE_INVALID : FE_OVERFLOW);
    volatile long double zero = i, x = i == 2 ? 1e4930L : 0;
    x = i == 0 ? 1 / zero : i == 1 ? (zero - zero) / x : x * x; asm volatile("fwait");
  }
}
C
same "$T/fpe"
