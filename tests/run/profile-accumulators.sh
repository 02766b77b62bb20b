# spec 1, A1: every function has its calls; the minimum, maximum and sum of its self time; the sum with its descendants'; its OS calls and
# their time; and its callers.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile sums.c -O1 <<'C'
#include "posix.h"
__attribute__((noinline)) void spin(int n) { __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc"); }
__attribute__((noinline)) void ask(int n) {
  for (long result; n; n--) __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getppid) : "rcx", "r11", "memory");
}
__attribute__((noinline)) void work(void) { spin(10), spin(1000), ask(5), spin(100), ask(2); __asm__ volatile(""); }
int main() { work(); work(); spin(7); }
C
OPTIONS='--clock=instructions --os-model=classes' profile "$T/sums"
# spin(n) takes 2 n instructions and a few more.
answers "SELECT calls, self_max - self_min, self - calls * self_min, total - self, os_calls FROM function_total WHERE name = 'spin'" <<<'7|1986|4356|0|0'
answers "SELECT calls, self_max - self_min > 0, os_calls, os_time, os_time_total FROM function_total WHERE name = 'ask'" <<<'4|1|14|0|0'
answers "SELECT o.name, sum(c.calls), sum(c.time) FROM os_count c JOIN os_call o USING (number) WHERE o.name = 'getppid' GROUP BY 1" <<<'getppid|14|2800'
answers "SELECT w.calls, w.total = w.self + a.self + s.self - s.self_min, w.os_calls, w.os_time, w.os_time_total = a.os_time
         FROM function_total w, function_total a, function_total s WHERE w.name = 'work' AND a.name = 'ask' AND s.name = 'spin'" <<<'2|1|0|0|1'
answers "SELECT n.text, c.callee = s.id, sum(c.calls) FROM call_count c JOIN site ON site.id = c.site JOIN function f ON f.id = site.function
         JOIN string n ON n.id = f.name JOIN function_total s ON s.name = 'spin' WHERE c.callee = s.id GROUP BY n.text" <<'E'
main|1|1
work|1|6
E
