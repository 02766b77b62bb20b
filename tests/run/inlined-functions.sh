# Inlined functions are functions, in every view; --fold-inlined makes them part of their callers again.
. "$(dirname "$0")/lib.sh"
need jq
compile many.cc -g -O3 -flto <<'C'
#include <cstdio>
#include <cstdlib>
namespace inv {
static inline int split(int n) { return n % 10 * 3 + n / 10; }
__attribute__((noinline)) static int join(int n) { return getenv("none") ? n : n + 1; }
static inline int both(int n) { return join(split(n)) + split(n ^ 5); }
}
int main(int argc, char**) {
  int total = argc;
  for (int i = 0; i < 1000; i++) total += inv::both(total ^ i);
  printf("%d\n", total);
}
C
profile "$T/many"
value() { report functions --limit 0 --format json ${3:-} | jq -r ".functions[] | select(.name | startswith(\"$1\")) | .$2"; }
[[ $(value inv::split calls) == 2000 && $(value inv::split inlined) == 2000 ]] || fail "split was entered $(value inv::split calls) times"
[[ $(value inv::both calls) == 1000 && $(value inv::join calls) == 1000 && $(value inv::join inlined) == 0 ]] || fail "both, join"
[[ -z $(value inv::split calls --fold-inlined) && $(value inv::join calls --fold-inlined) == 1000 ]] || fail "not folded"
sum() { report functions --limit 0 --format json "$@" | jq '[.functions[].self] | add'; }
[[ $(sum) == "$(sum --fold-inlined)" ]] || fail "self times: $(sum), folded $(sum --fold-inlined)"
# both = itself + split + join
total=$(value inv::both total) parts=$(($(value inv::both self) + $(value inv::split total) + $(value inv::join total)))
[[ $total == "$parts" ]] || fail "both has a total of $total, its parts have $parts"
report source inv::split | grep -q "n % 10" || fail "no source of split"
report detail inv::both | grep -q "inv::join" || fail "both does not call join"
report callers inv::split --format json | jq -e '.calls | length == 2 and all(.kind == "inlined" and .calls == 1000)' >/dev/null || fail "callers of split"
[[ $(ask "SELECT calls FROM function_total WHERE name LIKE 'inv::split%'") == 2000 ]] || fail "the store does not have split"
# Call paths lead through inlined functions; the sums stay.
OPTIONS=--paths=full profile "$T/many"
"$WEIR" export "$T/run.weir" --format folded -o - >"$T/folded"
grep -Eq ';main;inv::both;inv::split [0-9]+$' "$T/folded" || fail "no path to split: $(grep main "$T/folded" | head)"
grep -Eq ';main;inv::both;inv::join\(int\)' "$T/folded" || fail "no path to join"
"$WEIR" export "$T/run.weir" --fold-inlined --format folded -o - >"$T/folded.2"
add() { awk '{ sum += $NF } END { print sum }' "$1"; }
[[ $(add "$T/folded") == "$(add "$T/folded.2")" ]] && ! grep -q inv::split "$T/folded.2" || fail "folded: $(add "$T/folded") and $(add "$T/folded.2")"
"$WEIR" export "$T/run.weir" --format callgrind -o "$T/callgrind.out"
grep -q 'inv::split' "$T/callgrind.out" || fail "callgrind has no split"

# An inlined call in a loop, of which the compiler has put some before the loop, is entered in each round: 116,000 letters without the commas.
compile letters.cc -g -O3 -flto <<'C'
#include <cstdio>
#include <map>
#include <string>
#include <vector>
inline std::vector<std::string> split(const std::string& s, char c) { std::vector<std::string> r; std::string w; for (char x : s) if (x == c) { r.push_back(w); w.clear(); } else w += x; r.push_back(w); return r; }
int main() { std::map<std::string, long> m; for (int i = 0; i < 20000; i++) for (auto& w : split("a,b,c" + std::to_string(i % 50) + ",d", ',')) m[w]++; printf("%zu\n", m.size()); }
C
profile "$T/letters"
for name in '*::operator+=(char)' '*::push_back(char)'; do answers "SELECT calls FROM function_total WHERE name GLOB '$name'" <<<116000; done
