# spec 3, S9: the speedscope export is as its published schema says (the page itself: viewer/e2e/exports.test.mjs), and its weights add up, for sampled and for exact profiles.
. "$(dirname "$0")/lib.sh"
need python3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
schema=$HERE/../../viewer/node_modules/speedscope/dist/release/file-format-schema.json
[[ -e $schema ]] || skip "the packages of the page are not there"
python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
cat >"$T/check.py" <<'P'
import json, jsonschema, sys
file = json.load(open(sys.argv[1]))
jsonschema.validate(file, json.load(open(sys.argv[2])))
total = 0
for p in file['profiles']:
    assert p['type'] == 'sampled' and len(p['samples']) == len(p['weights']) > 0
    for stack in p['samples']: assert stack and all(0 <= f < len(file['shared']['frames']) for f in stack), stack
    assert abs(sum(p['weights']) - (p['endValue'] - p['startValue'])) <= 1e-9 * p['endValue'], p['name']
    total += sum(p['weights'])
assert 0 <= file.get('activeProfileIndex', 0) < max(1, len(file['profiles']))
print(len(file['profiles']), round(total, 6))
P
check() {  # check FIXTURE EXPECTED [options]
  "$FIXTURE" "$1" "$T/$1.weir"
  "$WEIR" export "$T/$1.weir" --format speedscope -o "$T/$1.json" "${@:3}"
  local got; got=$(python3 "$T/check.py" "$T/$1.json" "$schema") || fail "$1: not as the schema says: $(head -c 1000 "$T/$1.json")"
  [[ $got == "$2" ]] || fail "$1: $got"
}
check sampled '3 1.0'
check sampled '1 0.7' --thread 500
check tables '1 101100'
check rich '3 17047'
compile spin.c -g <<'C'
static volatile int sink;
void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
int main() { for (int i = 0; i < 1000; i++) leaf(i); }
C
OPTIONS=--paths=full profile "$T/spin"
"$WEIR" export "$T/run.weir" --format speedscope -o "$T/run.json"
[[ $(python3 "$T/check.py" "$T/run.json" "$schema") == "1 $(ask 'SELECT sum(cycles) + sum(os_time) FROM thread')" ]] || fail "a real run: $(head -c 1000 "$T/run.json")"
