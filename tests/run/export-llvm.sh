# Exact counts as a sample profile that llvm-profdata reads, with the counts of lines and calls, and that clang takes.
. "$(dirname "$0")/lib.sh"
need llvm-profdata-19 clang
compile work.cc -g -fno-inline <<'C'
int twice(int n) {
  return 2 * n;
}
int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++)
    if (i % 10 == 3)
      sum += twice(i);
  return sum;
}
int main() {
  int s = 0;
  volatile int n = 1000;
  for (int i = 0; i < 100; i++) s += work(n);
  return s == 9960000 ? 0 : 1;
}
C
"$WEIR" profile -q -o "$T/w.weir" -- "$T/work" || fail "the program"
"$WEIR" export "$T/w.weir" --format llvm -o "$T/w.prof" 2>"$T/err" || fail "$(<"$T/err")"
llvm-profdata-19 merge --sample --text "$T/w.prof" -o "$T/merged" || fail "llvm-profdata does not read it: $(<"$T/w.prof")"
# work: entered 100 times, twice() is called from its fourth line (0 is the first) 10000 times.
grep -Eq '^_Z4worki:[0-9]+:100$' "$T/merged" || fail "$(<"$T/merged")"
grep -Eq '^ 4: [0-9]+ _Z5twicei:10000$' "$T/merged" || fail "$(<"$T/merged")"
grep -Eq '^_Z5twicei:[0-9]+:10000$' "$T/merged" || fail "$(<"$T/merged")"
llvm-profdata-19 merge --sample --extbinary "$T/w.prof" -o "$T/w.bin" || fail "as binary"
clang -O2 -g -fprofile-sample-use="$T/w.prof" -o "$T/optimized" "$T/work.cc" 2>"$T/err" || fail "clang: $(<"$T/err")"
"$T/optimized" || fail "what clang made of it"

# With inlining: a function that is inlined wherever it is called, whose own copy is never entered, is told by its lines.
compile inlined.cc -g <<'C'
int helper(int n) {
  if (n % 10 == 3)
    return n * n;
  return n + 1;
}
__attribute__((noinline)) int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum ^= helper(i);
  return sum;
}
int main() {
  volatile int n = 1000;
  int s = 0;
  for (int i = 0; i < 100; i++) s += work(n);
  return s == 1;
}
C
profile "$T/inlined"
[[ -z $(ask "SELECT n.text FROM folded_function_count c JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name WHERE n.text LIKE 'helper%' AND c.calls > 0") ]] || fail "it was not inlined"
"$WEIR" export "$T/run.weir" --format llvm -o "$T/i.prof" 2>"$T/err" || fail "$(<"$T/err")"
llvm-profdata-19 merge --sample --text "$T/i.prof" -o "$T/merged" || fail "llvm-profdata does not read it: $(<"$T/i.prof")"
grep -Eq '^_Z6helperi:[0-9]+:0$' "$T/merged" || fail "no inlined function: $(<"$T/merged")"
sed -n '/^_Z6helperi/,/^_/p' "$T/merged" | grep -q '^ 1: 100000$' || fail "not the count of its first line: $(<"$T/merged")"
clang -O2 -g -fprofile-sample-use="$T/i.prof" -S -emit-llvm -o "$T/i.ll" "$T/inlined.cc" 2>"$T/err" || fail "clang: $(<"$T/err")"
grep -Eq '^define .*@_Z6helperi.*!prof' "$T/i.ll" || fail "clang makes nothing of it: $(grep -n '^define' "$T/i.ll")"
