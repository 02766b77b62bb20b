# issue 2, 6: who stops and continues the program alone, by its id, does not leave Weir stopped.
. "$(dirname "$0")/lib.sh"
compile tick.c <<'C'
#include "posix.h"
static int by_value(const void *a, const void *b) { return *(char *)a - *(char *)b; }
int main() {
  char text[] = "weir";
  for (int i = 0; i < 20; i++) usleep(50000);
  qsort(text, 4, 1, by_value), printf("%s %a\n", text, strtod("2.5", NULL));
  return 0;
}
C
for whom in tick weir; do
  (cd "$T"; exec timeout 20 "$WEIR" run -q --no-archive -- "$T/tick") >"$T/out" & timeout=$!
  sleep 0.4; weir=$(pgrep -P $timeout); program=$(pgrep -P "$weir" -x tick)
  kill -STOP "$program"; sleep 0.2
  if [[ $whom == tick ]]; then kill -CONT "$program"; else kill -CONT "$weir"; fi
  wait $timeout && [[ $(<"$T/out") == 'eirw 0x1.4p+1' ]] || fail "continued: $whom"
done
