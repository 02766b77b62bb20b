# Limits: stack, address space, data, file size; priorities; memory locks.
. "$(dirname "$0")/lib.sh"
compile limits.c -pthread <<'C'
#include "posix.h"
static int deep(int n) { volatile char room[1000]; room[0] = n; return n ? deep(n - 1) + room[0] * 0 : 7; }
static void *thread(void *x) { pthread_attr_t a; size_t size; pthread_getattr_np(pthread_self(), &a), pthread_attr_getstacksize(&a, &size), printf("thread stack %zu\n", size); return NULL; }
int main(int argc, char **argv) {
  struct rlimit now; for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit(i, &now), printf("%d: %lx %lx\n", i, now.rlim_cur, now.rlim_max);
  pthread_attr_t a; void *low; size_t size; char local; pthread_getattr_np(pthread_self(), &a), pthread_attr_getstack(&a, &low, &size);
  printf("stack large %d, has a local %d\n", size > 7 << 20, &local > (char *)low && &local < (char *)low + size);
  pthread_t t; pthread_create(&t, NULL, thread, NULL), pthread_join(t, NULL), fflush(stdout);
  if (argc > 1) return 3;
  if (fork() == 0) { struct rlimit big = {64 << 20, RLIM_INFINITY}; setrlimit(RLIMIT_STACK, &big); printf("%d\n", deep(50000)), fflush(stdout); execl(argv[0], argv[0], "again", NULL); }
  int status; wait(&status), print_status("big stack", status);
  if (fork() == 0) { struct rlimit file = {1000, 1000}; setrlimit(RLIMIT_FSIZE, &file); signal(SIGXFSZ, SIG_IGN); int fd = open("f", O_CREAT | O_WRONLY, 0600); printf("wrote %zd", write(fd, argv, 8)), printf(" %zd %s\n", pwrite(fd, "x", 1, 2000), strerrorname_np(errno)), fflush(stdout); execl("/bin/echo", "echo", "still", NULL); }
  wait(&status), print_status("file size", status);
  if (fork() == 0) { nice(3); printf("nice %d\n", getpriority(PRIO_PROCESS, 0)), fflush(stdout); void *p = malloc(1 << 20); printf("lock %d %d\n", mlock(p, 4096), munlock(p, 4096)), fflush(stdout); _exit(0); }
  wait(&status), print_status("rest", status);
}
C
same "$T/limits"
STATUS=3 same bash -c "ulimit -s unlimited; exec $T/limits x"
