# Exec chains: a program that executes itself five times by each exec call, with other arguments and environment.
. "$(dirname "$0")/lib.sh"
compile chain.c <<'C'
#include "posix.h"
extern char **environ;
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 0;
  printf("%d: %d arguments, CHAIN=%s, argv[0]=%s\n", n, argc, getenv("CHAIN") ?: "-", strrchr(argv[0], '/') ?: argv[0]), fflush(stdout);
  char next[20], variable[20], *environment[] = {variable, NULL};
  sprintf(next, "%d", n + 1), sprintf(variable, "CHAIN=%d", n);
  char *arguments[] = {argv[0], next, "more", "\303\251 \n*", "", NULL};
  switch (n) {
    case 0: execl("/proc/self/exe", argv[0], next, NULL);
    case 1: execve("/proc/self/exe", arguments, environment);
    case 2: fexecve(open("/proc/self/exe", O_RDONLY), arguments, environment);
    case 3: execveat(open("/proc/self/exe", O_PATH), "", arguments, environment, AT_EMPTY_PATH);
    case 4: setenv("PATH", "/usr/bin", 1); return execlp("sh", "sh", "-c", "echo \"sh: $CHAIN $0 $1\"; exec env printf '%s\n' last", "zero", "one", NULL);
  }
}
C
same "$T/chain"
