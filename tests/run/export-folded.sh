# Folded stacks have exclusive values that add up to the total, a frame between semicolons, one line a path.
. "$(dirname "$0")/lib.sh"
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/a.weir"
"$WEIR" export "$T/a.weir" --format folded -o "$T/folded"
diff - "$T/folded" <<'END' || fail "other stacks"
start 100
start;main 1000
start;main;A 10000
start;main;A;B 20000
start;main;A;C 30000
start;main;A;B;D 30000
start;main;A;C;D 10000
END
"$FIXTURE" rich "$T/r.weir"
"$WEIR" export "$T/r.weir" --format folded -o - >"$T/folded"
[[ $(awk '{ sum += $NF } END { print sum }' "$T/folded") == 17047 ]] || fail "the sum is not the total"
[[ -z $(sed 's/ [0-9]*$//' "$T/folded" | sort | uniq -d) ]] || fail "a path twice"
grep -q $'\e' "$T/folded" && fail "control characters"
[[ $("$WEIR" export "$T/r.weir" --thread 102 --format folded -o - | awk '{ sum += $NF } END { print sum }') == 950 ]] || fail "--thread"
