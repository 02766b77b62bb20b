# A child that shares the memory (with CLONE_VFORK and without) maps, unmaps and changes code; the parent goes on right.
. "$(dirname "$0")/lib.sh"
compile shared.c <<'C'
#include "posix.h"
static char stack[65536], *old; static int was;
static int call(char *code) { return ((int (*)(void))code)(); }
static void set(char *code, int value) {
  char bytes[] = {0xb8, value, 0, 0, 0, 0xc3};   // mov $value, %eax; ret
  mprotect(code, 4096, PROT_READ | PROT_WRITE), memcpy(code, bytes, sizeof bytes), mprotect(code, 4096, PROT_READ | PROT_EXEC);
}
static char *page(void) { return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static int child(void *value) {
  char *code = page(); set(code, 42), was = call(code) + call(old), munmap(code, 4096);   // 42 and what the parent has put there
  set(old, (long)value); return call(old);
}
int main(int argc, char **argv) {
  old = page(); int status;
  for (int i = 0; i < 20; i++) {
    set(old, 1 + i); CHECK(call(old) == 1 + i);
    pid_t pid = clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD | (argc > 1 ? CLONE_VFORK : 0), (void *)(50L + i));
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("child %d, %d; here %d; %s %g\n", WEXITSTATUS(status), was, call(old), strsignal(1 + i), strtod("1.5e3", NULL));   // and code that is new
  }
}
C
same "$T/shared"; same "$T/shared" vfork
