# A7: threads have the names that the kernel has for them, whoever gave them.
. "$(dirname "$0")/lib.sh"
compile names.c -pthread <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static int go[2], ready[2];
static void *named(void *p) { pthread_setname_np(pthread_self(), "by-itself"); return p; }
static void *waits(void *p) { char c; return write(ready[1], "", 1) == 1 && read(go[0], &c, 1) == 1 ? p : 0; }
int main() {
  pthread_t t;
  char c;
  if (pipe(go) || pipe(ready) || pthread_create(&t, 0, named, 0)) return 1;
  pthread_join(t, 0);
  pthread_create(&t, 0, waits, 0);
  pthread_setname_np(t, "by-another");
  if (write(go[1], "", 1) != 1) return 1;
  pthread_join(t, 0);
  pthread_create(&t, 0, waits, 0);
  return read(ready[0], &c, 1) != 1 || read(ready[0], &c, 1) != 1;  // it waits still, and has its creator's name
}
C
profile "$T/names"
answers "SELECT name FROM thread ORDER BY tid" <<<$'names\nby-itself\nby-another\nnames'
