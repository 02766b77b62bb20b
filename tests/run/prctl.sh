# Prctl: names, death signal, dumpable, no_new_privs, subreaper, timer slack; personality.
. "$(dirname "$0")/lib.sh"
compile prctl.c -pthread <<'C'
#include "posix.h"
#include <sys/personality.h>
static void show(const char *what) { char name[17] = {}; prctl(PR_GET_NAME, name); char text[100] = {}; int fd = open("/proc/thread-self/comm", O_RDONLY); read(fd, text, 99), close(fd); printf("%s: %s %s", what, name, text); }
static void *thread(void *x) { show("inherits"); prctl(PR_SET_NAME, "a thread of mine, long"), show("thread"); return NULL; }
int main() {
  int value = 0; pthread_t other;
  prctl(PR_SET_NAME, "renamed"), show("main");
  pthread_create(&other, NULL, thread, NULL), pthread_join(other, NULL), show("main");
  prctl(PR_SET_PDEATHSIG, SIGUSR2), prctl(PR_GET_PDEATHSIG, &value), printf("death signal %d\n", value);
  printf("dumpable %d", prctl(PR_GET_DUMPABLE)), prctl(PR_SET_DUMPABLE, 0), printf(" %d\n", prctl(PR_GET_DUMPABLE));
  for (volatile uint64_t i = 0, sum = 0; i < 10000; i++) sum = mix(sum, i);         // still runs, and finds new code
  printf("%.3f\n", strtod("12.5e1", NULL)), prctl(PR_SET_DUMPABLE, 1);
  prctl(PR_SET_CHILD_SUBREAPER, 1), prctl(PR_GET_CHILD_SUBREAPER, &value), printf("subreaper %d\n", value);
  if (fork() == 0) { if (fork() == 0) _exit(33); _exit(44); }
  int status; for (int i = 0, sum = 0; i < 2; i++) { wait(&status); sum += WEXITSTATUS(status); if (i) printf("reaped %d\n", sum); }
  printf("no new privileges %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)), prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), printf(" %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  printf("seccomp %d, tsc %d, keep caps %d\n", prctl(PR_GET_SECCOMP), prctl(PR_GET_TSC, &value), prctl(PR_GET_KEEPCAPS)), fflush(stdout);
  if (fork() == 0) { prctl(PR_SET_DUMPABLE, 0); execl("/bin/echo", "echo", "after not dumpable", NULL); }
  wait(&status), print_status("exec", status);
  printf("personality %x", personality(0xffffffff)), personality(ADDR_NO_RANDOMIZE), printf(" %x\n", personality(0xffffffff));
}
C
same "$T/prctl"
same setarch -R "$T/prctl"
same setarch -R bash -c 'echo $(echo nested)'
