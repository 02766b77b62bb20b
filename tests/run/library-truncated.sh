# A library that is truncated while it is in use ends its user as it does natively, and nobody else.
. "$(dirname "$0")/lib.sh"
compile user.c <<'C'
#include "posix.h"
#include <dlfcn.h>
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW); int (*before)() = dlsym(library, "before"), (*after)() = dlsym(library, "after");
  printf("%d\n", before()), fflush(stdout);
  if (fork() == 0) { CHECK(truncate(argv[1], 0) == 0), after(), _exit(0); }
  int status; wait(&status), printf("a signal: %d\n", WIFSIGNALED(status)), fflush(stdout), _exit(0);
}
C
echo 'int before() { return 4; } __attribute__((aligned(4096))) int after() { return 5; }' >"$T/victim.c"
build "$T/victim.c" "$T/whole.so" -shared -fPIC
same bash -c "cp $T/whole.so $T/victim.so; exec $T/user $T/victim.so"
