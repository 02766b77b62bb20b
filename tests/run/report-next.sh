# The command that a summary tells next works, whatever the function at the top is: one that is only inlined has no place in an image,
# and may have a name that others have, too.
. "$(dirname "$0")/lib.sh"
need jq
cat >"$T/spin.h" <<'C'
#include <map>
#include <string>
#include <vector>
template <class T>
static inline unsigned spin(const std::vector<std::map<std::string, T>>& v, unsigned n) {
  unsigned s = v.size();
  for (unsigned i = 0; i < n; i++) s = s * 3 ^ i;
  return s;
}
C
library other.cc -g -I"$T" <<'C'
#include "spin.h"
int other(int n) { return spin<int>({}, n); }
C
compile spins.cc -g -I"$T" -L"$T" -lother -Wl,-rpath,"$T" <<'C'
#include "spin.h"
int other(int);
int main(int argc, char**) { return (spin<int>({}, 5000000 * argc) ^ other(1000 * argc)) == 7; }
C
profile "$T/spins"
report functions --format json | jq -e '.functions[0] | (.name | startswith("spin")) and .inlined == .calls and .calls > 0' >/dev/null || fail "$(report functions)"
next=$(report | sed -n 's/^next: weir //p')
eval "\"\$WEIR\" $next" >"$T/detail" || fail "it does not work: $next"
grep -q 'spin.h:5  spins' "$T/detail" || fail "it is another one: $(<"$T/detail")"
# Of several that share a name, one is asked for by its image, and the message says how.
name=$(report functions --format json | jq -r '.functions[0].name')
"$WEIR" report "$T/run.weir" detail "$name" 2>"$T/error" && fail "two have that name"
grep -q "image:name or file:name" "$T/error" || fail "no remedy: $(<"$T/error")"
report detail "libother.so:$name" | grep -q 'spin.h:5  libother.so' || fail 'not the library'"'"'s'
