# spec 1, A4: functions that call each other at their ends, and never return, need no more room than one call; every call is counted.
. "$(dirname "$0")/lib.sh"
compile loops.c -O2 -fno-inline <<'C'
#include "posix.h"
static inline long os(void) { long r; asm volatile("syscall" : "=a"(r) : "a"(SYS_getppid) : "rcx", "r11", "memory"); return r > 0; }
__attribute__((noipa)) static long back(long n, long s); // (frames that OS calls were charged to are no others)
__attribute__((noipa)) static long forth(long n, long s) { return n ? back(n - 1, s + os()) : s; }
__attribute__((noipa)) static long back(long n, long s) { return n ? forth(n - 1, s + os()) : s; }
static long ping(long n, long s), pong(long n, long s);
__attribute__((noipa)) static long ping(long n, long s) { return n ? pong(n - 1, s + n) : s; }
__attribute__((noipa)) static long pong(long n, long s) { return n ? ping(n - 1, s ^ n) : s; }
typedef long (*Handler)(const unsigned char *, long);
extern const Handler handlers[];
#define NEXT(p, s) return handlers[*(p)](p, s)
__attribute__((noipa)) static long add(const unsigned char *p, long s) { NEXT(p + 1, s + 3); }
__attribute__((noipa)) static long twice(const unsigned char *p, long s) { NEXT(p + 1, s * 2 % 1000003); }
__attribute__((noipa)) static long end(const unsigned char *p, long s) { return s; }
const Handler handlers[] = {end, add, twice};
static unsigned char program[5000001];
int main() {
  for (int i = 0; i < 5000000; i++) program[i] = 1 + i % 2;
  printf("%ld %ld %ld\n", ping(6000000, 0), handlers[program[0]](program, 1), forth(3000000, 0));
}
C
profile "$T/loops"
[[ $(<"$T/profile.out") == $("$T/loops") ]] || fail "other output"
answers "SELECT name, calls FROM function_total WHERE name IN ('add', 'twice', 'end', 'ping', 'pong', 'forth', 'back') ORDER BY 1" <<'E'
add|2500000
back|1500000
end|1
forth|1500001
ping|3000001
pong|3000000
twice|2500000
E
answers "SELECT count(*) FROM process_word WHERE kind = 'note'" <<<0
answers "SELECT count(*) FROM function_count c JOIN thread t ON t.id = c.thread WHERE c.total > t.cycles" <<<0
