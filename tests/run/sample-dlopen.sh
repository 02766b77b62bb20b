# spec 3, S7: code that is opened, closed and opened again while the program runs has its name, and its callers.
. "$(dirname "$0")/lib.sh"
library plugin.c <<'C'
static volatile long n;
__attribute__((noipa)) static void inside(void) { for (long i = 0; i < 60000000; i++) n++; }
void from_library(void) { inside(); n = 0; }
C
compile opens.c -ldl <<'C'
#include "posix.h"
__attribute__((noipa)) static void use(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  ((void (*)(void))dlsym(library, "from_library"))();
  dlclose(library);
}
int main(int argc, char **argv) { for (int i = 0; i < 3; i++) use(argv[1]); puts("done"); }
C
RATE=5000 sampled "$T/opens" "$T/libplugin.so"
seen from_library use main
[[ $(ask "SELECT count(*) > 0 FROM call_count c JOIN site s ON s.id = c.site JOIN function_total f ON f.id = s.function JOIN function_total g ON g.id = c.callee
  WHERE f.name = 'use' AND g.name = 'from_library'") == 1 ]] || fail "its caller: $(report detail from_library)"
[[ $(ask "SELECT 10 * truncated < samples FROM sampling") == 1 ]] || fail "cut off: $(report)"
