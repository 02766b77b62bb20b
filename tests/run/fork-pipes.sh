# Fork, with pipes both ways and many generations.
. "$(dirname "$0")/lib.sh"
compile fork.c <<'C'
#include "posix.h"
static int generations(int n) {
  if (n == 0) return 1;
  pid_t child = fork();
  if (child == 0) _exit(generations(n - 1) + 1);
  int status; CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}
int main() {
  int down[2], up[2]; pid_t parent = getpid();
  pipe(down), pipe(up);
  printf("flushed twice? no\n"), fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    CHECK(getppid() == parent && getpid() != parent);
    close(down[1]), close(up[0]);
    for (int value; read(down[0], &value, sizeof value) > 0;) { value = value * 3 + 1; write(up[1], &value, sizeof value); }
    exit(7);
  }
  close(down[0]), close(up[1]);
  long sum = 0;
  for (int i = 0; i < 2000; i++) { int value = i; write(down[1], &value, sizeof value); CHECK(read(up[0], &value, sizeof value) == sizeof value); sum += value; }
  close(down[1]);
  int status; waitpid(child, &status, 0);
  printf("%ld\n", sum), print_status("child", status);
  printf("%d generations\n", generations(20)), fflush(stdout);
  for (int i = 0; i < 100; i++) if (fork() == 0) _exit(i);
  int statuses = 0; while (wait(&status) > 0) statuses += WEXITSTATUS(status);
  printf("%d\n", statuses);
}
C
same "$T/fork"
build "$T/fork.c" "$T/fork" -static
same "$T/fork"
