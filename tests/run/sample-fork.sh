# spec 3, S7: children that fork and execute nothing are sampled, with the callers that they have from their parent; so are theirs.
. "$(dirname "$0")/lib.sh"
compile forks.c <<'C'
#include "posix.h"
static volatile long sum;
__attribute__((noipa)) static void spin(void) { for (long n = 0; n < 150000000; n++) sum++; }
__attribute__((noipa)) static void as_grandchild(void) { spin(); sum = 0; }
__attribute__((noipa)) static void as_child(void) { spin(); int status; if (!fork()) as_grandchild(), _exit(4); wait(&status); CHECK(status == 4 << 8); }
__attribute__((noipa)) static void as_parent(void) { spin(); sum = 0; }
int main() {
  int status;
  for (int i = 0; i < 3; i++) if (!fork()) as_child(), _exit(3);
  as_parent();
  for (int i = 0; i < 3; i++) wait(&status), CHECK(status == 3 << 8);
  puts("right");
}
C
RATE=5000 sampled "$T/forks"
seen main as_parent as_child as_grandchild spin
[[ $(ask 'SELECT count(*) FROM process') == 7 ]] || fail "processes: $(ask 'SELECT * FROM process')"
