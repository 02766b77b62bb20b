# spec 3, S5, S6: callers by call frame information, by frame pointers, and by words that look like return addresses, where there is nothing else.
. "$(dirname "$0")/lib.sh"
source='#include "posix.h"
static volatile long n;
__attribute__((noipa)) static void inner(void) { for (volatile long i = 0; i < 60000000; i++) n++; }
__attribute__((noipa)) static void middle(void) { inner(); n = 0; }
__attribute__((noipa)) static void outer(void) { char room[100]; memset(room, n, 100), n = room[5], middle(); n = 0; }
int main() { outer(); puts("done"); }'
tables='-fno-asynchronous-unwind-tables -fno-unwind-tables'
compile cfi.c -fomit-frame-pointer <<<"$source"
compile fp.c -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer $tables <<<"$source"
compile none.c -fomit-frame-pointer $tables <<<"$source"
for how in cfi:cfi cfi:auto fp:fp fp:auto none:heuristic none:auto cfi:heuristic; do
  OPTIONS="--unwind=${how#*:} --verify" RATE=2000 sampled "$T/${how%:*}"
  seen inner middle outer main
  [[ $(ask "SELECT total * 10 > (SELECT samples FROM sampling) * 8 FROM function_total WHERE name = 'outer'") == 1 ]] || fail "$how: $(report)"
  guessed=$(ask 'SELECT frames_heuristic > 0 FROM sampling') by_pointer=$(ask 'SELECT frames_by_frame_pointer > frames_heuristic FROM sampling')
  case $how in
    cfi:cfi) [[ $guessed == 0 ]] ;;
    fp:*) [[ $by_pointer == 1 ]] ;;
    none:* | *:heuristic) [[ $guessed == 1 ]] ;;
  esac || fail "$how: guessed $guessed, by frame pointers $by_pointer: $(report)"
done
