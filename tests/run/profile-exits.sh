# spec 1, A4: functions that are left without a return (longjmp, exceptions, exit, pthread_exit, handlers that longjmp, coroutines)
# leave the parallel stack right: a function that is called afterwards has its real caller, and totals hold what ran in the calls.
. "$(dirname "$0")/lib.sh"
need sqlite3
# In all of these: `after` is called by `main` (or `body`) alone, `deep` by itself and by one other; work(n) takes n times the same.
compile exits.cc -O1 -fno-inline -fno-optimize-sibling-calls -fno-ipa-cp -fno-ipa-sra -pthread <<'C'
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static volatile long sink;
extern "C" {
void work(long n) { n *= 1000; asm volatile("1: dec %0; jnz 1b" : "+r"(n)); sink++; }
void after(long n) { work(n); sink++; }
static sigjmp_buf back;
int deep(int n, void (*end)()) { if (n) return deep(n - 1, end) + 1; work(1); end(); return sink; }
void jump() { siglongjmp(back, 1); }
void throws() { throw std::runtime_error("x"); }
void leaves() { exit(3); }
void ends() { pthread_exit(nullptr); }
void nothing() { sink++; }
void middle(void (*end)()) { try { deep(5, end); } catch (const std::logic_error&) { sink++; } sink++; }
void rethrows() { try { middle(throws); } catch (...) { work(2); throw; } }
void on_signal(int) { work(3); sink++; }
void on_jump(int) { work(3); siglongjmp(back, 1); }
void raises() { raise(SIGUSR1); sink++; }
void* body(void*) { deep(5, ends); return nullptr; }
static ucontext_t main_context, coroutine;
void yields() { swapcontext(&coroutine, &main_context); sink++; }
void co_inner() { work(1); yields(); work(1); sink++; }
void co_body() { for (;;) { co_inner(); sink++; } }
void resumes() { swapcontext(&main_context, &coroutine); sink++; }
void forks() { if (fork() == 0) { after(7); _exit(0); } wait(nullptr); sink++; }
}
int main(int argc, char** argv) {
  char what = argv[1][0];
  if (what == 'l') for (volatile int i = 0; i < 10; i++) { if (!sigsetjmp(back, 1)) deep(5, jump); after(1); }
  if (what == 'x') for (int i = 0; i < 10; i++) { try { middle(throws); } catch (const std::exception&) { after(1); } after(1); }
  if (what == 'r') for (int i = 0; i < 10; i++) { try { rethrows(); } catch (const std::exception&) { after(1); } }
  if (what == 'e') deep(5, leaves);
  if (what == 't') { pthread_t t; for (int i = 0; i < 3; i++) pthread_create(&t, nullptr, body, nullptr), pthread_join(t, nullptr), after(1); }
  if (what == 's') { signal(SIGUSR1, on_signal); for (int i = 0; i < 10; i++) deep(5, raises), after(1); }
  if (what == 'j') { struct sigaction a = {}; a.sa_handler = on_jump; sigaction(SIGUSR1, &a, nullptr); for (volatile int i = 0; i < 10; i++) { if (!sigsetjmp(back, 1)) deep(5, raises); after(1); } }
  if (what == 'c') { static char stack[65536]; getcontext(&coroutine); coroutine.uc_stack.ss_sp = stack, coroutine.uc_stack.ss_size = sizeof stack; makecontext(&coroutine, co_body, 0); for (int i = 0; i < 10; i++) resumes(), after(1); }
  if (what == 'f') { deep(5, forks); after(1); }
}
C
callers() {  # of the program's own functions: CALLEE CALLER CALLS
  ask "SELECT callee.text, coalesce(caller.text, s.kind), sum(c.calls) FROM call_count c JOIN site s ON s.id = c.site
         JOIN function f ON f.id = c.callee JOIN string callee ON callee.id = f.name LEFT JOIN function g ON g.id = s.function
         LEFT JOIN string caller ON caller.id = g.name
       WHERE callee.text IN ('after', 'deep', 'work', 'jump', 'throws', 'middle', 'rethrows', 'leaves', 'on_signal', 'on_jump', 'raises', 'ends', 'body',
         'resumes', 'co_inner', 'yields', 'co_body', 'forks') GROUP BY 1, 2 ORDER BY 1, 2"
}
sums() {
  [[ ! $(ask "SELECT text FROM process_word WHERE kind = 'note'") ]] || fail "$1: $(ask "SELECT text FROM process_word WHERE kind = 'note'")"
  [[ ! $(ask "SELECT 1 FROM thread t WHERE cycles != (SELECT sum(self) FROM function_count c WHERE c.thread = t.id)") ]] || fail "$1: self does not add up"
  [[ ! $(ask "SELECT 1 FROM function_count c JOIN thread t ON t.id = c.thread WHERE total > cycles") ]] || fail "$1: a total is larger than the program's"
  [[ ! $(ask "SELECT t.id FROM thread t LEFT JOIN (call_count c JOIN site s ON s.id = c.site AND s.kind = 'start') ON c.thread = t.id
              GROUP BY t.id HAVING max(c.total) IS NOT t.cycles") ]] || fail "$1: a thread's first function has not its total"
}
total() { ask "SELECT sum(c.total) FROM function_count c JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name WHERE n.text = '$1'"; }
holds() {  # holds WHAT FUNCTION CYCLES: its total is that of the work, within a part that is not work
  local total; total=$(total "$2")
  ((total >= $3 && total < $3 + $3 / 10 + ${SLACK:-10000})) || fail "$1: the total of $2 is $total, its work $3"
}
exits() {  # exits WHAT STATUS [FUNCTION=N...] <<E: callers; what each took in thousands of turns
  local what=$1 status=$2 pair; shift 2
  STATUS=$status profile "$T/exits" "$what"
  diff <(cat) <(callers) || fail "$what: the callers are not as they should be (<)"
  sums "$what"
  for pair; do holds "$what" "${pair%=*}" $((${pair#*=} * turn)); done
}
# What a thousand turns of the loop cost.
STATUS=3 profile "$T/exits" e
turn=$(ask "SELECT max(k.count) * b.cycles FROM block b JOIN block_count k ON k.block = b.id JOIN function f ON f.id = b.function JOIN string n ON n.id = f.name WHERE n.text = 'work'")
((turn >= 999)) || fail "no loop: $turn"
exits longjmp 0 main=20 deep=10 after=10 work=20 jump=0 <<'E'
after|main|10
deep|deep|50
deep|main|10
jump|deep|10
work|after|10
work|deep|10
E
# (The unwinder takes its time.)
SLACK=1000000 exits x 0 main=30 after=20 deep=10 middle=10 <<'E'
after|main|20
deep|deep|50
deep|middle|10
middle|main|10
throws|deep|10
work|after|20
work|deep|10
E
SLACK=1000000 exits rethrown 0 main=40 after=10 rethrows=30 deep=10 middle=10 <<'E'
after|main|10
deep|deep|50
deep|middle|10
middle|rethrows|10
rethrows|main|10
throws|deep|10
work|after|10
work|deep|10
work|rethrows|10
E
exits exit 3 main=1 deep=1 <<'E'
deep|deep|5
deep|main|1
leaves|deep|1
work|deep|1
E
SLACK=1000000 exits thread 0 main=3 after=3 deep=3 body=3 <<'E'
after|main|3
body|start_thread|3
deep|body|3
deep|deep|15
ends|deep|3
work|after|3
work|deep|3
E
exits signal 0 main=50 after=10 deep=40 raises=30 on_signal=30 work=50 <<'E'
after|main|10
deep|deep|50
deep|main|10
on_signal|signal|10
raises|deep|10
work|after|10
work|deep|10
work|on_signal|10
E
exits jump-from-handler 0 main=50 after=10 deep=40 raises=30 on_jump=30 work=50 <<'E'
after|main|10
deep|deep|50
deep|main|10
on_jump|signal|10
raises|deep|10
work|after|10
work|deep|10
work|on_jump|10
E
exits coroutine 0 main=29 after=10 resumes=19 co_body=19 co_inner=19 work=29 <<'E'
after|main|10
co_body|start|1
co_inner|co_body|10
resumes|main|10
work|after|10
work|co_inner|19
yields|co_inner|10
E
# The child has its parent's frames, but has made none of these calls.
exits fork 0 main=9 deep=8 after=8 forks=7 work=9 <<'E'
after|forks|1
after|main|1
deep|deep|5
deep|main|1
forks|deep|1
work|after|2
work|deep|1
E
child="JOIN thread t ON t.id = c.thread WHERE t.process = (SELECT id FROM process WHERE parent IS NOT NULL)"
answers "SELECT n.text, c.calls, c.total = t.cycles FROM function_count c JOIN function f ON f.id = c.function JOIN string n ON n.id = f.name $child
         AND n.text IN ('main', 'deep', 'forks', 'after') ORDER BY 1" <<'E'
after|1|0
deep|0|1
forks|0|1
main|0|1
E
