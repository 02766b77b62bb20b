# Standard error is closed or full, or all three descriptors are closed: the program's status counts.
. "$(dirname "$0")/lib.sh"
for tool in $TOOLS; do  # (icount has something to say)
  run() { status=0; timeout $LIMIT "$WEIR" run --tool="$tool" -- "$@" || status=$?; echo $status >"$T/status"; }
  check() { [[ $(<"$T/status") == "$2" ]] || fail "--tool=$tool: $1: status $(<"$T/status"), not $2"; rm "$T/status"; }
  run true 2>&-;                   check 'closed' 0
  run true 2>/dev/full;            check 'full' 0
  run true <&- >&- 2>&-;           check 'all closed' 0
  run sh -c 'exit 7' 2>&-;         check 'closed' 7
  run sh -c 'exit 7' 2>/dev/full;  check 'full' 7
  run sh -c '(exit 7); exit $?' <&- >&- 2>&-; check 'all closed' 7
  { run sh -c 'sleep 0.3; exit 7' 2>&1; } | true; check 'a pipe that nobody reads' 7
  [[ $(timeout $LIMIT "$WEIR" run --tool="$tool" -- sh -c 'echo out; ls /proc/self/fd | wc -l' 2>&-) == "$(sh -c 'echo out; ls /proc/self/fd | wc -l' 2>&-)" ]] ||
    fail "--tool=$tool: other output with standard error closed"
done
