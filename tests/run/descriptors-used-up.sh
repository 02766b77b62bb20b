# A process that has used up its descriptors forks, and its child changes its code: that maps memory anew.
. "$(dirname "$0")/lib.sh"
compile used.c <<'C'
#include "posix.h"
int main() {
  while (open("/dev/null", O_RDONLY) >= 0) {}
  printf("%s\n", strerror(errno)), fflush(stdout);
  if (fork() == 0) {
    mprotect((void *)((long)main & -4096), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\7\0\0\0\xc3", 6);
    struct rlimit limit; getrlimit(RLIMIT_NOFILE, &limit);
    printf("%d %d\n", ((int (*)())code)(), (int)limit.rlim_cur), exit(open("/dev/null", O_RDONLY) < 0 ? 3 : 0);
  }
  int status; wait(&status), print_status("child", status);
  return 0;
}
C
ulimit -Sn 64
same "$T/used"; same "$T/used"
