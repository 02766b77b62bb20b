# While threads change versions: threads that come and go, handlers, longjmp out of them, exceptions, fork and exec, and system calls that wait.
. "$(dirname "$0")/lib.sh"
many() {
  changing "$@"
  (($(json 'j["moved"] + j["gone"]') > ${AT_LEAST:-100})) || fail "$*: hardly any changes: $(<"$T/count.json")"
}
compile threads.cc -pthread <<'C'
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
std::mutex lock;
long sum, caught;
static long depth(long n) { if (n == 0) throw std::runtime_error("deep"); return depth(n - 1) + 1; }
int main() {
  for (int round = 0; round < 20; round++) {
    std::vector<std::thread> all;
    for (int i = 0; i < 6; i++)
      all.emplace_back([i] {
        for (int k = 0; k < 300; k++) {
          long value = 0;
          try { value = depth(k % 40); } catch (const std::exception &e) { value = (long)std::string(e.what()).size(); }
          std::lock_guard<std::mutex> guard(lock);
          sum += value * i, caught++;
        }
      });
    for (auto &t : all) t.join();
  }
  printf("%ld %ld\n", sum, caught);
}
C
many "$T/threads"
compile signals.c <<'C'
#include "posix.h"
#include <setjmp.h>
static volatile long handled, jumped;
static sigjmp_buf again;
static void count(int number, siginfo_t *info, void *context) { handled++; }
static void jump(int number, siginfo_t *info, void *context) { jumped++; siglongjmp(again, 1); }
static unsigned long mixed(unsigned long x, int n) { for (int i = 0; i < n; i++) x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9UL + i; return x; }
int main() {
  on_signal(SIGALRM, count, SA_RESTART);
  on_signal(SIGUSR1, jump, 0);
  struct itimerval often = {{0, 300}, {0, 300}}, never = {};
  setitimer(ITIMER_REAL, &often, NULL);
  unsigned long x = 1;
  int pipes[2]; CHECK(pipe(pipes) == 0);
  for (volatile int i = 0; i < 300; i++) {
    x = mixed(x, 3000);
    if (sigsetjmp(again, 1) == 0) raise(SIGUSR1);
    char c = (char)i, d;
    CHECK(write(pipes[1], &c, 1) == 1 && read(pipes[0], &d, 1) == 1 && d == c);
    struct timespec t = {0, 100000}; nanosleep(&t, NULL);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%lx %ld %d\n", x, jumped, handled > 10);
}
C
many "$T/signals"
many bash -c 'for i in 1 2 3 4 5 6 7 8; do (echo $((i * i)) | cat; true) & wait; done; ls / | wc -l > /dev/null; exec expr 3 + 4'
# A thread that waits in a system call changes behind it.
AT_LEAST=10 many bash -c 'for i in 1 2 3 4 5 6 7 8; do sleep 0.02; read x < <(sleep 0.01; echo $i); echo $x; done'
# Code that is rewritten is forgotten in both versions.
compile writes.c <<'C'
#include "posix.h"
#include <sys/mman.h>
int main() {
  unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  long sum = 0;
  for (int i = 0; i < 3000; i++) {
    unsigned char f[] = {0xb8, i & 0xff, i >> 8, 0, 0, 0xc3};  // mov eax, i; ret
    memcpy(code, f, sizeof f);
    sum += ((int (*)(void))code)();
  }
  printf("%ld\n", sum);
}
C
many "$T/writes"
# A small code cache, which is flushed again and again.
OPTIONS='--cache-mb 1 --probes 4 --moves 300' many perl -e 'my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1..5000; print join(",", map { length $h{$_} } sort keys %h), "\n"'
