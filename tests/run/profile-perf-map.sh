# Functions of code that is written at run time have the names that the program leaves for perf; garbage in that file is harmless.
. "$(dirname "$0")/lib.sh"
compile named.c -O1 <<'C'
#include <fcntl.h>
#include <pthread.h>
#include "posix.h"
static unsigned char *code;
static FILE *map;
static void write_function(int i) {
  static const unsigned char add[] = {0x8d, 0x47, 0x07, 0xc3};  // lea eax, [rdi + 7]; ret
  memcpy(code + 64 * i, add, sizeof add);
  fprintf(map, "%lx 40 Script:add%d file.js:%d\n", (long)(code + 64 * i), i, i + 1), fflush(map);
}
static void *thread(void *p) { return (void *)(long)((int (*)(int))code)(1); }
int main(int argc, char **argv) {
  char path[64];
  code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  map = fopen(path, "w");
  fprintf(map, "%lx 1000 Old\n\nnothing\nffffffffffffffff ffff x\n0 0 z\n-1 5 y\n%lx 10\n%lx 5 \n", (long)code, (long)code, (long)code);
  long sum = 0;
  write_function(0);
  pthread_t t;
  pthread_create(&t, 0, thread, 0), pthread_join(t, 0);
  for (int i = 1; i < 3; i++) write_function(i);
  fprintf(map, "%lx 40 \xff\x1b[31m\n%lx 40 cut", (long)(code + 192), (long)code), fflush(map);
  memcpy(code + 192, code, 4);
  for (int i = 0; i < 1000; i++) sum += ((int (*)(int))(code + 64 * (i % 4)))(i);
  printf("%ld\n", sum);
  if (argc > 1) unlink(path);
}
C
profile "$T/named"
rm -f "/tmp/perf-$(ask 'SELECT pid FROM process').map"
answers "SELECT name, calls FROM function_total WHERE image LIKE '[code%' ORDER BY name" <<E
Script:add0 file.js:1|251
Script:add1 file.js:2|250
Script:add2 file.js:3|250
$(printf '\xff')?[31m|250
E
report functions --limit 1000 >"$T/functions"
grep -q 'Script:add1 file.js:2' "$T/functions" || fail 'the report has no such name'
"$WEIR" export "$T/run.weir" --format callgrind -o "$T/callgrind"
grep -q 'Script:add1 file.js:2' "$T/callgrind" || fail 'the export has no such name'
# A file that is gone when the program has ended was read when a thread did; one that is no file is not waited for.
profile "$T/named" gone
answers "SELECT name FROM function_total WHERE name LIKE 'Script:add0%'" <<<'Script:add0 file.js:1'
unshare --pid --fork true 2>/dev/null || exit 0
profile unshare --pid --fork "$T/named" gone
answers "SELECT name FROM function_total WHERE name LIKE 'Script:add0%'" <<<'Script:add0 file.js:1'
