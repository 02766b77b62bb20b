# A function that is replaced is not executed: its caller gets the value, however it came there. One call alone may be, and the others run as ever.
. "$(dirname "$0")/lib.sh"
compile replaced.c -pthread <<'C'
#include "posix.h"
#define NOINLINE __attribute__((noinline, noclone, noipa))
static volatile int ran;
NOINLINE long secret(long n) { ran++; return n; }
NOINLINE long tail(long n) { return secret(n); }
NOINLINE long keeps(long a, long b, long c) { long r = secret(a); return r * 1000000 + b * 1000 + c; }
long (*volatile pointer)(long) = secret;
static void *thread(void *x) { long sum = 0; for (int i = 0; i < 1000; i++) sum += secret(i); return (void *)sum; }
static volatile sig_atomic_t signals;
static void handler(int sig) { signals += secret(1) != 0; }
long kept(long n);  // all registers that a call keeps are kept
asm(".globl kept; kept: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; sub $8, %rsp;"
    "mov $1, %ebx; mov $2, %ebp; mov $3, %r12d; mov $4, %r13d; mov $5, %r14d; mov $6, %r15d; mov %rsp, %r8; mov %r8, (%rsp);"
    "call secret; sub (%rsp), %rsp; add %rsp, %rax; add %r8, %rsp; mov %r8, %rsp;"
    "lea (%rax, %rbx), %rax; add %rbp, %rax; add %r12, %rax; add %r13, %rax; add %r14, %rax; add %r15, %rax;"
    "add $8, %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret");
int main(void) {
  printf("%ld %ld %ld %ld\n", secret(1), tail(2), pointer(3), keeps(4, 5, 6));
  pthread_t threads[2]; void *sums[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, thread, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], &sums[i]);
  signal(SIGALRM, handler);
  struct itimerval often = {{0, 300}, {0, 300}}, none = {};
  setitimer(ITIMER_REAL, &often, NULL);
  long sum = 0;
  for (int i = 0; i < 300000; i++) sum += secret(i);
  setitimer(ITIMER_REAL, &none, NULL);
  printf("%ld %ld %ld ran %s\n", (long)sums[0], (long)sums[1], sum, ran ? "yes" : "no");
  printf("%d\n", getuid() + getpid());
}
C
sed -i '/^long kept/,/^    "add .8, %rsp; pop/d' "$T/replaced.c"
build "$T/replaced.c" "$T/replaced" -pthread
OPTIONS='--return secret=42 --return getuid=1000 --return libc.so.6:getpid=0x10' calls "$T/replaced"
diff "$T/calls.out" - <<'E2' || fail "what is replaced"
42 42 42 42005006
42000 42000 12600000 ran no
1016
E2
(($(number secret calls) >= 302004 && $(number secret calls) == $(number secret returned))) || fail "$(cat "$T/calls.json")"

# The hundredth allocation fails, and no other.
compile fails.c <<'C'
#include "posix.h"
int main(void) { for (int i = 1; i <= 300; i++) if (!malloc(i * 7)) printf("%d\n", i); printf("end\n"); }
C
gcc -O0 -w "$T/fails.c" -I"$PROGRAMS" -o "$T/fails"
calls "$T/fails" malloc
before=$(($(number malloc calls) - 301))  # (stdout's buffer is the last one)
OPTIONS="--return malloc=0@$((before + 100))" calls "$T/fails"
[[ $(<"$T/calls.out") == $'100\nend' ]] || fail "one call: $(<"$T/calls.out")"
expect_fail 125 'a function with its value' "$WEIR" run --tool=calls --return malloc -- true
expect_fail 125 'needs --function' "$WEIR" run --tool=calls -- true
