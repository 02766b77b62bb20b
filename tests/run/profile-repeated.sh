# spec 1, T3: a repeated string instruction costs what it did: by the elements that it came to, not by those that it was given.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile repeated.c -O1 <<'C'
#include "posix.h"
static char from[40000], to[40000];
#define REPEATED(name, text) __attribute__((noinline)) void name(long n) { \
  void *d = to, *s = from; __asm__ volatile(text : "+c"(n), "+D"(d), "+S"(s) : "a"(1L) : "memory", "cc"); }
REPEATED(moved, "rep movsb") REPEATED(stored, "rep stosq") REPEATED(loaded, "push %%rax; rep lodsb; pop %%rax")
REPEATED(searched, "repne scasb") REPEATED(compared, "repe cmpsw")
int main() {
  moved(0), moved(3200), stored(0), stored(400);
  memset(to, 0, sizeof to), memset(from, 0, sizeof from);
  loaded(0), loaded(50);
  to[99] = 1, searched(0), searched(30000);                // ends at the 100th
  from[39 * 2 + 1] = 1, compared(0), compared(20000);  // at the 40th
}
C
# 32 bytes a cycle; 2 cycles an element; 3 cycles an element.
profile "$T/repeated"
answers "SELECT name, calls, self_max - self_min FROM function_total WHERE name IN ('moved', 'stored', 'loaded', 'searched', 'compared') ORDER BY name" <<'E'
compared|2|120
loaded|2|100
moved|2|100
searched|2|200
stored|2|100
E
