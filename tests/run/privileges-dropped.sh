# A program that has dropped its privileges, or changed its root, still loads libraries.
. "$(dirname "$0")/lib.sh"
((EUID == 0)) || skip "only root can drop privileges"
library plugin.c <<'C'
int answer(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += i * i % 7; return sum; }
C
compile drops.c -ldl <<'C'
#include "posix.h"
#include <dlfcn.h>
int main(int argc, char **argv) {
  if (argc > 2) CHECK(chroot("/") == 0 && chdir(argv[2]) == 0 && chroot(".") == 0);
  CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) return puts(dlerror()), 1;
  printf("%d\n", ((int (*)(int))dlsym(library, "answer"))(1000));
}
C
chmod 755 "$T"
same "$T/drops" "$T/libplugin.so"
same "$T/drops" /libplugin.so "$T"
