# A call through a linkage table that is bound lazily is a call of its target by its caller, the first one, too: callers, sites and counts are those of
# a run in which all is bound at the start, and no call comes from the dynamic linker's resolver but of its own work.
. "$(dirname "$0")/lib.sh"
library work.cc <<'S'
#include <stdexcept>
extern "C" int twice(int x) { return 2 * x; }
extern "C" int below(int depth, int (*f)(int)) { return depth ? f(depth - 1) + 1 : 0; }
extern "C" void thrower(int x) { if (x % 3 == 0) throw std::runtime_error("three"); }
extern "C" int last(int x) { return x + 3; }
extern "C" int by_pointer(int x) { return x + 4; }
S
compile calls.cc -O1 -L"$T" -lwork -Wl,-rpath,"$T" -Wl,-z,lazy -fplt -fno-inline -fcf-protection=none -foptimize-sibling-calls -rdynamic <<'S'
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
extern "C" int twice(int), below(int, int (*)(int)), last(int), by_pointer(int);
extern "C" void thrower(int);
extern "C" int again(int depth) { return below(depth, again); }
extern "C" int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
extern "C" int tail(int x) { return last(x + 1); }
extern "C" int catcher(int x) { try { thrower(x); return 1; } catch (const std::exception&) { return 2; } }
static int (*volatile pointer)(int) = by_pointer;
int main() {
  int numbers[] = {5, 3, 9, 1, 7}, sum = 0;
  for (int i = 0; i < 4; i++) {
    qsort(numbers, 5, sizeof *numbers, compare);
    sum += twice(i) + again(20) + tail(i) + catcher(i) + pointer(i) + abs(atoi("12"));
  }
  printf("%d %d\n", sum, numbers[0]);
}
S
if readelf -d "$T/calls" | grep -qE 'BIND_NOW|FLAGS.*NOW'; then fail "it is not bound lazily"; fi
same "$T/calls"
# The loader's own work at the start, and what is called from it, differs.
callers() {
  ask "SELECT caller.name, s.offset - caller.offset, s.kind, callee.name, sum(c.calls) FROM call_count c JOIN site s ON s.id = c.site
       JOIN function_total caller ON caller.id = s.function JOIN function_total callee ON callee.id = c.callee
       WHERE caller.name IN ('main', 'again', 'tail', 'catcher', 'below', 'qsort', 'qsort_r')
         AND callee.name IN ('twice', 'below', 'last', 'thrower', 'by_pointer', 'again', 'compare', 'qsort', 'qsort_r', 'atoi', 'printf', 'tail', 'catcher')
       GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
}
for OPTIONS in '' --paths=full; do
  profile env LD_BIND_NOW=1 "$T/calls"
  callers >"$T/now"
  profile "$T/calls"
  callers >"$T/lazily"
  grep -q qsort "$T/now" || fail "no callers: $(<"$T/now")"
  diff -u "$T/now" "$T/lazily" || fail "the callers are others where binding is lazy ($OPTIONS)"
  # Of a resolver, only what the dynamic linker does is called.
  others=$(ask "SELECT DISTINCT callee.name FROM call_count c JOIN site s ON s.id = c.site JOIN function_total callee ON callee.id = c.callee
                JOIN function_total caller ON caller.id = s.function WHERE s.kind = 'tail call' AND callee.name IN ('twice', 'qsort', 'last', 'atoi')
                AND caller.name != 'tail'")
  [[ -z $others ]] || fail "called by a resolver: $others"
done
