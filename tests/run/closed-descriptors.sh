# Closefrom(0) and close_range in the middle of a run, in threads and before fork, exec and dlopen: what Weir has is not the program's.
. "$(dirname "$0")/lib.sh"
compile closes.c -pthread <<'C'
#include "posix.h"
static void *thread(void *x) { closefrom(0); return (void *)(long)(strtod("2.5", NULL) * 2); }
int main(int argc, char **argv) {
  if (argc > 2) _exit(fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 ? 21 : 1);
  int out = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0600); CHECK(out == 3);
  pthread_t t; void *result;
  if (fork() == 0) { closefrom(0); void *m = dlopen("libm.so.6", RTLD_NOW); if (!m) _exit(1); execl(argv[0], argv[0], "x", "again", NULL); }
  int status; wait(&status), print_status("child", status);
  pthread_create(&t, NULL, thread, NULL), pthread_join(t, &result);
  CHECK(close_range(0, ~0u, 0) == 0 && dlopen("libm.so.6", RTLD_NOW) && (long)result == 5);
  if (fork() == 0) _exit(open("/dev/null", O_RDONLY) == 0 ? 22 : 1);
  wait(&status); return WEXITSTATUS(status);
}
C
STATUS=22 same "$T/closes" "$T/out"
