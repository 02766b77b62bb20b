# Who stops and continues the program alone, by its id, does not leave Weir stopped.
. "$(dirname "$0")/lib.sh"
compile tick.c <<'C'
#include "posix.h"
static int by_value(const void *a, const void *b) { return *(char *)a - *(char *)b; }
int main() {
  char text[] = "weir";
  creat("ready", 0600);
  while (access("go", F_OK)) usleep(10000);
  qsort(text, 4, 1, by_value), printf("%s %a\n", text, strtod("2.5", NULL));
  return 0;
}
C
is_stopped() { [[ $(awk '{ print $3 }' "/proc/$1/stat") == T ]]; }
for whom in tick weir; do
  rm -f "$T/ready" "$T/go"
  (cd "$T"; exec "$WEIR" run -q --no-archive -- "$T/tick") >"$T/out" & weir=$!
  wait_for test -e "$T/ready"; program=$(pgrep -P $weir -x tick)
  kill -STOP "$program"
  wait_for is_stopped "$program" && wait_for is_stopped $weir
  if [[ $whom == tick ]]; then kill -CONT "$program"; else kill -CONT $weir; fi
  touch "$T/go"
  wait $weir && [[ $(<"$T/out") == 'eirw 0x1.4p+1' ]] || fail "continued: $whom"
done
