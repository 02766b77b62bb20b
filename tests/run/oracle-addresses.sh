# Executed instructions, address by address, equal those of a single-stepped native run.
. "$(dirname "$0")/lib.sh"
need objdump
compile mix.c -static -O1 <<'C'
#include <stdio.h>
#include <string.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main() { int sum = 0; for (int i = 0; i < 30; i++) switch (i % 6) { case 0: sum += fib(i % 9); break; case 1: sum ^= i; break; case 2: sum *= 3; break; case 3: sum -= 7; break; case 4: sum++; break; default: sum += 100; }
  char text[50]; snprintf(text, 50, "%d", sum); puts(text); return strlen(text); }
C
VERBOSE=-v OPTIONS=--blocks oracle "$T/mix"
objdump -d --no-show-raw-insn "$T/mix" | sed -nE 's/^ *([0-9a-f]+):\t.*/\1/p' >"$T/instructions"
python3 - "$T" <<'P'
import json, sys
t = sys.argv[1]
stepped = {int(a, 16): int(n) for a, n in (line.split() for line in open(f"{t}/steps") if not line.startswith("instructions"))}
addresses = sorted(set(int(line, 16) for line in open(f"{t}/instructions")) | stepped.keys())
counted = dict.fromkeys(addresses, 0)
for block in json.load(open(f"{t}/count.json"))["block_counts"]:
    inside = [a for a in addresses if block["address"] <= a < block["end"]]
    for a in inside: counted[a] += block["count"]
    if len(inside) != block["instructions"]: print(f"block {block}: objdump shows {len(inside)} instructions")
wrong = [(a, stepped.get(a, 0), counted[a]) for a in addresses if stepped.get(a, 0) != counted[a]]
for a, s, c in wrong[:20]: print(f"{a:x}: single-stepped {s}, icount {c}")
print(f"{len(stepped)} addresses executed, {len(wrong)} differ")
sys.exit(bool(wrong) or len(stepped) < 1000)
P
