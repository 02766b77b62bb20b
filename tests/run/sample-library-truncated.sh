# A library that is truncated while Weir reads its unwind tables: Weir goes on.
. "$(dirname "$0")/lib.sh"
compile user.c -ldl <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  for (int i = 0; i < 30; i++) {
    char path[200]; sprintf(path, "%s.%d", argv[1], i);
    CHECK(dlopen(path, RTLD_NOW) != NULL);
    CHECK(truncate(path, 0) == 0);
  }
  puts("right"), fflush(stdout), _exit(0);
}
C
library victim.c <<<'int f(void) { return 4; }'
cat >"$T/script" <<S
for i in \$(seq 0 29); do cp "$T/libvictim.so" "victim.\$i"; done
exec "$T/user" ./victim
S
for i in {1..4}; do sampled bash "$T/script"; done
