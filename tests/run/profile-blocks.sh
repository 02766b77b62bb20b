# spec 1, T1: counts of blocks equal a single-stepped native run, address by address, in a static program.
. "$(dirname "$0")/lib.sh"
need objdump sqlite3 python3
compile mix.cc -static -O2 <<'C'
#include <algorithm>
#include <cstdio>
#include <csetjmp>
#include <cstring>
#include <vector>
struct Shape { virtual int area(int n) const = 0; virtual ~Shape() {} };
struct Square : Shape { int area(int n) const override { return n * n; } };
struct Line : Shape { int area(int n) const override { return n > 3 ? n / 3 : n; } };
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static jmp_buf back;
__attribute__((noinline)) static int deep(int n) { if (n == 0) longjmp(back, 1); return deep(n - 1) + n; }
int main() {
  int sum = 0; const Shape* shapes[] = {new Square, new Line};
  for (int i = 0; i < 40; i++)
    switch (i % 7) {
      case 0: sum += fib(i % 9); break;
      case 1: sum ^= i; break;
      case 2: sum += shapes[i / 7 % 2]->area(i); break;
      case 3: if (!setjmp(back)) sum += deep(i % 5); break;
      case 4: { char text[500]; memset(text, i, 100 + i); char *from = text, *to = text + 200; long n = i * 3;
        asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory"); sum += text[200]; break; }
      case 5: { std::vector<int> v; for (int k = 0; k < i; k++) v.push_back(k * 37 % 11); std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; }); sum += v[3]; break; }
      default: sum += 100;
    }
  std::printf("%d\n", sum);
}
C
[[ -x $T/step ]] || build "$PROGRAMS/step.c" "$T/step"
run native env -i GLIBC_TUNABLES=$NO_RSEQ "$T/step" -v "$T/mix"
run profile env -i GLIBC_TUNABLES=$NO_RSEQ setarch -R "$WEIR" profile -q -o "$T/run.weir" -- "$T/mix"
cmp "$T/native.out" "$T/profile.out" || fail "$(head "$T/profile.err")"
objdump -d --no-show-raw-insn "$T/mix" | sed -nE 's/^ *([0-9a-f]+):\t.*/\1/p' >"$T/instructions"
ask "SELECT b.offset, length(b.bytes), b.instructions, sum(c.count) FROM block b JOIN block_count c ON c.block = b.id
     JOIN function f ON f.id = b.function JOIN image i ON i.id = f.image
     WHERE i.path LIKE '%/mix' GROUP BY b.id" >"$T/blocks"
[[ $(ask 'SELECT sum(instructions) FROM thread') == "$(sed -n 's/^instructions //p' "$T/native.err")" ]] || fail "the sum of instructions"
python3 - "$T" <<'P'
import bisect, sys
t = sys.argv[1]
stepped = {int(a, 16): int(n) for a, n in (line.split() for line in open(f"{t}/native.err") if not line.startswith("instructions"))}
addresses = sorted(set(int(line, 16) for line in open(f"{t}/instructions")) | stepped.keys())
counted = dict.fromkeys(addresses, 0)
for offset, size, instructions, count in (map(int, line.split("|")) for line in open(f"{t}/blocks")):
    inside = addresses[bisect.bisect_left(addresses, offset):bisect.bisect_left(addresses, offset + size)]
    for a in inside: counted[a] += count
    if len(inside) != instructions: print(f"block {offset:x}: {instructions} instructions, objdump shows {len(inside)}")
wrong = [(a, stepped.get(a, 0), counted[a]) for a in addresses if stepped.get(a, 0) != counted[a]]
for a, s, c in wrong[:20]: print(f"{a:x}: single-stepped {s}, profile {c}")
print(f"{len(stepped)} addresses executed, {len(wrong)} differ")
sys.exit(bool(wrong) or len(stepped) < 2000)
P
