# -g1 leaves namespaces out of the names of inlined functions of C++: a note says so, and -g has neither that note nor short names.
. "$(dirname "$0")/lib.sh"
need jq
cat >"$T/names.cc" <<'C'
#include <cstdio>
namespace outer { namespace inner {
static inline __attribute__((always_inline)) long square(long x) { long r = 0; for (long i = 0; i < x; i++) r += i ^ x; return r; }
__attribute__((noinline)) long work(long x) { return square(x) + 1; }
} }
int main() { printf("%ld\n", outer::inner::work(1000)); }
C
name_of_square() { report functions --limit 0 --format json | jq -r '.functions[] | select(.name | test("square")) | .name'; }
notes() { report --format json | jq -r '.notes[]'; }
for compiler in g++ clang++; do
  command -v "$compiler" >/dev/null || continue
  for level in -g1 -g; do
    "$compiler" -O1 "$level" "$T/names.cc" -o "$T/names" || fail "$compiler $level"
    # (Is the namespace in the debug information? That is the oracle.)
    readelf --debug-dump=info "$T/names" >"$T/dwarf" 2>/dev/null
    grep -q DW_TAG_namespace "$T/dwarf" && is_whole=1 || is_whole=0
    [[ $is_whole == 1 && $level == -g || $is_whole == 0 && $level == -g1 ]] || fail "$compiler $level: not as this test takes it"
    profile "$T/names"
    if ((is_whole)); then
      [[ $(name_of_square) == outer::inner::square* && -z $(notes) ]] || fail "$compiler $level: $(name_of_square): $(notes)"
    else
      [[ $(name_of_square) == square ]] || fail "$compiler $level: $(name_of_square)"
      [[ $(notes) == *"/names: compiled with -g1: names of inlined functions are without their namespaces; -g has them" ]] ||
        fail "$compiler $level: $(notes)"
      report | grep -q '^data: .*compiled with -g1' || fail "$(report)"
    fi
  done
done
# A C program has no namespaces, so nothing is missing.
compile plain.c -O1 -g1 <<'C'
static inline __attribute__((always_inline)) int twice(int x) { return x * 2; }
int main(int argc, char **argv) { return twice(argc) - 2; }
C
profile "$T/plain"
[[ -z $(notes) ]] || fail "of C: $(notes)"
