# Calls that end otherwise than by a return are left: by exceptions, longjmp, the end of their thread. Each call ends once, also where stacks are
# switched, and handlers interrupt.
. "$(dirname "$0")/lib.sh"
compile left.cc -pthread <<'C'
#include "posix.h"
#include <setjmp.h>
#include <thread>
#define NOINLINE __attribute__((noinline, noclone, noipa))
static jmp_buf place; static sigjmp_buf handled;
extern "C" {
NOINLINE long fails(long n) { if (n % 3 == 0) throw n; return n; }          // 1,000 calls, 334 thrown
NOINLINE long between(long n) { return fails(n) + 1; }
NOINLINE long jumps(long n) { if (n % 4 == 0) longjmp(place, 1); return n; }  // 1,000, of which 250 jump
NOINLINE long over(long n) { char room[n % 100 + 1]; asm volatile("" :: "r"(room)); return jumps(n) + 1; }
NOINLINE void ends() { pthread_exit(nullptr); }
static volatile bool is_waiting;
NOINLINE void waits() { is_waiting = true; for (;;) pause(); }
NOINLINE long faults(long n) { if (n % 2) *(volatile long *)0 = 1; return n; }  // 100, of which 50 fault
NOINLINE void handler(int) { siglongjmp(handled, 1); }
NOINLINE long counts(long n) { return n + 1; }
NOINLINE void ticks(int) { counts(1); }
NOINLINE long busy(long n) { for (volatile long i = 0; i < 20000; i = i + 1); return counts(n); }
}
int main() {
  long sum = 0;
  for (long i = 0; i < 1000; i++) try { sum += between(i); } catch (long n) { sum -= n; }
  for (volatile long i = 0; i < 1000; i = i + 1) if (!setjmp(place)) sum += over(i);
  std::thread a([] { pthread_t self = pthread_self(); ends(); }); a.join();
  std::thread(waits).detach(); while (!is_waiting) sched_yield();
  stack_t alternate{malloc(65536), 0, 65536};
  alternate.ss_flags = 0, alternate.ss_size = 65536; sigaltstack(&alternate, nullptr);
  struct sigaction action{}; action.sa_handler = handler, action.sa_flags = SA_ONSTACK | SA_NODEFER; sigaction(SIGSEGV, &action, nullptr);
  for (volatile long i = 0; i < 100; i = i + 1) if (!sigsetjmp(handled, 1)) sum += faults(i);
  action.sa_handler = ticks, action.sa_flags = SA_ONSTACK | SA_RESTART; sigaction(SIGALRM, &action, nullptr);
  itimerval often{{0, 500}, {0, 500}}; setitimer(ITIMER_REAL, &often, nullptr);
  for (long i = 0; i < 2000; i++) sum += busy(i);
  itimerval none{}; setitimer(ITIMER_REAL, &none, nullptr);
  printf("%ld\n", sum);
}
C
check() {  # FUNCTION CALLS RETURNED LEFT
  [[ "$(number "$1" calls) $(number "$1" returned) $(number "$1" left)" == "$2 $3 $4" ]] ||
    fail "$1: $(number "$1" calls) calls, $(number "$1" returned) returned, $(number "$1" left) left, not $2 $3 $4"
}
same_out "$T/left"
calls "$T/left" fails between jumps over ends faults handler busy counts ticks waits main
cmp -s "$T/native.out" "$T/calls.out" || fail "its output: $(<"$T/calls.out")"
check fails 1000 666 334
check between 1000 666 334
check jumps 1000 750 250
check over 1000 750 250
check ends 1 0 1
check waits 1 0 1
check faults 100 50 50
check handler 50 0 50
check busy 2000 2000 0
check main 1 1 0
(($(number counts calls) == $(number counts returned) && $(number counts calls) == 2000 + $(number ticks calls))) || fail "counts: $(cat "$T/calls.json")"

compile switches.cc -pthread <<'C'
#include "posix.h"
#include <vector>
#define NOINLINE __attribute__((noinline, noclone, noipa))
enum { N = 20 };
static ucontext_t contexts[N], main_context; static long sum, begun, done, yielded, resumed; static int next;
extern "C" {
NOINLINE void yields(int me) { yielded++; next = (me + 7) % N; swapcontext(&contexts[me], &contexts[next]); sum += me; resumed++; }
NOINLINE long works(int me, int depth) {
  long r = 0; begun++;
  if (depth) r = works(me, depth - 1) + 1, yields(me);
  done++; return r;
}
NOINLINE void body(int me) { for (int i = 0; i < 20; i++) sum += works(me, i % 5); for (int i = 0; i < 100000; i++) { next = (me + 1) % N; if (me == N - 1) break; swapcontext(&contexts[me], &contexts[next]); } }
}
int main() {
  std::vector<std::vector<char>> stacks(N, std::vector<char>(65536));
  for (int i = 0; i < N; i++) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i].data(), contexts[i].uc_stack.ss_size = 65536, contexts[i].uc_link = &main_context;
    makecontext(&contexts[i], (void (*)())body, 1, i);
  }
  swapcontext(&main_context, &contexts[0]);
  printf("%ld %ld %ld %ld %ld\n", begun, done, yielded, resumed, sum);
}
C
same_out "$T/switches"
OPTIONS=--trace calls "$T/switches" works yields
python3 - "$T/calls.json" <<'P' || fail "switches"
import json, sys
j = json.load(open(sys.argv[1]))
names = [f['symbol'] for f in j['functions']]
calls = [c for t in j['threads'] for c in t['calls']]
# Who returned, returned what it had to: its depth.
done = [c for c in calls if names[c['function']] == 'works' and c['result'] is not None]
assert all(c['result'] == c['arguments'][1] % 2**32 for c in done), [(c['result'], c['arguments'][:2]) for c in done if c['result'] != c['arguments'][1] % 2**32][:20]
for f in j['functions']: assert f['calls'] == f['returned'] + f['left'], f
P
read -r begun done yielded resumed _ <"$T/calls.out"
check works "$begun" "$done" $((begun - done))
check yields "$yielded" "$resumed" $((yielded - resumed))
((resumed == 800 && done == 1200)) || fail "the test itself: $(<"$T/calls.out")"
