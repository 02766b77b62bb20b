# When Weir is killed or terminated the program ends too; when the program is killed Weir ends with its status.
. "$(dirname "$0")/lib.sh"
compile endless.c -pthread <<'C'
#include "posix.h"
static void *spin(void *x) { for (volatile long n = 0;; n++) strtod("1.5", NULL); }
int main(int argc, char **argv) {
  pthread_t thread; pthread_create(&thread, NULL, spin, NULL);
  FILE *file = fopen(argv[1], "w"); fprintf(file, "%d\n", getpid()), fclose(file), rename(argv[1], argv[2]);
  for (int i = 0;; i++) { usleep(1000); getppid(); }
}
C
for tool in $TOOLS; do
  for victim in weir-KILL weir-TERM program-KILL program-TERM; do
    rm -f "$T/pid"
    "$WEIR" run --tool="$tool" -- "$T/endless" "$T/part" "$T/pid" 2>/dev/null & weir=$!
    wait_for test -e "$T/pid"
    program=$(<"$T/pid"); works "$program"
    if [[ $victim == weir-* ]]; then kill -"${victim#*-}" $weir; else kill -"${victim#*-}" "$program"; fi
    wait_for is_gone $weir || { kill -KILL $weir; kill -KILL "$program"; fail "$victim: Weir hangs"; }
    wait_for is_gone "$program" || { kill -KILL "$program"; fail "$victim: the program goes on without Weir"; }
    status=0; wait $weir 2>/dev/null || status=$?
    [[ $victim == *-KILL && $status == 137 || $victim == *-TERM && $status == 143 ]] || fail "$victim: status $status"
  done
done
