# Issue 20: a line of which nothing is left but functions that were inlined there was executed as often as they were entered, as gcov counts it.
. "$(dirname "$0")/lib.sh"
need gcov jq python3
cat >"$T/calls.cc" <<'C'
#include <cstdio>
#include <cstdlib>
static long sink[4];
template <class T>
struct Adder {
  T* to;
  void add(T v) {
    *to += v * v;
  }
};
static inline void note(long v) {
  sink[v & 3] ^= v;
}
static inline void both(long v) {
  Adder<long> a{&sink[0]};
  a.add(v);
  note(v);
}
__attribute__((noinline)) static void rounds(long n) {
  for (long i = 0; i < n; i++) {
    both(i);
    if (i % 4 == 0)
      note(i);
  }
}
__attribute__((noinline)) static void others(long n) {
  if (n > 1000000)
    both(n);
  note(n);
}
int main(int argc, char** argv) {
  long n = argc > 1 ? atol(argv[1]) : 20000;
  rounds(n);
  rounds(n / 2);
  others(n);
  printf("%ld %ld %ld %ld\n", sink[0], sink[1], sink[2], sink[3]);
}
C
(cd "$T" && g++ -std=c++20 --coverage -O0 calls.cc -o covered && ./covered >/dev/null && gcov -r --json-format --stdout covered-calls.gcda) >"$T/gcov.json"
for options in "-O2 -fno-tree-vectorize" "-O3 -flto -fno-tree-vectorize -fno-unroll-loops"; do
  # shellcheck disable=SC2086
  g++ -std=c++20 -g $options "$T/calls.cc" -o "$T/calls"
  profile "$T/calls"
  report source calls.cc --format json >"$T/lines.json"
  python3 - "$T" "$options" <<'P' || fail "$options: see above"
import json, sys
t, options = sys.argv[1], sys.argv[2]
text = open(f"{t}/calls.cc").read().split("\n")
gcov = {}
for file in json.load(open(f"{t}/gcov.json"))["files"]:
    for line in file["lines"]: gcov[line["line_number"]] = gcov.get(line["line_number"], 0) + line["count"]
rows = {r["line"]: r for r in json.load(open(f"{t}/lines.json"))["rows"]}
calls = [n for n, line in enumerate(text, 1) if line.strip() in ("both(i);", "a.add(v);", "note(v);", "note(i);", "both(n);", "note(n);")]
assert len(calls) == 6, calls
bad = 0
for n in calls:
    row = rows.get(n, {"count": None, "mark": ""})
    right = row["count"] == gcov[n] if gcov[n] else not row["count"]
    bad += not right or (gcov[n] > 0) != (row["mark"] in ("|", "+"))
    print(f"{options} {n}: gcov {gcov[n]}, weir {row['count']} {row['mark']!r}: {text[n - 1]}")
sys.exit(bad > 0)
P
done
