# Sampled runs vary with the load. The same work is never beyond a threshold; a fifth more of it is, by several runs a side.
. "$(dirname "$0")/lib.sh"
need jq python3 sqlite3
cd "$T"
"$(dirname "$WEIR")/tests/fixture_store" sampled s.weir
# runs NAME COUNT SEED LOADS [FUNCTION FACTOR]: profiles NAME1.weir …, each under another load, their samples counted by chance.
cat >runs.py <<'P'
import random, shutil, sqlite3, sys
name, count, seed, loads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [float(x) for x in sys.argv[4].split(",")]
slower, factor = (sys.argv[5], float(sys.argv[6])) if len(sys.argv) > 5 else ("", 1)
random.seed(seed)
for run in range(count):
    path = f"{name}{run + 1}.weir"
    shutil.copy("s.weir", path)
    db = sqlite3.connect(path)
    rows = db.execute("SELECT c.function, c.thread, c.self, s.text FROM function_count c JOIN function f ON f.id = c.function JOIN string s ON s.id = f.name").fetchall()
    for function, thread, own, text in rows:
        mean = 4 * own * loads[run % len(loads)] * (factor if text == slower or slower == "all" else 1)
        samples = max(0, round(random.gauss(mean, mean ** 0.5)))
        db.execute("UPDATE function_count SET self = ?, total = total + ? WHERE function = ? AND thread = ?", (samples, samples, function, thread))
    db.execute("UPDATE thread SET cycles = (SELECT sum(self) FROM function_count c WHERE c.thread = thread.id)")
    db.commit()
P
runs() { python3 runs.py "$@"; }
within() { "$WEIR" diff "$@" --threshold 5% >text || fail "the same work is beyond: $* $(<text)"; }
beyond() { local status=0; "$WEIR" diff "$@" --threshold 5% >text || status=$?; [[ $status == 1 ]] || fail "$*: $status $(<text)"; }
verdict() { head -n 1 text | grep -Eq "$1" || fail "the first line is not '$1': $(<text)"; }

# One run a side, the second under a load: shares are the same, and the whole is not judged.
for seed in 1 2 3 4 5 6 7 8; do
  runs a 1 $seed 1; runs b 1 1$seed 1.62
  within a1.weir b1.weir
  verdict 'within the threshold of 5 %: no certain difference: .*; the whole is not judged by one sampled run a side'
done
grep -q 'several runs a side .weir diff A1 A2 A3 : B1 B2 B3., or --totals' text || fail "no remedy: $(<text)"
"$WEIR" diff a1.weir b1.weir --format json | jq -e '.whole == "not judged" and .worse == [] and (.unclear | length > 0)' >/dev/null || fail "json"
beyond a1.weir b1.weir --totals; verdict 'slower by [0-9.]+ % ± [0-9.]+ % \(1 run and 1 run, level 99 %\): [0-9.]+ s → [0-9.]+ s of CPU time'
# A function that takes twice as long has a larger share; what gained only as another lost is not worse.
runs c 1 21 1.62 fib 2; beyond a1.weir c1.weir; verdict 'fib grew by'
runs d 1 22 1 fib 0.3; within a1.weir d1.weir
"$WEIR" diff a1.weir d1.weir --format json | jq -e '.worse == [] and [.better[].name] == ["fib"]' >/dev/null || fail "a gain: $("$WEIR" diff a1.weir d1.weir)"

# Several runs a side: by how much they vary.
runs a 4 31 1,1.03,0.98,1.01; runs e 4 32 1.02,0.97,1,1.01; runs f 4 33 1,1.02,0.99,0.98 all 1.2; runs g 4 34 1,1.62,1.3,0.8
within a1.weir a2.weir a3.weir a4.weir : e1.weir e2.weir e3.weir e4.weir; verdict 'no certain difference'
beyond a1.weir a2.weir a3.weir a4.weir : f1.weir f2.weir f3.weir f4.weir; verdict 'slower by (1[5-9]|2[0-5])\.[0-9]+ % ± .*4 runs and 4 runs'
within f1.weir f2.weir f3.weir f4.weir : a1.weir a2.weir a3.weir a4.weir; verdict 'faster by'
within a1.weir a2.weir a3.weir a4.weir : g1.weir g2.weir g3.weir g4.weir; verdict 'no certain difference'
"$WEIR" diff a1.weir a2.weir a3.weir : f1.weir f2.weir f3.weir --level 95% --format json >json
jq -e '.level == 0.95 and .p < 0.05 and .whole == "worse" and (.before.files | length) == 3 and (.worse | all(.p <= 0.05 and .error > 0))' json >/dev/null || fail "$(<json)"

# Several exact runs: their code is the same, whatever the system's part is.
"$(dirname "$WEIR")/tests/fixture_store" tables t1.weir
for i in 2 3; do cp t1.weir t$i.weir; sqlite3 t$i.weir "UPDATE function_count SET os_time = os_time + $i * 9000; UPDATE thread SET os_time = os_time + $i * 54000"; done
cp t1.weir u1.weir; sqlite3 u1.weir "UPDATE function_count SET self = self + 20000 WHERE self = 40000; UPDATE thread SET cycles = cycles + 20000"
within t1.weir t2.weir : t3.weir t1.weir; verdict 'the same: 101 k cycles of code'
beyond t1.weir t2.weir t3.weir : u1.weir; verdict 'slower by 19.78 %: 101 k → 121 k'

# Times of a clock, one run a side: that nothing was judged is the first line.
for i in 1 2; do cp t1.weir w$i.weir; sqlite3 w$i.weir "UPDATE run SET clock = 'wall'; UPDATE thread SET cycles = cycles * $i"; done
within w1.weir w2.weir; verdict '^the threshold was not tried: one run a side is not judged'
beyond w1.weir w2.weir --totals; verdict '^beyond the threshold of 5 %: slower by 100.00 %'

expect_fail 125 "3 profiles: put a colon between" "$WEIR" diff a b c
expect_fail 125 'one colon' "$WEIR" diff a b :
expect_fail 125 'level.*1000 is no percentage' "$WEIR" diff "$T/a1.weir" "$T/e1.weir" --level 1000
