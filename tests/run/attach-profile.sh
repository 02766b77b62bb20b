# A profile of a running process: what it does meanwhile, whatever was under way before.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread -g -fno-inline
start "$T/busy" cpsrvthk
for options in '' '--paths=full' '--clock=instructions'; do
  "$WEIR" profile -q -o "$T/run.weir" --pid $P --seconds 0.3 $options 2>"$T/err" || fail "$options: status $?: $(<"$T/err")"
  report functions --format=csv >"$T/functions"
  grep -q ',compute' "$T/functions" && grep -q ',mixed' "$T/functions" || fail "$options: $(head "$T/functions")"
  answers 'select count(*) from function_count where total < self' <<<0
  [[ $(ask 'select max(total) <= (select max(cycles) from thread) from function_count') == 1 ]] || fail "$options: a total is more than all"
  ! grep -q memfd:weir /proc/$P/maps || fail "$options: still attached"
done
(cd "$T" && "$WEIR" profile -q --pid $P --seconds 0.1)
[[ -s $T/busy.weir ]] || fail "no busy.weir"
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$(<"$T/started.out")"
