# Processes that cannot be attached: 125, one line, with the reason; and they go on.
. "$(dirname "$0")/lib.sh"
need gdb
build "$PROGRAMS/busy.c" "$T/busy" -pthread
expect_fail 125 'there is none' "$WEIR" run --pid 4194000 --seconds 1
expect_fail 125 'there is none' "$WEIR" profile -o "$T/x.weir" --pid 4194000 --seconds 1
expect_fail 125 'numbers of processes' "$WEIR" run --pid 0
expect_fail 125 'positive' "$WEIR" run --pid $$ --seconds 0
expect_fail 125 'abc' "$WEIR" run --pid abc
expect_fail 125 'seconds' "$WEIR" run --pid $$ --seconds -1
expect_fail 125 'pid' "$WEIR" run --seconds 1 -- true
expect_fail 125 'together' "$WEIR" run --pid $$ -- true
bash -c 'sleep 0.01 & echo $! >'"$T/zombie"'; exec sleep 500' & parent=$!
is_zombie() { [[ -s $T/zombie && $(awk '{ print $3 }' "/proc/$(<"$T/zombie")/stat") == Z ]]; }
wait_for is_zombie
expect_fail 125 'has ended' "$WEIR" run --pid "$(<"$T/zombie")"
kill $parent
kernel=$(ps -e -o pid=,ppid= | awk '$2 == 2 { print $1; exit }')
[[ -z $kernel ]] || expect_fail 125 'kernel thread' "$WEIR" run --pid "$kernel"
start "$T/busy" cs
# Root without the capability is told what it lacks, not to be root.
if ((UID == 0)); then
  expect_fail 125 'refused even to root; it lacks CAP_SYS_PTRACE' setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$WEIR" run --pid $P
fi
gdb -q -batch -p $P -ex "shell until [ -e $T/tried ]; do sleep 0.05; done" >"$T/gdb" 2>&1 & gdb=$!
wait_for is_traced $P
expect_fail 125 'traced' "$WEIR" run --pid $P
touch "$T/tried"
wait $gdb
"$WEIR" run -q --pid $P & weir=$!
wait_for is_attached $P
expect_fail 125 'under weir' "$WEIR" run --pid $P
expect_fail 125 'weir itself' "$WEIR" run --pid $weir
kill $weir
wait $weir || fail "status $?"
thread=$(ls /proc/$P/task | tail -n 1)
expect_fail 125 'is a thread' "$WEIR" run --pid "$thread"
finish
[[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == 'wrong 0' ]] || fail "$(<"$T/started.out")"
