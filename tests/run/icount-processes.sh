# Icount counts every process: fork, exec, vfork; children that die early are not lost.
. "$(dirname "$0")/lib.sh"
compile processes.c <<'C'
#include "posix.h"
static void work(long millions) { long n = millions * 1000000 / 2; asm volatile("1: dec %0; jnz 1b" : "+r"(n)); }
int main(int argc, char **argv) {
  if (argc > 1) { work(40); return 0; }
  work(10);
  if (fork() == 0) { work(20); _exit(0); }
  if (fork() == 0) { work(30); raise(SIGKILL); }
  if (vfork() == 0) { execl(argv[0], argv[0], "child", NULL); _exit(1); }
  while (wait(NULL) > 0) {}
}
C
count "$T/processes"
[[ $(json 'sum(p["instructions"] for p in j["processes"]) == sum(t["instructions"] for t in j["threads"]) == j["instructions"]') == True ]] || fail "sums differ: $(json j)"
[[ $(json 'sorted(p["instructions"] // 1000000 for p in j["processes"] if p["instructions"] > 1000000)') == '[10, 20, 30, 40]' ]] || fail "$(json 'j["processes"]')"
[[ $(json '{p["program"].split("/")[-1] for p in j["processes"]}') == "{'processes'}" ]] || fail "$(json 'j["processes"]')"
OPTIONS=--no-follow count "$T/processes"
[[ $(json 'sorted(p["instructions"] // 1000000 for p in j["processes"] if p["instructions"] > 1000000)') == '[10, 20, 30]' ]] || fail "--no-follow: $(json 'j["processes"]')"
