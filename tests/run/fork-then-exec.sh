# A process forks and executes another program at once, while its child has hardly begun: the child goes on right.
. "$(dirname "$0")/lib.sh"
compile race.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {
  int left = atoi(argv[1]), ends[2]; char text[20], sum = 0;
  if (left == 0) return 0;
  pipe(ends);
  if (fork() == 0) { for (int i = 0; i < 1000; i++) sum = mix(sum, i); dprintf(ends[1], "%d", sum); _exit(0); }
  close(ends[1]), dup2(ends[0], 9);
  sprintf(text, "%d", left - 1);
  if (fork() == 0) { int n = read(9, text, 19); text[n] = 0; printf("%s\n", text), fflush(stdout); _exit(n <= 0); }
  execl(argv[0], argv[0], text, NULL);
}
C
same bash -c "$T/race 30 | sort"
same bash -c 'for i in 1 2 3; do seq 100 | tee >(wc -l >count) | tail -n 1; while [[ ! -s count ]]; do sleep 0.02; done; cat count; rm count; done'
