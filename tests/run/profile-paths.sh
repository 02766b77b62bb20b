# spec 1, A2 and A6: call sites are told apart, and every call path has its own counts; all exports of a real run add up to its total.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq callgrind_annotate
compile paths.c -O1 -g -fno-inline -fno-optimize-sibling-calls -static <<'C'
static volatile long sink;
void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
void left(int n) { leaf(n); }
void right(int n) { leaf(n); leaf(2 * n); }
void both(int n) { left(n); right(n); if (n > 10) both(n - 10); }
int main() { both(30); left(5); }
C
OPTIONS=--paths=full profile "$T/paths"
answers "WITH RECURSIVE path(id, text) AS (SELECT c.id, n.text FROM context c JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name WHERE n.text = 'main'
         UNION ALL SELECT c.id, path.text || ';' || n.text FROM path JOIN context c ON c.parent = path.id JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name)
         SELECT path.text, sum(c.calls) FROM path JOIN context c USING (id) WHERE path.text LIKE '%leaf' AND path.text NOT LIKE '%both;both;both%' GROUP BY 1 ORDER BY 1" <<'E2'
main;both;both;left;leaf|1
main;both;both;right;leaf|2
main;both;left;leaf|1
main;both;right;leaf|2
main;left;leaf|1
E2
answers "SELECT count(*) FROM function_count f JOIN (SELECT function, sum(calls) AS calls, sum(self) AS self FROM context GROUP BY 1) c ON c.function = f.function
         WHERE c.calls != f.calls OR c.self != f.self" <<<0
[[ $(report detail leaf --format json | jq -r '.callers | map(.site) | sort | map(sub("\\+0x[0-9a-f]+"; "")) | join(" ")') == 'left (paths.c:3) right (paths.c:4) right (paths.c:4)' ]] ||
  fail "call sites: $(report detail leaf --format json)"
total=$(ask 'SELECT sum(cycles) + sum(os_time) FROM thread')
[[ $(report tree --format json | jq '[.nodes[] | select(.depth == 0) | .total] | add') == "$total" ]] || fail "the tree's roots are not the total"
[[ $("$WEIR" export "$T/run.weir" --format folded -o - | awk '{ sum += $NF } END { printf "%d", sum }') == "$total" ]] || fail "folded stacks do not add up"
"$WEIR" export "$T/run.weir" --format callgrind -o "$T/callgrind.out"
callgrind_annotate --auto=no "$T/callgrind.out" 2>&1 | tr -d , >"$T/annotated" || true
grep -Eq "^ *$(ask 'SELECT sum(cycles) FROM thread') \\(100.0%\\).*PROGRAM TOTALS" "$T/annotated" || fail "callgrind: $(head -n 30 "$T/annotated")"
