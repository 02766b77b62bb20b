# Part of a library whose translations were kept is changed; then a child, which changes its own code, parts and uses it.
. "$(dirname "$0")/lib.sh"
compile user.c <<'C'
#include "posix.h"
#include <dlfcn.h>
static double sum(double (*f)(double), double (*g)(double)) { return f(1.5) + g(2.5); }
int main(int argc, char **argv) {
  void *math = dlopen("libm.so.6", RTLD_NOW); double (*f)(double) = dlsym(math, "sin"), (*g)(double) = dlsym(math, "exp");
  void *page = (void *)((long)dlsym(math, "cbrt") & -4096);
  printf("%f\n", sum(f, g));
  if (argc > 1) mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), mprotect(page, 4096, PROT_READ | PROT_EXEC);
  printf("%f\n", sum(f, g)), fflush(stdout);
  if (fork() == 0) { mprotect((void *)((long)main & -4096), 4096, PROT_READ | PROT_WRITE | PROT_EXEC), printf("%f\n", sum(f, g)); return 0; }
  int status; wait(&status), print_status("child", status), printf("%f\n", sum(f, g));
  return 0;
}
C
same "$T/user"; same "$T/user" change; same "$T/user" change
