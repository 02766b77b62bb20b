# Atexit, on_exit, destructors and thread-local destructors run, in order.
. "$(dirname "$0")/lib.sh"
compile handlers.cc <<'C'
#include "posix.h"
struct Loud { const char *name; ~Loud() { printf("~%s\n", name); } };
static Loud global{"global"};
static thread_local Loud local{"thread local"};
static void one() { puts("one"); }
static void two() { puts("two"); atexit([] { puts("nested"); }); }
static void three(int status, void *name) { printf("%s %d\n", (char *)name, status); }
__attribute__((constructor)) static void before() { puts("constructor"); }
__attribute__((destructor)) static void after() { puts("destructor"); }
int main() {
  static Loud late{"late"};
  local.name = "main's local";
  atexit(one), atexit(two), on_exit(three, (void *)"three"), at_quick_exit(one);
  exit(4);
}
C
STATUS=4 same "$T/handlers"
