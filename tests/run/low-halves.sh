# The table is indexed by the low 32 bits of an address: a program whose code has those of the loader, or of where
# libraries go, runs all the same.
. "$(dirname "$0")/lib.sh"
cat >"$T/where.c" <<'C'
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static char big[1 << 20];
int main(int argc, char **argv) { for (int i = 0; i < 1000; i++) big[i * 1000] = sqrt(i + argc); printf("%d %s\n", big[700000], getenv("HOME") ? "home" : "none"); return 0; }
C
for base in 0x10f7fc9000 0x10f7fd0000 0x10f7e00000 0x10f7d00000 0x10f7c80000 0x10f7f00000; do
  build "$T/where.c" "$T/where" -fPIC -no-pie -nostartfiles "$(gcc -print-file-name=Scrt1.o)" -Wl,--no-relax,-Ttext-segment=$base -lm
  same setarch -R "$T/where"
done
