# The river as dot, which Graphviz reads, and as SVG: the seed's functions, arcs as wide as the spec says, names that hurt.
. "$(dirname "$0")/lib.sh"
need dot
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/a.weir"
"$WEIR" export "$T/a.weir" --format dot -o "$T/a.dot"
dot -Tplain "$T/a.dot" >"$T/plain" || fail "dot does not read it: $(<"$T/a.dot")"
[[ $(grep -c '^node' "$T/plain") == 6 && $(grep -c '^edge' "$T/plain") == 6 ]] || fail "$(<"$T/plain")"
# Arcs of 99.9, 98.9, 49.5, 39.6, 29.7 and 9.9 %: min(9, max(1, log2(1000 t + 0.0001))).
for width in 9.00 8.95 8.63 8.21 6.63; do grep -q "penwidth=$width" "$T/a.dot" || fail "no arc of $width: $(<"$T/a.dot")"; done
"$WEIR" export "$T/a.weir" --format svg -o "$T/a.svg"
python3 -c "
import sys, xml.etree.ElementTree as tree
root = tree.parse('$T/a.svg').getroot()
texts = {t.text.split()[0] for t in root.iter('{http://www.w3.org/2000/svg}text')}
assert {'start', 'main', 'A', 'B', 'C', 'D'} <= texts, texts" || fail "the SVG"
"$FIXTURE" rich "$T/r.weir"
"$WEIR" export "$T/r.weir" --format svg -o - >"$T/r.svg"
python3 -c "import xml.etree.ElementTree as tree; tree.parse('$T/r.svg')" || fail "names break the SVG"
grep -q '<script' "$T/r.svg" && fail "a name is markup"
# Thirty functions are drawn of many.
"$FIXTURE" large 2000 4000 10 "$T/l.weir" >/dev/null
n=$("$WEIR" export "$T/l.weir" --format dot -o - | grep -c tooltip.*fillcolor)
((n > 0 && n < 2000)) || fail "$n functions"
env PATH=/nowhere "$WEIR" export "$T/a.weir" --format svg -o "$T/none.svg" 2>"$T/err" && fail "no dot, and no error"
grep -q 'install graphviz' "$T/err" && [[ ! -e $T/none.svg ]] || fail "$(<"$T/err")"
