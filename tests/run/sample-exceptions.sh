# spec 3, S10: C++ exceptions through many frames, at a high rate: caught where they are natively, and each sample is the same in full.
. "$(dirname "$0")/lib.sh"
compile throws.cc <<'C'
#include <cstdio>
#include <stdexcept>
#include <string>
struct Guard { long &n; ~Guard() { n++; } };
static long unwound;
__attribute__((noipa)) static void down(int depth) { Guard guard{unwound}; if (!depth) throw std::runtime_error(std::to_string(unwound)); down(depth - 1); guard.n += 0; }
int main() {
  long caught = 0;
  for (int i = 0; i < 4000; i++) try { down(i % 50); } catch (const std::exception &e) { caught += e.what()[0] != 0; }
  printf("%ld %ld\n", caught, unwound);
}
C
OPTIONS=--verify sampled "$T/throws"
seen 'down(int)' main
[[ $(ask 'SELECT verify_differences FROM sampling') == 0 ]] || fail "$(report)"
