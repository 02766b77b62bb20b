# When Weir is killed all processes of the program end, those that sleep and those that never make a call.
. "$(dirname "$0")/lib.sh"
marked() { grep -lzsx "MARK=$T" /proc/[0-9]*/environ | cut -d/ -f3 || true; }   # a zombie has no environment
ready() { [[ -e $T/pids ]] && grep -qs '^sleep' "/proc/$(head -n 1 "$T/pids")/cmdline"; }
gone() { [[ ! $(marked) ]]; }
for tool in $TOOLS; do
  rm -f "$T/pids"
  MARK=$T "$WEIR" run --tool="$tool" -- bash -c '
    sleep 900 & echo $! >"$0/part"; (while :; do :; done) & echo $! >>"$0/part"; echo $$ >>"$0/part"; mv "$0/part" "$0/pids"; while :; do :; done' "$T" 2>/dev/null & weir=$!
  wait_for ready || { kill -KILL $weir $(marked); fail "--tool=$tool: the program does not start"; }
  for pid in $(<"$T/pids"); do [[ " $(marked | tr '\n' ' ')" == *" $pid "* ]] || { kill -KILL $weir $(marked); fail "process $pid is not found"; }; done
  kill -KILL $weir; wait $weir 2>/dev/null || true
  wait_for gone || { left=$(marked); ps -o pid,stat,args -p ${left//$'\n'/,} || true; kill -KILL $left; fail "--tool=$tool: processes go on without Weir"; }
done
