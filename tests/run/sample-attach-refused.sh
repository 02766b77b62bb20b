# Processes that cannot be attached to: status 125, one line with the reason, no profile; and they go on.
. "$(dirname "$0")/lib.sh"
build "$PROGRAMS/busy.c" "$T/busy" -pthread
refuse() { expect_fail 125 "$1" "$WEIR" sample -o "$T/x.weir" "${@:2}"; [[ ! -e $T/x.weir ]] || fail "a profile of what was refused"; }
refuse 'there is none' --pid 4194000 --seconds 1
refuse 'numbers of processes' --pid 0
refuse 'pid' --seconds 1 -- true
refuse 'together' --pid $$ -- true
kernel=$(ps -e -o pid=,ppid= | awk '$2 == 2 { print $1; exit }')
[[ -z $kernel ]] || refuse 'kernel thread' --pid "$kernel"
start "$T/busy" cs
if ((UID == 0)); then
  chmod 755 "$T"; mkdir -m 777 "$T/anybody"
  expect_fail 125 'another user' setpriv --reuid 65534 --regid 65534 --clear-groups "$WEIR" sample -o "$T/anybody/x.weir" --pid $P
fi
timeout -k 5 $LIMIT "$WEIR" sample -q -o "$T/first.weir" --pid $P & weir=$!
until grep -q memfd:weir /proc/$P/maps && grep -qP "TracerPid:\t0" /proc/$P/status; do sleep 0.02; kill -0 $weir || fail 'it does not attach'; done
refuse 'under weir' --pid $P
first=$(pgrep -P $weir -x weir | head -n 1)
refuse 'weir itself' --pid "${first:-$weir}"
kill -INT $weir; wait $weir || fail "status $?"
[[ -s $T/first.weir ]] || fail 'no profile of the first'
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$(<"$T/started.out")"
