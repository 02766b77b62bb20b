# spec 1, A8: code that is loaded with dlopen, unloaded and loaded again, and code without symbols, is counted: functions by their offset.
. "$(dirname "$0")/lib.sh"
need sqlite3 nm
library plugin.c -O1 <<'C'
static volatile int n;
__attribute__((noinline)) void inner(void) { n++; }
void plugin(int times) { for (int i = 0; i < times; i++) inner(); n++; }
C
compile loads.c -O1 -fno-inline -rdynamic <<'C'
#include <dlfcn.h>
#include <stdio.h>
void call(void (*f)(int), int n) { f(n); asm volatile(""); }
int main(int argc, char **argv) {
  for (int i = 1; i <= 5; i++) { void *p = dlopen(argv[1], RTLD_NOW); call((void (*)(int))dlsym(p, "plugin"), i * 10); dlclose(p); }
}
C
profile "$T/loads" "$T/libplugin.so"
answers "SELECT name, calls FROM function_total WHERE image LIKE '%/libplugin.so' AND calls > 0 AND name IN ('plugin', 'inner') ORDER BY 1" <<<$'inner|150\nplugin|5'
answers "SELECT n.text, sum(c.calls) FROM call_count c JOIN site s ON s.id = c.site JOIN function f ON f.id = s.function JOIN string n ON n.id = f.name
         JOIN function_total t ON t.id = c.callee WHERE t.name IN ('plugin', 'inner') GROUP BY 1 ORDER BY 1" <<<$'call|5\nplugin|150'

compile stripped.c -O1 -fno-inline -fno-optimize-sibling-calls <<'C'
#include <stdio.h>
#include <stdlib.h>
static volatile int sink;
void leaf(int n) { sink += n; }
void middle(int n) { for (int i = 0; i < n; i++) leaf(i); sink++; }
static int order(const void *a, const void *b) { middle(2); return *(const char *)a - *(const char *)b; }
int main() { char text[] = "zyxwv"; for (int i = 0; i < 10; i++) middle(i); qsort(text, 5, 1, order); puts(text); }
C
offset() { echo $((0x$(nm "$T/stripped" | sed -n "s/ [Tt] $1\$//p"))); }
read -r leaf middle order < <(echo "$(offset leaf) $(offset middle) $(offset order)")
profile "$T/stripped"
by_offset() { ask "SELECT f.offset, sum(c.calls), sum(c.self), sum(c.total) FROM function f JOIN function_count c ON c.function = f.id JOIN image i ON i.id = f.image
                   WHERE i.path LIKE '%/stripped' AND f.offset IN ($leaf, $middle, $order) GROUP BY 1 ORDER BY 1"; }
with_symbols=$(by_offset)
strip "$T/stripped"
profile "$T/stripped"
[[ $(by_offset) == "$with_symbols" ]] || fail "without symbols: $(by_offset), with: $with_symbols"
answers "SELECT count(*), max(calls) FROM function_total WHERE name = 'stripped+$(printf %#x "$leaf")'" <<<"1|$(ask "SELECT sum(calls) FROM function_count c JOIN function f ON f.id = c.function JOIN image i ON i.id = f.image WHERE i.path LIKE '%/stripped' AND f.offset = $leaf")"
[[ $(grep -c . <<<"$with_symbols") == 3 ]] || fail "$with_symbols"
comparisons=$(awk -F'|' -v o="$order" '$1 == o { print $2 }' <<<"$with_symbols")
[[ $with_symbols == *"$middle|$((10 + comparisons))|"* && $with_symbols == *"$leaf|$((45 + 2 * comparisons))|"* ]] || fail "$with_symbols"
