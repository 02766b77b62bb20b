# spec 1, "Speed and truth": call counts equal callgrind's, function by function, on static programs with one thread.
#
# Functions are known by their address. Every program runs twice, with work and without, and the differences are compared: valgrind
# gives a program no vDSO, which the C library's start sees (and other variables, which Weir's gets too). The C
# library chooses string functions by the processor, and valgrind shows a program another one than there is: everything that is not in each
# x86-64 is switched off for both, and so is what it prefers on some.
. "$(dirname "$0")/lib.sh"
need valgrind sqlite3 python3 nm
compile calls.cc -static -O2 <<'C'
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>
struct Shape { virtual int area(int n) const = 0; virtual ~Shape() {} };
struct Square : Shape { __attribute__((noinline)) int area(int n) const override { return n * n; } };
struct Line : Shape { __attribute__((noinline)) int area(int n) const override { return n; } };
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int leaf(int n) { asm volatile(""); return n + 1; }
__attribute__((noinline)) int tail(int n) { asm volatile(""); return leaf(n * 2); }
__attribute__((noinline)) int maybe(int n) { if (n & 1) return leaf(n); return n; }
__attribute__((noinline)) int odd(int n);
__attribute__((noinline)) int even(int n) { asm volatile(""); return n ? odd(n - 1) : 1; }
__attribute__((noinline)) int odd(int n) { asm volatile(""); return n ? even(n - 1) : 0; }
__attribute__((noinline)) bool greater(int a, int b) { return a > b; }
__attribute__((noinline)) int through(int (*f)(int), int n) { return f(n); }
int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
int main(int argc, char **argv) {
  if (argc > 1) return 0;
  int sum = 0; const Shape* shapes[] = {new Square, new Line};
  int (*functions[])(int) = {fib, leaf, tail, even};
  for (int i = 0; i < 500; i++) sum += shapes[i % 3 == 0]->area(i) + through(functions[i % 4], i % 13) + maybe(i);
  std::vector<int> v; for (int i = 0; i < 300; i++) v.push_back(i * 7919 % 1009);
  std::sort(v.begin(), v.end(), greater);
  std::qsort(v.data(), v.size(), sizeof v[0], by_value);
  std::map<std::string, int> words; for (int i = 0; i < 200; i++) words[std::to_string(i * i % 37)] += i;
  std::function<int(int)> f = [&](int n) { return n ? f(n - 1) + 1 : sum; };
  for (auto& [word, n] : words) sum += word.size() * n;
  std::printf("%d %d\n", sum, f(20));
}
C
compile plain.c -static -O1 -g <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int table[100];
static int __attribute__((noinline)) ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
static int __attribute__((noinline)) parse(const char *s) { return strtol(s, NULL, 10); }
int main(int argc, char **argv) {
  if (argc > 1) return 0;
  for (int i = 0; i < 100; i++) { char text[20]; snprintf(text, 20, "%d", i * 31 % 17); table[i] = parse(text); }
  FILE *f = tmpfile(); for (int i = 0; i < 100; i++) fprintf(f, "%d %s\n", table[i], "x"); rewind(f);
  int n, sum = 0; char word[10]; while (fscanf(f, "%d %9s", &n, word) == 2) sum += n;
  printf("%d %d\n", sum, ackermann(2, 9));
}
C
GLIBC_TUNABLES=$(<"$HERE/../plain_processor")
export GLIBC_TUNABLES
callgrind=(valgrind --tool=callgrind --dump-instr=yes --compress-strings=no --compress-pos=no)
mapfile -t added < <(comm -13 <(env | sort) <("${callgrind[@]}" --callgrind-out-file=/dev/null env 2>/dev/null | sort) | grep -v '^_=')
((${#added[@]})) || fail "valgrind runs no program"
calls() {  # calls NAME CMD...: a line `address|size|name|calls|tail calls` of all functions; callgrind's file
  local name=$1; shift
  run native "${callgrind[@]}" --callgrind-out-file="$T/$name.callgrind" "$@"
  profile env "${added[@]}" "$@"
  cmp "$T/native.out" "$T/profile.out" || fail "$*: other output"
  ask "SELECT f.offset, f.size, n.text, coalesce(sum(c.calls) FILTER (WHERE s.kind IN ('call', 'indirect call')), 0), coalesce(sum(c.calls) FILTER (WHERE s.kind = 'tail call'), 0)
       FROM function f JOIN image i ON i.id = f.image JOIN string n ON n.id = f.name LEFT JOIN call_count c ON c.callee = f.id LEFT JOIN site s ON s.id = c.site
       WHERE i.path = '$(realpath "$1")' AND f.size > 0 GROUP BY f.id" >"$T/$name.weir"
}
compare_calls() {  # compare_calls AT_LEAST [no-symbols]: functions with equal counts, of `with` less `without`
  python3 - "$T" "$@" <<'P'
import bisect, collections, re, sys
t, least = sys.argv[1], int(sys.argv[2])
ours, tails, theirs, unknown, names = collections.Counter(), collections.Counter(), collections.Counter(), 0, {}
for run, sign in (("with", 1), ("without", -1)):
    functions = sorted((int(offset), int(size), name, int(calls), int(tail)) for offset, size, name, calls, tail in
                       (re.match(r"(\d+)\|(\d+)\|(.*)\|(\d+)\|(\d+)$", line).groups() for line in open(f"{t}/{run}.weir")))
    begins = [f[0] for f in functions]
    for offset, size, name, calls, tail in functions: ours[offset] += sign * calls; tails[offset] += sign * tail; names[offset] = name
    for line in open(f"{t}/{run}.callgrind"):
        if m := re.match(r"calls=(\d+) (0x[0-9a-f]+)", line):
            i = bisect.bisect_right(begins, int(m[2], 16)) - 1
            if i >= 0 and int(m[2], 16) < functions[i][0] + functions[i][1]: theirs[functions[i][0]] += sign * int(m[1])
            else: unknown += sign * int(m[1])
# Without symbols callgrind takes a jump to be inside one function, unless it goes through the linkage table.
agree = lambda f: theirs[f] == ours[f] + tails[f] or (len(sys.argv) > 3 and theirs[f] == ours[f])
# (Fewer calls with work than without: what bash does with its own process id, which differs from run to run.)
differ = [f for f in sorted(theirs.keys() | ours.keys()) if not agree(f) and theirs[f] >= 0 and ours[f] >= 0]
for f in differ[:30]: print(f"{f:x} {names[f]}: callgrind {theirs[f]}, weir {ours[f]} and {tails[f]} tail calls")
same = sum(1 for f in ours if theirs[f] and agree(f))
print(f"{same} functions have equal counts, {len(differ)} differ; {unknown} calls to unknown functions")
sys.exit(bool(differ) or same < least)
P
}
# A count that depends on the process id or on where the kernel puts the stack may differ between two runs of anything; a wrong one differs always.
equal_calls() {  # equal_calls WITH WITHOUT AT_LEAST [no-symbols]: the names of two arrays with commands
  local -n with_=$1 without_=$2; shift 2
  for _ in 1 2 3 4; do
    calls with "${with_[@]}"
    calls without "${without_[@]}"
    compare_calls "$@" && return
  done
  fail "calls differ"
}
for program in calls plain; do
  work=("$T/$program") idle=("$T/$program" nothing)
  equal_calls work idle 50
done
if [[ -x /bin/bash-static ]]; then
  work=(/bin/bash-static -c 'f() { local i; for ((i = 0; i < $1; i++)); do a[i]=$((i * i % 7)); s+=${a[i]}; done; }; f 200; case $s in *123*) echo no ;; *) echo ${#s} ${s//0/x} ;; esac')
  idle=(/bin/bash-static -c :)
  equal_calls work idle 200 no-symbols
fi
