# Of servers, and of programs with idle threads, what waits is no work: node's epoll_wait and futex, redis's epoll_wait, make's wait4.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq node redis-server redis-cli make
second='(SELECT cycles_per_second FROM run)'
waits() {  # waits CALLS: most of what passed in these was waited, and they are little of all work
  answers "SELECT sum(c.waited) > $second * 0.499, sum(c.time) < (SELECT sum(cycles + os_time) FROM thread) / 5
           FROM os_count c JOIN os_call o USING (number) WHERE o.name IN ($1)" <<<'1|1'
}
profile node -e 'setTimeout(() => console.log("done"), 500)'
waits "'epoll_wait', 'epoll_pwait', 'futex'"
printf 'all: a b\na b:\n\tsleep 0.5\n' >"$T/Makefile"
profile make -s -f "$T/Makefile"
waits "'wait4', 'nanosleep', 'clock_nanosleep'"
report functions --format json | jq -e '.functions[0].name | test("wait") | not' >/dev/null || fail "$(report functions)"
cd "$T"
"$WEIR" profile -q -o "$T/run.weir" -- redis-server --port 0 --unixsocket "$T/redis" --save '' >/dev/null & P=$!
wait_for redis-cli -s "$T/redis" ping >/dev/null 2>&1
redis-cli -s "$T/redis" incr counter >/dev/null
sleep 1
redis-cli -s "$T/redis" shutdown nosave >/dev/null 2>&1 || true
wait $P || true
waits "'epoll_wait', 'futex'"
