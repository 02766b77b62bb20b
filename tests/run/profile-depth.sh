# A function that is on the stack twice counts once in its total, whichever way it got there: by a call into its middle, or in a second mapping of its
# image, as V8 has one of its builtins; also in a process that was forked with both frames open.
. "$(dirname "$0")/lib.sh"
compile depth.c -static <<'C'
#include "posix.h"
// first(f, a, b) calls f(a, b) at its end. `around` calls `between`, which calls the middle of `around`, which calls `work`.
long first(void *, void *, void *), around(), between();
asm(".globl first, around, between\n.type first, @function\n.type around, @function\n.type between, @function\n"
    "first: mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsi; jmp *%rax\n.size first, . - first\n"
    "around: sub $8, %rsp; call between; add $8, %rsp; ret\n"
    "middle: sub $8, %rsp; call work; add $8, %rsp; ret\n.size around, . - around\n"
    "between: sub $8, %rsp; call middle; add $8, %rsp; ret\n.size between, . - between\n");
long work() {
  pid_t child = fork();
  for (volatile int i = 0; i < 100000; i++);
  if (!child) _exit(0);
  CHECK(waitpid(child, NULL, 0) == child);
  return 0;
}
int main() {
  extern char __executable_start[];
  long page = (long)first & -4096, size = 8192;
  int self = open("/proc/self/exe", O_RDONLY);
  char *twin = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, page - (long)__executable_start);
  CHECK(twin != MAP_FAILED && !memcmp(twin, (void *)page, size));
  first(twin + ((long)first - page), work, NULL);
  around();
  return 0;
}
C
profile "$T/depth"
for name in first around; do
  [[ $(ask "SELECT count(*) FROM function_count f JOIN function_total t ON t.id = f.function JOIN thread ON thread.id = f.thread
    WHERE t.name = '$name' AND f.total > thread.cycles") == 0 ]] || fail "$name has its time twice"
done
[[ $(ask "SELECT max(total) - min(total) < 200 FROM function_total WHERE name IN ('around', 'between')") == 1 ]] || fail "$(ask "SELECT name, total FROM function_total WHERE name IN ('around', 'between')")"
