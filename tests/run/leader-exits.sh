# The main thread ends with pthread_exit; another one then loads a library, runs its code and ends the process.
. "$(dirname "$0")/lib.sh"
library part.c <<'C'
int value(int n) { return n < 2 ? n : value(n - 1) + value(n - 2); }
C
compile leader.c -pthread <<'C'
#include "posix.h"
static char state(void) {   // of the main thread
  char name[50], text[200] = ""; sprintf(name, "/proc/self/task/%d/stat", getpid());
  int fd = open(name, O_RDONLY); read(fd, text, sizeof text - 1), close(fd);
  return strrchr(text, ')')[2];
}
static void handler(int number) { printf("signal %d\n", number); }
static void *leaf(void *x) { puts("another"); return NULL; }
static void *thread(void *library) {
  while (state() != 'Z') usleep(1000);
  void *part = dlopen(library, RTLD_NOW); CHECK(part);
  int (*value)(int) = dlsym(part, "value"); printf("%d\n", value(20)), fflush(stdout);
  pid_t child = fork(); int status;
  if (child == 0) execl("/bin/sh", "sh", "-c", "exit 5", NULL);
  waitpid(child, &status, 0), print_status("a child", status);
  pthread_t other; struct sigaction action = {.sa_handler = handler};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0), raise(SIGUSR1);
  CHECK(pthread_create(&other, NULL, leaf, NULL) == 0), pthread_join(other, NULL), fflush(stdout);
  print_status("system", system("exit 6"));
  exit(3);
}
int main(int argc, char **argv) { pthread_t t; pthread_create(&t, NULL, thread, argv[1]); pthread_exit(NULL); }
C
STATUS=3 same "$T/leader" "$T/libpart.so"
