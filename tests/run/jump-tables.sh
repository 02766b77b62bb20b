# Jump tables: switches of 300 cases, dense, sparse and nested, relative and absolute.
. "$(dirname "$0")/lib.sh"
{
  echo '#include "posix.h"
  __attribute__((noinline)) static uint64_t pick(unsigned n, uint64_t x) { switch (n) {'
  for ((i = 0; i < 300; i++)); do
    case $((i % 4)) in
      0) echo "case $i: return x * $((i * 2 + 3));" ;;
      1) echo "case $i: x ^= $i; break;" ;;
      2) echo "case $i: x += $i;" ;;  # falls through
      3) echo "case $i: switch (x % 8) { case 0: x += $i; break; case 1: x ^= 3; break; case 2: x -= 5; break; case 3: x *= 9; break; case 4: return x + 2; case 6: return ~x; default: x = -x; } break;" ;;
    esac
  done
  echo 'case 1000: return 1; case 100000: return 2; default: return x ^ n; } return x + 1; }
  int main() { uint64_t x = 1; for (unsigned i = 0; i < 1000000; i++) x = pick(i * 7 % 310, x) + pick(x % 1100, i); printf("%lx\n", x); }'
} >"$T/tables.c"
for flags in -O2 '-O2 -fno-pie -no-pie' -O0 '-O2 -fcf-protection=none -static' '-Os -mcmodel=large -fno-pie -no-pie'; do
  build "$T/tables.c" "$T/tables" $flags
  same "$T/tables"
done
