# The Firefox Profiler's format: every column of a table has its length, every index leads somewhere, weights add up.
# (viewer/e2e/exports.test.mjs has the profiler itself load such files.)
. "$(dirname "$0")/lib.sh"
need python3 sqlite3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
cat >"$T/check.py" <<'P'
import json, sys
p = json.load(open(sys.argv[1]))
assert p['meta']['preprocessedProfileVersion'] == 48
categories = p['meta']['categories']
assert all(c['subcategories'] == ['Other'] for c in categories) and 'grey' in [c['color'] for c in categories]
for t in p['threads']:
    tables = {name: t[name] for name in ('frameTable', 'funcTable', 'resourceTable', 'stackTable', 'samples', 'markers', 'nativeSymbols')}
    for name, table in tables.items():
        for column, values in table.items():
            assert not isinstance(values, list) or len(values) == table['length'], (name, column)
    strings = t['stringArray']
    assert all(f < t['funcTable']['length'] for f in t['frameTable']['func'])
    assert all(n < len(strings) for n in t['funcTable']['name'] + t['resourceTable']['name'])
    assert all(f is None or f < len(strings) for f in t['funcTable']['fileName'])
    assert all(-1 <= r < t['resourceTable']['length'] for r in t['funcTable']['resource'])
    assert all(c < len(categories) for c in t['frameTable']['category'] + t['stackTable']['category'])
    assert all(f < t['frameTable']['length'] for f in t['stackTable']['frame'])
    assert all(x is None or x < i for i, x in enumerate(t['stackTable']['prefix'])), 'a prefix comes first'
    assert t['samples']['time'] == sorted(t['samples']['time'])
    assert t['samples']['stack'].pop() is None and t['samples']['weight'][-1] == 0, 'the end of the thread'
    is_time = t['samples']['weightType'] == 'tracing-ms'  # a model's cycles are none
    assert not is_time or abs(sum(t['samples']['threadCPUDelta']) / 1e6 - sum(t['samples']['weight'])) < 1e-5 * len(t['samples']['time'])
    for stack, weight in zip(t['samples']['stack'], t['samples']['weight']):
        frames = []
        while stack is not None:
            frames.append(strings[t['funcTable']['name'][t['frameTable']['func'][t['stackTable']['frame'][stack]]]])
            stack = t['stackTable']['prefix'][stack]
        print(t['name'], ';'.join(reversed(frames))[:60], round(weight))
P
"$FIXTURE" tables "$T/a.weir"
"$WEIR" export "$T/a.weir" --format firefox -o "$T/a.json"
python3 "$T/check.py" "$T/a.json" >"$T/stacks" || fail "the format"
diff - "$T/stacks" <<'END' || fail "other stacks"
tables start 100
tables start;main 1000
tables start;main;A 10000
tables start;main;A;B 20000
tables start;main;A;B;D 30000
tables start;main;A;C 30000
tables start;main;A;C;D 10000
END
"$FIXTURE" rich "$T/r.weir"
"$WEIR" export "$T/r.weir" --format firefox -o "$T/r.json"
python3 "$T/check.py" "$T/r.json" | awk '{ sum += $NF } END { exit sum != 17047 }' || fail "the sum is not the total"
# One main thread a process; the interval of samples is theirs.
python3 - "$T/r.json" <<'P' || fail "main threads"
import json, sys
main = {}
for t in json.load(open(sys.argv[1]))['threads']: main.setdefault(t['pid'], []).append(t['isMainThread'])
assert all(sum(of) == 1 for of in main.values()), main
P
"$FIXTURE" sampled "$T/s.weir"
"$WEIR" export "$T/s.weir" --format firefox -o "$T/s.json"
python3 -c "import json; assert json.load(open('$T/s.json'))['meta']['interval'] == 1" || fail "interval"
sqlite3 "$T/s.weir" 'UPDATE sampling SET rate = 5000'
"$WEIR" export "$T/s.weir" --format firefox -o "$T/s.json"
python3 -c "import json; assert json.load(open('$T/s.json'))['meta']['interval'] == 0.2" || fail "interval at 5,000 a second"
