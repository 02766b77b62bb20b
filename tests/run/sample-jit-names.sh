# Functions that a program writes while it runs have names in samples: of /tmp/perf-PID.map and of a jitdump file, whether Weir has
# started the program, or attached to it when the names were written long ago, or comes from outside of its container.
. "$(dirname "$0")/lib.sh"
compile named.c -O1 <<'C'
#include "posix.h"
static unsigned char *code;
static void name(FILE *f, int is_dump) {
  if (!is_dump) { fprintf(f, "%lx 40 Script:hot file.js:1\n", (long)code); return; }
  unsigned header[10] = {0x4a695444, 1, 40, 62, 0, getpid()}, head[] = {0, 16 + 40 + 4 + 64, 0, 0};
  unsigned long load[] = {getpid(), (long)code, (long)code, 64, 0};
  fwrite(header, 40, 1, f), fwrite(head, 16, 1, f), fwrite(load, 40, 1, f), fwrite("hot", 4, 1, f), fwrite(code, 64, 1, f);
}
int main(int argc, char **argv) {  // map|dump once|on
  static const unsigned char loop[] = {0xb9, 0x80, 0x96, 0x98, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};  // mov $10000000, %ecx; 1: dec %ecx; jnz 1b; ret
  int is_dump = !strcmp(argv[1], "dump");
  char path[64], byte;
  snprintf(path, sizeof path, is_dump ? "jit-%d.dump" : "/tmp/perf-%d.map", getpid());
  code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, loop, sizeof loop);
  FILE *f = fopen(path, "w+");
  name(f, is_dump), fflush(f);
  if (is_dump) mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
  printf("begun\n"), fflush(stdout);
  fcntl(0, F_SETFL, O_NONBLOCK);
  int is_endless = !strcmp(argv[2], "on");
  for (int i = 0; i < 20 || (is_endless && read(0, &byte, 1) < 0); i++) ((void (*)(void))code)();
  unlink(path);
}
C
named() { [[ $(ask "SELECT sum(self) > 5 FROM function_total WHERE name LIKE '%hot%'") == 1 ]] || fail "$1: $(ask 'SELECT name, self FROM function_total')"; }
for kind in map dump; do
  run weir "$WEIR" sample -q -o "$T/run.weir" -- "$T/named" $kind once
  named "$kind"
  cd "$T" && start "$T/named" $kind on
  sleep 1.1  # (files have dates of whole seconds: what is as old as the process is its own)
  "$WEIR" sample -q -o "$T/run.weir" --pid $P --seconds 0.5
  named "$kind, attached"
  "$WEIR" profile -q -o "$T/run.weir" --pid $P --seconds 0.5
  [[ $(ask "SELECT count(*) FROM function_total WHERE name LIKE '%hot%'") == 1 ]] || fail "$kind, attached: no name in the exact profile"
  finish
done
if unshare --pid --fork true 2>/dev/null; then
  run weir "$WEIR" sample -q -o "$T/run.weir" -- unshare --pid --fork "$T/named" map once
  named 'another pid namespace'
fi
command -v node >/dev/null || exit 0
node --perf-basic-prof --version >/dev/null 2>&1 || exit 0
echo 'function busy(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; } let t = 0; for (let k = 0; k < 3000; k++) t += busy(10000); console.log(t)' >"$T/busy.js"
run weir "$WEIR" sample -q -o "$T/run.weir" -- node --perf-basic-prof --perf-basic-prof-only-functions "$T/busy.js"
rm -f "/tmp/perf-$(ask 'SELECT pid FROM process WHERE id = 0').map"
[[ $(ask "SELECT sum(total) > 0 FROM function_total WHERE name LIKE '%busy%'") == 1 ]] || fail 'node: no function busy'
