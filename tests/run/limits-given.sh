# Limits that Weir itself is started under: it works, or says so in one line, status 125, and the program does not run.
. "$(dirname "$0")/lib.sh"
refused() {  # refused LIMIT CMD...
  local said; said=$(ulimit $1; status=0; timeout $LIMIT "${@:2}" -- touch "$T/made" 2>&1 || status=$?; echo "status $status")
  [[ $said =~ ^weir:\ [^$'\n']+$'\n'status\ 125$ ]] || fail "$*: $said"
  [[ ! -e $T/made ]] || fail "$1: the program ran"
}
works() {  # works LIMIT CMD...
  local said; said=$(ulimit $1; timeout $LIMIT "${@:2}" -- sh -c 'echo fine' 2>&1) || fail "$*: status $?: $said"
  [[ $said == fine ]] || fail "$*: $said"
}
for verb in 'run' 'run -q --tool=icount' "profile -q -o $T/run.weir"; do
  refused '-v 4000000' "$WEIR" $verb
  refused '-n 5' "$WEIR" $verb
  works '-n 32' "$WEIR" $verb
  works '-d 4000000' "$WEIR" $verb
  works '-c 0' "$WEIR" $verb
  works '-s 256' "$WEIR" $verb
done
# Wherever address space ends (of terabytes, for the thread blocks): it works, or says so.
for verb in 'run' 'run -q --tool=icount' "profile -q -o $T/run.weir"; do
  for ((gib = 8180; gib < 8340; gib += 6)); do
    said=$(ulimit -v $((gib << 20)); status=0; timeout $LIMIT "$WEIR" $verb -- true 2>&1 || status=$?; echo "status $status")
    [[ $said == 'status 0' || $said =~ ^weir:\ [^$'\n']+$'\n'status\ 125$ && $said != *internal* ]] || fail "$verb, $gib GiB of addresses: $said"
  done
done
if ((EUID == 0)) && id nobody >/dev/null && chmod 755 "$T" && setpriv --reuid=nobody --clear-groups test -x "$WEIR" 2>/dev/null; then
  said=$(ulimit -u 1; status=0; HOME=/nonexistent timeout $LIMIT setpriv --reuid=nobody --clear-groups "$WEIR" run -- true 2>&1 || status=$?; echo "status $status")
  [[ $said =~ ^weir:\ [^$'\n']+$'\n'status\ 125$ ]] || fail "no processes: $said"
fi
