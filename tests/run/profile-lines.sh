# spec 1, S1 and "Speed and truth": counts of lines equal gcov's.
. "$(dirname "$0")/lib.sh"
need gcov jq sqlite3 python3
cat >"$T/lines.c" <<'C'
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int classify(int n) {
  switch (n % 9) {
    case 0: return 10;
    case 1: case 2: n += 3;
      break;
    case 3: if (n > 30)
        return 1;
      n--;
      break;
    case 4: for (int i = 0; i < n; i++) {
        if (i == 7)
          break;
        n += i % 2;
      }
      n ^= 1;
      break;
    case 8: abort();
    default: n *= 2;
  }
  return n;
}

static int early(const char *text) {
  if (!*text)
    return 0;
  while (*text) {
    if (*text == 'x')
      return 1;
    text++;
  }
  return 2;
}

static int fib(int n) {
  if (n < 2)
    return n;
  int a = fib(n - 1);
  int b = fib(n - 2);
  return a + b;
}

static int by_value(const void *a, const void *b) {
  int x = *(const int *)a;
  int y = *(const int *)b;
  if (x < y)
    return -1;
  return x > y;
}

static int never(int n) {
  n++;
  return n;
}

int main(int argc, char **argv) {
  int sum = 0;
  int values[100];
  for (int i = 0; i < 100; i++) {
    if (i % 9 == 8)
      continue;
    sum += classify(i);
  }
  const char *texts[] = {"", "abc", "abxc", "x", "yyyyyyyy"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    sum += early(texts[i]);
  sum += fib(11);
  for (int i = 0; i < 100; i++)
    values[i] = i * 37 % 101;
  qsort(values, 100, sizeof *values, by_value);
  int k = 0;
  do {
    sum ^= values[k];
    k += 3;
  } while (k < 100);
again:
  if (k > 0) {
    k -= 9;
    goto again;
  }
  if (argc > 5)
    sum = never(sum);
  printf("%d\n", sum);
  return 0;
}
C
gcc -g -O0 -w "$T/lines.c" -o "$T/lines"
gcc --coverage -O0 -w "$T/lines.c" -o "$T/covered"
(cd "$T" && ./covered >/dev/null && gcov --stdout covered-lines.gcda) >"$T/gcov" 2>/dev/null
profile "$T/lines"
report source lines.c --format json >"$T/json"
python3 - "$T" <<'P'
import json, re, sys
t = sys.argv[1]
gcov = {}
for line in open(f"{t}/gcov"):
    m = re.match(r" *([0-9]+\*?|#####|=====): *(\d+):", line)
    if m: gcov[int(m[2])] = 0 if m[1][0] in "#=" else int(m[1].rstrip("*"))
text = open(f"{t}/lines.c").read().split("\n")
# The end of a function is code, for which gcov shows no count.
weir = {r["line"]: r["count"] or 0 for r in json.load(open(f"{t}/json"))["rows"] if r["mark"] and text[r["line"] - 1] != "}"}
wrong = [(n, gcov.get(n), weir.get(n)) for n in sorted(gcov.keys() | weir.keys()) if gcov.get(n, 0) != weir.get(n, 0)]
for n, g, w in wrong: print(f"{n}: gcov {g}, weir {w}: {text[n - 1]}")
sys.exit(bool(wrong) or len(gcov) < 40)
P
