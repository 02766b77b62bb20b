# Nothing is left behind: no files, no processes, no shared memory, whatever happened (but the archive of translations).
. "$(dirname "$0")/lib.sh"
compile child.c <<'C'
#include "posix.h"
int main(int argc, char **argv) { if (fork() == 0) { usleep(10000); return 0; } wait(NULL); if (argc > 1) raise(SIGKILL); return 0; }
C
state() { ls -A -I .cache "$T" "$T/tmp" /dev/shm; pgrep -P $$ || true; }
mkdir -p "$T/cwd"; touch "$T"/weir.{out,err,status} "$T/before" "$T/after"
state >"$T/before"
for tool in $TOOLS; do
  run weir "$WEIR" run --tool="$tool" -- "$T/child"
  run weir "$WEIR" run --tool="$tool" -- "$T/child" die
  run weir "$WEIR" run --tool="$tool" -- ./nosuch
  run weir "$WEIR" run --tool="$tool" -- bash -c 'sleep 0.1 & echo $(echo hi)'
  [[ -z $(ls -A "$T/cwd") ]] || fail "files in the current directory: $(ls -A "$T/cwd")"
done
state >"$T/after"
diff <(grep -v '^[0-9]*$' "$T/before") <(grep -v '^[0-9]*$' "$T/after")
