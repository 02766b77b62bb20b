# Counts of lines of inlined and multiply instantiated code are gcov's, and entries of inlined functions its function counts.
# The truth is gcov of the same program, not optimized. What may differ is named and bounded at the end. (A vector instruction executes a
# line for several elements at once: no count of blocks tells that.)
. "$(dirname "$0")/lib.sh"
need gcov jq python3
cat >"$T/inv.cc" <<'C'
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
namespace inv {
template <class T>
struct Stack {
  std::vector<T> items;
  void push(T v) {
    items.push_back(v);
  }
  T pop() {
    T v = items.back();
    items.pop_back();
    return v;
  }
};
static int split(const std::string& text, std::vector<std::string>& words) {
  std::string word;
  int n = 0;
  for (char c : text) {
    if (c == ' ') {
      words.push_back(word);
      word.clear();
      n++;
    } else {
      word += c;
    }
  }
  return n;
}
template <class T>
T sum(const T* values, int n) {
  T total = 0;
  for (int i = 0; i < n; i++)
    total += values[i];
  return total;
}
template <class T>
int partition(T* a, int lo, int hi) {
  T pivot = a[hi];
  int i = lo;
  for (int j = lo; j < hi; j++) {
    if (a[j] < pivot) {
      T t = a[i];
      a[i] = a[j];
      a[j] = t;
      i++;
    }
  }
  T t = a[i];
  a[i] = a[hi];
  a[hi] = t;
  return i;
}
template <class T>
void sort(T* a, int lo, int hi) {
  if (lo >= hi)
    return;
  int p = partition(a, lo, hi);
  sort(a, lo, p - 1);
  sort(a, p + 1, hi);
}
static unsigned classify(unsigned n) {
  if (n % 3 == 0)
    return n / 3;
  if (n % 5 == 0)
    return n + 7;
  return n ^ 1;
}
static unsigned collatz(unsigned n) {
  unsigned steps = 0;
  while (n != 1) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    steps++;
  }
  return steps;
}
}  // namespace inv
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  std::vector<int> is;
  std::vector<double> ds;
  unsigned x = 1;
  for (int i = 0; i < n; i++) {
    x = x * 1103515245 + 12345;
    is.push_back(x >> 8);
    ds.push_back((x >> 8) / 3.0);
  }
  inv::sort(is.data(), 0, n - 1);
  inv::sort(ds.data(), 0, n - 1);
  inv::Stack<long> stack;
  long total = 0;
  for (int i = 0; i < n; i++) {
    stack.push(i);
    if (i % 3 == 0)
      total += stack.pop();
  }
  std::vector<std::string> words;
  for (int i = 0; i < n / 10; i++)
    total += inv::split("the quick brown fox jumps over it ", words);
  for (int i = 0; i < n; i++)
    total += inv::classify(is[i]);
  for (int i = 0; i < n; i++) {
    total ^= inv::classify(i);
    total += inv::collatz(i + 1);
  }
  printf("%ld %d %.0f %zu\n", total, inv::sum(is.data(), n), inv::sum(ds.data(), n), words.size());
}
C
(cd "$T" && g++ -std=c++20 --coverage -O0 inv.cc -o covered && ./covered >/dev/null && gcov -r --json-format --stdout covered-inv.gcda) >"$T/gcov.json"
for options in "-O2 -fno-tree-vectorize" "-O3 -fno-tree-vectorize" "-O3 -flto -fno-tree-vectorize"; do
  # shellcheck disable=SC2086
  g++ -std=c++20 -g $options "$T/inv.cc" -o "$T/inv"
  profile "$T/inv"
  report source inv.cc --format json >"$T/lines.json"
  report functions --limit 0 --format json >"$T/functions.json"
  python3 - "$T" "$options" <<'P' || fail "$options: see above"
import json, sys
t, options = sys.argv[1], sys.argv[2]
text = open(f"{t}/inv.cc").read().split("\n")
gcov, entered = {}, {}
for file in json.load(open(f"{t}/gcov.json"))["files"]:
    for line in file["lines"]: gcov[line["line_number"]] = gcov.get(line["line_number"], 0) + line["count"]
    for f in file["functions"]: entered[f["demangled_name"]] = f["execution_count"]
weir = {r["line"]: r["count"] or 0 for r in json.load(open(f"{t}/lines.json"))["rows"] if r["mark"]}
heads = {f["start_line"] for file in json.load(open(f"{t}/gcov.json"))["files"] for f in file["functions"]}
# What the optimizer left no instruction of is in one of the two only; heads and ends of functions are no statements.
both = sorted(n for n in gcov.keys() & weir.keys() if weir[n] and text[n - 1] != "}" and n not in heads)
bad = [n for n in both if weir[n] != gcov[n]]
far = [n for n in bad if abs(weir[n] - gcov[n]) > gcov[n] / 10]
for n in bad: print(f"{options} {n}: gcov {gcov[n]}, weir {weir[n]}: {text[n - 1]}")
names = {f["name"]: f for f in json.load(open(f"{t}/functions.json"))["functions"] if f["file"] and f["file"].endswith("inv.cc")}
# (A call at the end of sort() is a loop in optimized code. Link-time optimization takes the parameters from a static function's name.)
known = {name: count for name, count in entered.items() if "sort" not in name} | {name[:name.index("(")]: count for name, count in entered.items() if "(" in name}
wrong = [name for name in names if name in known and names[name]["calls"] != known[name]]
for name in wrong: print(f"{options} {name}: gcov {known[name]}, weir {names[name]['calls']} of which {names[name]['inlined']} inlined")
print(f"{options}: {len(both)} lines, {len(bad)} differ, {len(far)} by more than a tenth; {len(names)} functions, {len(wrong)} differ")
# Lines: the head of a loop (once more or less for each time that it is entered), and code that a conditional move executes always. Functions: the beginning of
# collatz() is in copies of which the debug information names one.
sys.exit(len(both) < 40 or len(bad) > 10 or len(far) > 4 or len(names) < 8 or
         sum(abs(names[name]["calls"] - known[name]) > known[name] / 10 for name in wrong) > 1)
P
done
