# `weir report --cpu`: self times of the same run by the model of another CPU. They add up; the run's own CPU gives its figures.
. "$(dirname "$0")/lib.sh"
need jq
compile chain.c -O1 -fno-inline -static <<'C'
static volatile double sink = 1;
void divide(int n) { double x = sink; for (int i = 0; i < n; i++) x = 3 / x; sink = x; }
void add(int n) { for (int i = 0; i < n; i++) sink += i; }
int main() { divide(2000); add(1000); }
C
OPTIONS='--cpu skylake' profile "$T/chain"
self() { jq '[.functions[] | {(.name): .self}] | add | "\(.main) \(.divide) \(.add)"' "$1"; }
report functions --format json >"$T/run"
report functions --cpu skylake --format json >"$T/same"
report functions --cpu atom --format json >"$T/atom"
[[ $(self "$T/run") == "$(self "$T/same")" ]] || fail "another result by the same CPU: $(self "$T/run"), $(self "$T/same")"
[[ $(self "$T/run") != "$(self "$T/atom")" ]] || fail "the same result by another CPU: $(self "$T/run")"
for file in run same atom; do
  jq -e '([.functions[].self] | add) == .run.total and .run.total == .run.cycles + .run.os_time' "$T/$file" >/dev/null || fail "$file: self times do not add up"
done
[[ $(jq -r .run.cpu "$T/atom") == atom ]] || fail "the report does not say which CPU"
report --cpu atom | grep -q '^  model *cycles of atom' || fail "summary: $(report --cpu atom)"
expect_fail 125 "'detail' has no use" "$WEIR" report "$T/run.weir" detail main --cpu atom
