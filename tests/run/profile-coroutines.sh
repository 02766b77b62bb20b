# spec 1, A4: coroutines that resume each other in a ring, deep in calls, on small stacks that lie side by side, up and down.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile ring.c -O1 -fno-inline -fno-optimize-sibling-calls <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
enum { N = 8, ROUNDS = 50 };
static ucontext_t contexts[N], start;
static char stacks[N][32768];
static volatile int now, steps; static volatile long sink;
void work(void) { for (int i = 0; i < 100; i++) sink += i; }
void step(int from) { int to = steps % 2 ? (from + 3) % N : (from + N - 1) % N; now = to; if (++steps == N * ROUNDS) setcontext(&start); swapcontext(&contexts[from], &contexts[to]); sink++; }
void deep(int n, int me) { if (n) deep(n - 1, me); else { work(); step(me); work(); } sink++; }
void body(int me) { for (;;) { deep(100, me); sink++; } }
int main() {
  for (int i = 0; i < N; i++) { getcontext(&contexts[i]); contexts[i].uc_stack.ss_sp = stacks[i]; contexts[i].uc_stack.ss_size = sizeof stacks[i]; makecontext(&contexts[i], (void (*)())body, 1, i); }
  if (steps == 0) swapcontext(&start, &contexts[0]);
  work(); printf("%d\n", steps);
}
C
profile "$T/ring"
steps=400 started=$(ask "SELECT calls FROM function_total WHERE name = 'body'")
answers "SELECT callee.text, caller.text, sum(c.calls) FROM call_count c JOIN site s ON s.id = c.site JOIN function f ON f.id = c.callee JOIN string callee ON callee.id = f.name
         JOIN function g ON g.id = s.function JOIN string caller ON caller.id = g.name WHERE callee.text IN ('work', 'step', 'deep') GROUP BY 1, 2 ORDER BY 1, 2" <<E
deep|body|$steps
deep|deep|$((100 * steps))
step|deep|$steps
work|deep|$((2 * steps - started))
work|main|1
E
((started > 1 && started <= 8)) || fail "$started bodies began"
answers "SELECT count(*) FROM function_count c JOIN thread t ON t.id = c.thread WHERE c.total > t.cycles" <<<0
answers "SELECT count(*) FROM process_word WHERE kind = 'note'" <<<0
# All the work of the coroutines is in main's total, and in theirs.
answers "SELECT f.total >= (SELECT self FROM function_total WHERE name = 'work') * 99 / 100 FROM function_total f WHERE name IN ('main', 'deep', 'body')" <<<$'1\n1\n1'
