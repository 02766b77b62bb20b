# Each option that takes a value takes it as a word of its own, too: the program begins behind it.
. "$(dirname "$0")/lib.sh"
for verb in run profile sample; do
  "$WEIR" $verb --help >"$T/help"
  grep -oE '^  +(-[a-zA-Z],)?--[a-z-]+ +[A-Z{[(][^ ]*' "$T/help" | sed -E 's/^ +(-.,)?//' >"$T/options" || fail "$verb has no options with values"
  while read -r option _; do
    status=0
    "$WEIR" $verb -q -o "$T/out" $option no-such-value -- /bin/echo it ran >"$T/said" 2>&1 || status=$?
    ! grep -q 'no-such-value: no such file\|no-such-value: command not found' "$T/said" || fail "$verb: the value of $option is taken for the program: $(<"$T/said")"
  done <"$T/options"
  (($(wc -l <"$T/options") >= 4)) || fail "$verb: $(<"$T/options") are all?"
done
"$WEIR" profile -q --os-model classes -o "$T/out.weir" -- /bin/echo it ran >"$T/said" || fail "$(<"$T/said")"
"$WEIR" profile -q --os-model classes -o "$T/out.weir" /bin/echo it ran >>"$T/said" || fail "$(<"$T/said")"
[[ $(<"$T/said") == $'it ran\nit ran' ]] || fail "$(<"$T/said")"
