# Programs that execute others all the time, sampled by wall time, and attached to: some of them, so that Weir comes late.
. "$(dirname "$0")/lib.sh"
STATUS=5 OPTIONS=--clock=wall RATE=1000 sampled bash -c 'for i in {1..60}; do /bin/true; done; exit 5'
cat >"$T/loop" <<'L'
#!/bin/sh
n=${1:-0}; [ "$n" -ge 500 ] && exit 3; exec "$0" $((n + 1))
L
chmod +x "$T/loop"
attach() {
  "$T/loop" & local loop=$! status=0
  timeout -k 5 $LIMIT "$WEIR" sample --pid $loop --seconds 10 -q -o "$T/loop$1.weir" || true
  wait $loop || status=$?
  [[ $status == 3 ]] || fail "the loop ended with $status"
}
runs=()
for i in {1..4}; do attach "$i" & runs+=($!); done
for run in "${runs[@]}"; do wait "$run"; done
