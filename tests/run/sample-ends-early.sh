# spec 3, S7: a program that ends at any moment while Weir comes into it: it executes itself, and ends soon after.
. "$(dirname "$0")/lib.sh"
compile early.c -static <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  if (argc == 3) execv(argv[0], (char *[]){argv[0], argv[2], NULL});
  for (volatile int i = atoi(argv[1]); i > 0; i--) {}
  _exit(7);
}
C
for ((n = 60000; n < 460000; n += 2000)); do
  status=0; timeout -k 5 $LIMIT "$WEIR" sample -q -F 20000 -o "$T/run.weir" -- "$T/early" and "$n" >"$T/out" 2>&1 || status=$?
  [[ $status == 7 ]] || fail "$n: status $status: $(cat "$T/out")"
done
