# Processes in a new PID namespace, with other numbers there than Weir sees, and a /proc of their own, where Weir cannot follow.
. "$(dirname "$0")/lib.sh"
need unshare
unshare -p -f --mount-proc true 2>/dev/null || skip 'unshare is not permitted'
said() { ! grep -v '^weir: not followed' "$T/weir.err" && (($(wc -l <"$T/weir.err") <= 1)) || fail "stderr: $(head -c 1000 "$T/weir.err")"; }
same unshare -p -f sh -c 'ls / >/dev/null; echo $$; (echo sub; exit 3); echo $?'
same_out unshare -p -f --mount-proc sh -c 'ls / >/dev/null; echo $$; (echo sub; exit 3); echo $?'; said
STATUS=9 same_out unshare -p -f --mount-proc bash -c 'for i in {1..20}; do (exit $i) & wait $! || echo $?; done; cat /proc/1/comm; exec sh -c "echo \$\$; exit 9"'; said
