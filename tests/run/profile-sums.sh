# spec 1, A5: self times add up to the total, the entry point of a thread has that thread's total, and no total exceeds it,
# under direct and mutual recursion; in real programs too.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3 perl gcc
check() {  # every row is a fault
  local faults; faults=$(ask "
    SELECT 'self adds up to ' || sum(c.self) || ', not ' || t.cycles || ', in thread ' || t.id FROM thread t JOIN function_count c ON c.thread = t.id
      GROUP BY t.id HAVING sum(c.self) != t.cycles;
    SELECT 'blocks add up to ' || sum(c.count * b.cycles + c.extra) || ', not ' || t.cycles FROM thread t JOIN block_count c ON c.thread = t.id
      JOIN block b ON b.id = c.block GROUP BY t.id HAVING sum(c.count * b.cycles + c.extra) != t.cycles;
    SELECT 'the total of ' || n.text || ' is ' || c.total || ' of ' || t.cycles FROM function_count c JOIN thread t ON t.id = c.thread
      JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name WHERE c.total > t.cycles;
    SELECT n.text || ' has self ' || c.self || ' and total ' || c.total || ', calls ' || c.calls FROM function_count c
      JOIN function f ON f.id = c.function JOIN image i ON i.id = f.image JOIN string n ON n.id = f.name
      WHERE c.total < c.self AND i.path NOT LIKE '%.so.%';  -- (string functions of the C library jump into the middle of others)
    SELECT 'thread ' || t.id || ' began ' || count(*) || ' times, with ' || sum(c.total) || ' of ' || t.cycles FROM thread t LEFT JOIN
      (call_count c JOIN site s ON s.id = c.site AND s.kind = 'start') ON c.thread = t.id GROUP BY t.id HAVING count(*) != 1 OR sum(c.total) IS NOT t.cycles;
    SELECT 'calls of ' || n.text || ': ' || f.calls || ', by its callers ' || sum(c.calls) || '; total ' || f.total || ', ' || sum(c.total)
      FROM function_count f JOIN call_count c ON c.callee = f.function AND c.thread = f.thread JOIN function i ON i.id = f.function
      JOIN string n ON n.id = i.name GROUP BY f.function, f.thread HAVING f.calls != sum(c.calls) OR f.total != sum(c.total);
    SELECT 'note: ' || text FROM process_word WHERE kind = 'note'")
  [[ ! $faults ]] || fail "$1:"$'\n'"$(head -n 20 <<<"$faults")"
}
compile recursion.c -O1 -fno-optimize-sibling-calls -fno-inline <<'C'
#include <stdio.h>
static int odd(int n);
static int even(int n) { return n == 0 ? 1 : odd(n - 1) ^ 0; }
static int odd(int n) { return n == 0 ? 0 : even(n - 1) | 0; }
static int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int c(int n); static int b(int n) { return n <= 0 ? 1 : c(n - 1) + c(n - 2); } static int c(int n) { return n <= 0 ? 1 : b(n - 1) + fib(n); }
int main() { printf("%d %d %d %d\n", even(1001), ackermann(2, 20), fib(18), b(16)); }
C
profile "$T/recursion"; check recursion
# ackermann(2, n) makes 2n² + 7n + 5 calls.
answers "SELECT name, calls FROM function_total WHERE name IN ('even', 'odd', 'ackermann') ORDER BY 1" <<'E'
ackermann|945
even|501
odd|501
E
profile python3 -S -c 'print(sum(sorted({str(i): i for i in range(3000)}.values())))'; check python3
profile perl -e 'my %h; $h{$_ % 37} .= $_ for 1..5000; print join(",", map { length } sort values %h), "\n"'; check perl
profile bash -c 'f() { (($1 < 2)) && echo $1 || echo $(($(f $(($1-1))) + $(f $(($1-2))))); }; f 4; for i in {1..300}; do s+=$i; done; echo ${#s}'; check bash
profile sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i+1 from n where i < 2000) select count(*), sum(i) from n order by i'; check sqlite3
echo 'int f(int n) { return n ? n * f(n - 1) : 1; } int main() { return f(3); }' >"$T/small.c"
profile gcc -O2 "$T/small.c" -o "$T/small"; check gcc
