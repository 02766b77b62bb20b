# The pprof export is read by protoc, and by a decoder of its own that adds it up.
. "$(dirname "$0")/lib.sh"
need protoc python3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/a.weir"
"$WEIR" export "$T/a.weir" --format pprof -o "$T/a.pb.gz"
gzip -dc "$T/a.pb.gz" >"$T/a.pb" || fail "not gzip"
protoc --decode=perftools.profiles.Profile -I "$HERE/../../src/report" profile.proto <"$T/a.pb" >"$T/decoded" || fail "protoc"
[[ $(grep -c '^sample {' "$T/decoded") == 7 ]] || fail "$(<"$T/decoded")"
[[ $(grep '^string_table' "$T/decoded" | head -n 1) == 'string_table: ""' ]] || fail "the first string is not empty"
cat >"$T/decode.py" <<'P'
import sys
def varint(b, i):
    n = shift = 0
    while True:
        n |= (b[i] & 127) << shift; shift += 7; i += 1
        if b[i - 1] < 128: return n, i
def message(b):
    fields, i = {}, 0
    while i < len(b):
        key, i = varint(b, i)
        assert key & 7 in (0, 2), key
        value, i = varint(b, i)
        if key & 7 == 2: value, i = b[i:i + value], i + value
        fields.setdefault(key >> 3, []).append(value)
    return fields
def packed(values):
    out = []
    for v in values:
        if isinstance(v, int): out.append(v); continue
        i = 0
        while i < len(v): n, i = varint(v, i); out.append(n)
    return out
p = message(open(sys.argv[1], 'rb').read())
strings = [s.decode() for s in p[6]]
functions = {f[1][0]: strings[f[2][0]] for f in map(message, p[5])}
lines = {}
for l in map(message, p[4]):
    line = message(l[4][0])
    lines[l[1][0]] = functions[line[1][0]], line.get(2, [0])[0]
types = [strings[message(t)[1][0]] for t in p[1]]
assert strings[0] == '' and types == ['cycles', 'os_time', 'calls', 'waited'], types
for s in map(message, p[2]):
    stack = [lines[i] for i in packed(s[1])]                 # the leaf first
    print(';'.join(f'{f}:{n}' for f, n in reversed(stack)), *packed(s[2]))
P
python3 "$T/decode.py" "$T/a.pb" >"$T/stacks"
diff - "$T/stacks" <<'END' || fail "other stacks"
start:0 100 0 1 0
start:0;main:14 1000 0 1 0
start:0;main:15;A:10 10000 0 1 0
start:0;main:15;A:11;B:7 20000 0 1 0
start:0;main:15;A:12;C:4 30000 0 1 0
start:0;main:15;A:11;B:8;D:1 30000 0 40 0
start:0;main:15;A:12;C:5;D:1 10000 0 40 0
END
"$FIXTURE" rich "$T/r.weir"
"$WEIR" export "$T/r.weir" --format pprof -o - | gzip -dc >"$T/r.pb"
python3 "$T/decode.py" "$T/r.pb" | awk '{ cycles += $(NF-3); os += $(NF-2); waited += $NF } END { exit !(cycles == 7547 && os == 9500 && waited > 0) }' || fail "the sum is not the total"
