# Functions of code that is written at run time have the names that the program leaves for perf in a jitdump file; node's do.
. "$(dirname "$0")/lib.sh"
compile named.c -O1 -pthread <<'C'
#include <pthread.h>
#include "posix.h"
static unsigned char *code;
static FILE *dump;
static void record(unsigned kind, const void *payload, unsigned size, const char *name, unsigned code_size) {
  unsigned head[] = {kind, 16 + size + (name ? strlen(name) + 1 : 0) + code_size, 0, 0};
  fwrite(head, 16, 1, dump), fwrite(payload, size, 1, dump);
  if (name) fwrite(name, strlen(name) + 1, 1, dump);
  for (; code_size; code_size--) fputc(0xc3, dump);
  fflush(dump);
}
static void write_function(int i, const char *name) {
  static const unsigned char add[] = {0x8d, 0x47, 0x07, 0xc3};  // lea eax, [rdi + 7]; ret
  memcpy(code + 64 * i, add, sizeof add);
  unsigned long at = (long)code + 64 * i, load[] = {getpid(), at, at, 64, i};
  if (name) record(0, load, sizeof load, name, 64);
}
static void *thread(void *p) { return (void *)(long)((int (*)(int))code)(1); }
int main(int argc, char **argv) {  // [gone]: removes the file in the end
  char path[64];
  code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  snprintf(path, sizeof path, argc > 2 ? "jit-strange.dump" : "jit-%d.dump", getpid());
  dump = fopen(path, "w+");
  unsigned header[10] = {0x4a695444, 1, 40, 62, 0, getpid()};
  fwrite(header, 40, 1, dump), fflush(dump);
  mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
  long sum = 0;
  write_function(0, "first");
  pthread_t t;
  pthread_create(&t, 0, thread, 0), pthread_join(t, 0);
  write_function(1, "second \x1b[31m"), write_function(2, NULL), write_function(3, NULL);
  unsigned long move[] = {getpid(), (long)code + 128, (long)code, (long)code + 128, 64, 0};
  record(1, move, sizeof move, NULL, 0);
  record(2, "lines that say nothing", 22, NULL, 0);
  unsigned broken[] = {0, 5, 0, 0};
  fwrite(broken, 16, 1, dump), fflush(dump);
  write_function(3, "behind what is broken");
  for (int i = 0; i < 1000; i++) sum += ((int (*)(int))(code + 64 * (i % 4)))(i);
  printf("%ld\n", sum);
  if (argc > 1) unlink(path);
}
C
names() { ask "SELECT name || ' ' || calls FROM function_total WHERE image LIKE '[code%' AND name NOT LIKE '[code%' ORDER BY name, calls"; }
profile "$T/named"
[[ $(names) == $'first 250\nfirst 251\nsecond ?[31m 250' ]] || fail "names: $(names)"
# One that is gone in the end, and has no number in its name, was found in the memory map when a thread ended.
profile "$T/named" gone strange
[[ $(names) == *'first 251'* ]] || fail "gone: $(names)"
command -v node >/dev/null || exit 0
echo 'function busy(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s; } let t = 0; for (let k = 0; k < 2000; k++) t += busy(100); console.log(t)' >"$T/busy.js"
node --perf-prof --version >/dev/null 2>&1 || exit 0
profile node --perf-prof "$T/busy.js"
[[ $(names) == *'busy '*"$T/busy.js:1"* ]] ||  # (node 20 adds the column, 18 does not)
  fail "node: no function busy among $(names | wc -l) names"
