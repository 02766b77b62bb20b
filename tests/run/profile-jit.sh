# spec 1, A7: calls out of code that is written at run time, and back into it, are counted and end; so does code that is rewritten in place.
. "$(dirname "$0")/lib.sh"
compile jit.c -O1 <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static long sum;
__attribute__((noinline)) void work(long n) { sum += n; }
int main() {
  // push rbx; push r12; push r13; mov rbx, rdi; mov r12, rsi; again: mov rdi, rbx; call r12; dec rbx; jne again; pop r13; pop r12; pop rbx; ret
  static const unsigned char loop[] = {0x53, 0x41, 0x54, 0x41, 0x55, 0x48, 0x89, 0xfb, 0x49, 0x89, 0xf4, 0x48, 0x89, 0xdf, 0x41, 0xff, 0xd4,
                                       0x48, 0xff, 0xcb, 0x75, 0xf5, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0xc3};
  unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 3; i++) {
    memcpy(code, loop, sizeof loop);
    memcpy(code + 2048, loop, sizeof loop);
    ((void (*)(long, void (*)(long)))code)(1000000, work);
    ((void (*)(long, void (*)(long)))(code + 2048))(1000, work);
    memset(code, 0xcc, 64);
  }
  printf("%ld\n", sum);
}
C
profile "$T/jit"
[[ $(<"$T/profile.out") == $("$T/jit") ]] || fail "other output"
answers "SELECT name, calls FROM function_total WHERE name IN ('main', 'work') ORDER BY 1" <<'E'
main|1
work|3003000
E
# The loops were called by main, three times each, and have the time of what they called.
answers "SELECT count(*), sum(c.calls), min(c.total > 1000 * c.calls) FROM call_count c JOIN site s ON s.id = c.site JOIN function f ON f.id = s.function
         JOIN string n ON n.id = f.name JOIN function g ON g.id = c.callee JOIN image i ON i.id = g.image WHERE n.text = 'main' AND i.path LIKE '[%'" <<<'2|6|1'
answers "SELECT count(*) FROM function_count c JOIN thread t ON t.id = c.thread WHERE c.total > t.cycles" <<<0
