# Real programs under a tool with regions, whose functions are counted in one and all of whose system calls are told: they run as natively.
. "$(dirname "$0")/lib.sh"
use_tool marks
all_known() { [[ $(told 'j["without_begin"]') == 0 ]] || fail "$1: $(<"$T/weir.json")"; }
same bash -c 'for i in {1..30}; do x=$(echo $i | tr 1 2); trap "echo usr" USR1; kill -USR1 $$; done; (cd /; ls | sort | head -n 3); wait; exec echo "$x"'
same perl -e 'my %h; $h{$_ % 97} .= $_ for 1 .. 9999; print join(",", map { length $h{$_} } sort keys %h), "\n"; print `echo sub`; local $SIG{ALRM} = sub { print "alarm\n" }; alarm 1; sleep 5'
for program in "python3 -c 'import subprocess, threading, os; t = [threading.Thread(target=lambda: subprocess.check_output([\"true\"])) for i in range(3)]; [x.start() for x in t]; [x.join() for x in t]; print(sum(range(1000))); os._exit(3)'"; do
  STATUS=3 same bash -c "$program"
done
command -v git >/dev/null && same bash -c 'git init -q x && cd x && git config user.email a@b && git config user.name n && echo 1 > f && git add f && GIT_AUTHOR_DATE="2020-01-01T00:00" GIT_COMMITTER_DATE="2020-01-01T00:00" git commit -qm m && git log --stat && git gc -q'
command -v sqlite3 >/dev/null && same sqlite3 x.db 'create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 2000) insert into t select x, x * x from c; create index i on t(b); select sum(a), sum(b) from t where b > 500; vacuum;'
command -v node >/dev/null && same_out node -e 'const w = require("child_process").execSync("echo child").toString(); let s = 0; for (let i = 0; i < 1e5; i++) s += i; console.log(s, w); setTimeout(() => console.log("later"), 20)'
command -v gcc >/dev/null && same bash -c 'echo "int main(){return 7;}" > a.c && gcc -O2 -o a a.c && ./a; echo $?'
if command -v redis-server >/dev/null; then
  same_out bash -c 'redis-server --port 0 --unixsocket "$PWD/s" --save "" --daemonize no >log & p=$!; until redis-cli -s s ping 2>/dev/null | grep -q PONG; do sleep 0.1; done; redis-cli -s s set a 1; redis-cli -s s incr a; redis-cli -s s bgsave >/dev/null; redis-cli -s s shutdown nosave; wait $p; echo $?'
fi
under bash -c 'for i in 1 2 3; do (echo $i | cat); done'
all_known bash
[[ $(told 'j["told"] > 300 and min(r["second"] for r in j["regions"]["2"]) > 0') == True ]] || fail "$(<"$T/weir.json")"
