# Every sample restored twice, in full and incrementally, by call frame information: no difference, where stacks do what they
# can: exceptions, deep recursion, threads, coroutines, alternate signal stacks, longjmp. Almost no sample is cut off.
. "$(dirname "$0")/lib.sh"
need jq
verified() {  # verified PROGRAM ARGS...: at least 100 samples, at most 2 % of them cut off
  run sample "$WEIR" sample -q --verify --unwind=cfi -F 5000 -o "$T/run.weir" -- "$@"
  [[ $(<"$T/sample.status") == 0 ]] || fail "$*: status $(<"$T/sample.status"): $(head -c 2000 "$T/sample.err")"
  "$WEIR" report "$T/run.weir" summary --format json >"$T/summary"
  jq -r --arg name "${1##*/}" '.sampling | "\($name): \(.samples) samples, \(.frames) frames, \(.frames_unwound) unwound, \(.truncated) cut off \(.truncated_by), \(.lost) lost, \(.new_maps) new maps, \(.verify_differences) differences \(.verify_differences_by)"' "$T/summary"
  jq -e '.sampling | .verify == 1 and .verify_differences == 0 and .samples >= 100 and .truncated * 50 <= .samples and .frames_heuristic == 0' "$T/summary" >/dev/null ||
    fail "$*: $(jq -c .sampling "$T/summary")"
}
compile exceptions.cc <<'C'
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
struct Noisy { std::string s; ~Noisy() { if (s.size() > 100) std::puts("long"); } };
__attribute__((noinline)) int thrower(int n) { Noisy x{std::to_string(n)}; if (n <= 0) throw std::string("deep"); return thrower(n - 1) + 1; }
__attribute__((noinline)) int rethrower(int n) { try { return thrower(n); } catch (const std::string &s) { if (n % 2) throw; return s.size(); } }
int main(int argc, char **argv) {
  std::map<int, int> seen;
  for (int i = 0; i < atoi(argv[1]); i++) try { seen[rethrower(i % 40)]++; } catch (const std::string &s) { seen[-1]++; }
  std::printf("%zu\n", seen.size());
}
C
compile deep.c -fno-optimize-sibling-calls <<'C'
#include <stdlib.h>
static volatile long sink;
__attribute__((noinline)) static void spin(int n) { for (int i = 0; i < n; i++) sink += i; }
__attribute__((noipa)) static long walk(int n, unsigned *x) {
  volatile char room[*x % 5 * 16 + 16]; room[0] = n;
  *x = *x * 1103515245 + 12345;
  spin(40 + *x % 64);
  long r = n ? walk(n - 1, x) : 0;
  if (*x % 97 == 0 && n > 40) r += walk(n % 30, x);
  return r + room[0];
}
int main(int argc, char **argv) { unsigned x = 1; for (int i = 0; i < atoi(argv[1]); i++) sink += walk(9000, &x); }
C
compile threads.cc -pthread <<'C'
#include <cstdlib>
#include <thread>
#include <vector>
static thread_local volatile long sink;
__attribute__((noinline)) long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv) {
  for (int round = 0; round < atoi(argv[1]); round++) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) threads.emplace_back([i] { sink = fib(24 + i % 3); });
    for (auto &t : threads) t.join();
  }
}
C
compile coroutines.cc -pthread <<'C'
#include <cstdlib>
#include <thread>
#include <ucontext.h>
#include <vector>
enum { N = 7 };
static thread_local ucontext_t contexts[N], home;
static thread_local volatile long sink;
static int turns;
__attribute__((noipa)) static void nested(int me, int depth) {
  for (int i = 0; i < 300; i++) sink += i;
  if (depth) return nested(me, depth - 1), void(sink++);
  swapcontext(&contexts[me], &contexts[(me + 1) % N]);
}
static void body(int me) {
  for (int i = 0; i < turns; i++) { nested(me, (me * 5 + i) % 23); try { if (i % 9 == 0) throw i; } catch (int n) { sink += n; } }
}
static void all() {
  std::vector<std::vector<char>> stacks(N, std::vector<char>(65536));
  for (int i = 0; i < N; i++) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i].data(), contexts[i].uc_stack.ss_size = 65536, contexts[i].uc_link = &home;
    makecontext(&contexts[i], (void (*)())body, 1, i);
  }
  swapcontext(&home, &contexts[0]);
}
int main(int argc, char **argv) {
  turns = atoi(argv[1]);
  std::thread other(all);
  all();
  other.join();
}
C
compile altstack.c -fno-optimize-sibling-calls <<'C'
#include "posix.h"
#include <setjmp.h>
static volatile long sink;
static sigjmp_buf out;
__attribute__((noipa)) static void below(int n) { for (int i = 0; i < 2000; i++) sink += i; if (n) below(n - 1); sink++; }
static void handler(int sig) { below(6); if (sig == SIGUSR2) siglongjmp(out, 1); if (sig == SIGUSR1) raise(SIGHUP); }
__attribute__((noipa)) static void deeper(int n, int sig) { below(0); if (n) deeper(n - 1, sig); else raise(sig); sink++; }
int main(int argc, char **argv) {
  stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
  sigaltstack(&stack, 0);
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  int all[] = {SIGUSR1, SIGUSR2, SIGHUP};
  for (int i = 0; i < 3; i++) sigaction(all[i], &a, 0);
  for (int i = 0; i < atoi(argv[1]); i++) if (!sigsetjmp(out, 1)) deeper(i % 50, all[i % 3]);
}
C
# (Once before, so that its code is known: until Weir has read that, samples are cut off.)
run warm "$WEIR" sample -q -o "$T/run.weir" -- "$T/exceptions" 15000
verified "$T/exceptions" 15000
verified "$T/deep" 200
verified "$T/threads" 200
verified "$T/coroutines" 6000
verified "$T/altstack" 3000
