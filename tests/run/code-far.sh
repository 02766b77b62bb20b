# Written code that calls the program from nearly 2 GiB away, where its own translation is out of reach of the program's: the calls are
# linked all the same, and need Weir once.
. "$(dirname "$0")/lib.sh"
compile far.c -pie -fPIE <<'C'
#include "posix.h"
__attribute__((noinline)) int twice(int n) { __asm__ volatile(""); return 2 * n; }
int main() {
  long sum = 0;
  for (int k = 0; k < 2; k++) {
    unsigned char *p = mmap((char *)main + (k ? 1 : -1) * 0x7a000000L - (long)main % 4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) continue;
    int to = (char *)twice - (char *)(p + 9);
    p[0] = 0x48, p[1] = 0x83, p[2] = 0xec, p[3] = 8, p[4] = 0xe8, memcpy(p + 5, &to, 4), memcpy(p + 9, "\x48\x83\xc4\x08\xc3", 5);  // sub rsp, 8; call twice; add rsp, 8; ret
    mprotect(p, 4096, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 20000; i++) sum += ((int (*)(int))p)(i);
  }
  printf("%ld\n", sum);
}
C
same "$T/far"
run weir "$WEIR" run --stats -- "$T/far"
requests=$(sed -n 's/^weir: requests \([0-9]*\),.*/\1/p' "$T/weir.err")
((requests < 5000)) || fail "$requests requests: calls are not linked"
