# issue 5, 3, 7: programs that execute others all the time, sampled by wall time, and attached to.
. "$(dirname "$0")/lib.sh"
STATUS=5 OPTIONS=--clock=wall RATE=1000 sampled bash -c 'for i in {1..60}; do /bin/true; done; exit 5'
cat >"$T/loop" <<'L'
#!/bin/sh
n=${1:-0}; [ "$n" -ge 1000 ] && exit 3; exec "$0" $((n + 1))
L
chmod +x "$T/loop"
for i in 1 2; do
  "$T/loop" & P=$!
  timeout -k 1 60 "$WEIR" sample --pid $P --seconds 10 -q -o "$T/loop.weir" || true
  wait $P && status=0 || status=$?
  [[ $status == 3 ]] || fail "the loop ended with $status"
done
