# spec 1, A4: a handler that returns ends with its signal frame; one that exits or jumps ends the leaf call that it interrupted;
# code written at run time is called by somebody.
. "$(dirname "$0")/lib.sh"
compile handlers.c <<'C'
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile char* bad;
static sigjmp_buf out;
static void on_trap(int s) {}
static void on_segv(int s) { siglongjmp(out, 1); }
static void on_bus(int s) { _exit(3); }
__attribute__((noinline)) long leaf(long n, volatile char* p) { long x = n; for (long i = 0; i < n; i++) x = x * 31 + i; *p = 1; return x; }
__attribute__((noinline)) long work(long n) { long x = n; __asm__ volatile("int3"); for (long i = 0; i < n; i++) x = x * 31 + i; return x; }
__attribute__((noinline)) long written(long (*f)(void)) { long x = 0; for (int i = 0; i < 100; i++) x += f(); return x; }
int main() {
  char good;
  signal(SIGTRAP, on_trap), signal(SIGSEGV, on_segv), signal(SIGBUS, on_bus);
  unsigned char* code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, "\xb8\x01\x00\x00\x00\xc3", 6);
  if (written((long (*)(void))code) != 100) return 1;
  work(100000);
  if (!sigsetjmp(out, 1)) leaf(200000, 0);
  char name[] = "/tmp/weir-handlers-XXXXXX";
  int fd = mkstemp(name);
  unlink(name);
  bad = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);  // behind the end of the file
  leaf(300000, bad);
}
C
STATUS=3 same "$T/handlers"
STATUS=3 profile "$T/handlers"
answers "SELECT name, calls, total >= self AND total < self * 1.1 FROM function_total WHERE name IN ('leaf', 'work') ORDER BY 1" <<E2
leaf|2|1
work|1|1
E2
# What the handler returned to has ended, too: the time after it is the function's own.
answers "SELECT max(c.self_max) = max(f.self) FROM call_count c JOIN function_total f ON f.id = c.callee WHERE f.name = 'work'" <<<1
answers "SELECT sum(c.calls) FROM call_count c JOIN site s ON s.id = c.site JOIN function_total f ON f.id = s.function WHERE f.name = 'written'" <<<100
