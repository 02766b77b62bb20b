# Arguments and results of traced calls are those that the program itself writes down.
. "$(dirname "$0")/lib.sh"
compile results.c -ldl <<'C'
#include "posix.h"
#include <dlfcn.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
struct pair { long a, b; };
NOINLINE long six(long a, long b, long c, long d, long e, long f) { return a ^ b * 3 ^ c * 5 ^ d * 7 ^ e * 11 ^ f * 13; }
NOINLINE struct pair two(long a) { return (struct pair){a * 2, a * 3}; }
NOINLINE double real(long a) { return a / 2.0; }
NOINLINE long inner(long n) { return n * n; }
NOINLINE long outer(long n) { return inner(n + 1); }  // ends as inner does
NOINLINE long depth(long n) { if (!n) return 7; long r = depth(n - 1); asm volatile("" : "+r"(r)); return r * 31 + n; }
int main(void) {
  for (long i = 0; i < 200; i++) {
    long a = i * 0x123456789, r = six(a, a + 1, a + 2, a + 3, -a, i);
    printf("six %lu %lu %lu %lu %lu %lu %lu\n", a, a + 1, a + 2, a + 3, -a, i, r);
    printf("two %lu %lu\n", i, two(i).a);
    printf("real %lu\n", (long)(real(i) * 2));
    r = outer(i);
    printf("outer %lu %lu\ninner %lu %lu\n", i, r, i + 1, r);
  }
  printf("depth %lu\n", depth(50));
  fflush(stdout);
  for (int i = 0; i < 50; i++) { void *p = malloc(i * 10 + 1); dprintf(1, "malloc %d %lu\n", i * 10 + 1, (long)p); }
}
C
OPTIONS=--trace calls "$T/results" six two real outer inner depth ways:nothing 'results:nothing' malloc
python3 - "$T/calls.json" "$T/calls.out" <<'P' || fail "traced calls"
import json, sys
j = json.load(open(sys.argv[1]))
names = [f['symbol'].split('@')[0] for f in j['functions']]
calls = {}
for t in j['threads']:
    for c in t['calls']: calls.setdefault(names[c['function']], []).append(c)
lines = {}
for line in open(sys.argv[2]):
    name, *numbers = line.split()
    lines.setdefault(name, []).append([int(n) % 2**64 for n in numbers])
assert [c['arguments'] + [c['result']] for c in calls['six']] == lines['six']
assert [[c['arguments'][0], c['result']] for c in calls['two']] == lines['two']
assert [[c['arguments'][0]] for c in calls['real']] == lines['real']
for name in 'outer', 'inner': assert [[c['arguments'][0], c['result']] for c in calls[name]] == lines[name]
results = [7]
for n in range(1, 51): results.append((results[-1] * 31 + n) % 2**64)
assert [c['result'] for c in calls['depth']] == results[::-1] and results[-1] == lines['depth'][0][0]
own = [[c['arguments'][0], c['result']] for c in calls['malloc'] if c['arguments'][0] % 10 == 1]  # (dprintf has buffers of its own)
assert own[-50:] == lines['malloc'], own[-50:]
assert all(f['calls'] == f['returned'] and f['left'] == 0 for f in j['functions']), j['functions']
P
