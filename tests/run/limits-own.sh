# A program that limits its own address space, data, descriptors, processes and file size goes on as natively, and so do those that it executes.
. "$(dirname "$0")/lib.sh"
compile limits.c -pthread <<'C'
#include "posix.h"
static void show(int what) { struct rlimit r; getrlimit(what, &r), printf(" %d: %lx %lx\n", what, r.rlim_cur, r.rlim_max), fflush(stdout); }
static void set(int what, rlim_t n) { struct rlimit r = {n, n}; CHECK(setrlimit(what, &r) == 0), show(what); }
static void *thread(void *x) { return strdup("thread"); }
int main(int argc, char **argv) {
  if (argc > 2) { show(atoi(argv[1])); char *p = malloc(50 << 20); memset(p, 1, 50 << 20); puts("executed"); return 0; }
  int what = atoi(argv[1]);
  set(what, strtoul(getenv("LIMIT"), NULL, 10));
  pthread_t t; void *text = NULL; if (what != RLIMIT_NPROC) CHECK(pthread_create(&t, NULL, thread, NULL) == 0), pthread_join(t, &text), puts(text);
  for (int i = 0; i < 20; i++) { char *p = malloc(1 << 20 << i % 5); CHECK(p), memset(p, i, 1 << 20), free(p); }
  void *library = dlopen("libm.so.6", RTLD_NOW); printf("%d %.3f\n", library != NULL, strtod("1.5", NULL)), fflush(stdout);
  struct rlimit r[2]; CHECK(syscall(SYS_getrlimit, what, &r[0]) == 0 && syscall(SYS_prlimit64, getpid(), what, NULL, &r[1]) == 0 && r[0].rlim_cur == r[1].rlim_cur);
  if (vfork() == 0) { execl(argv[0], argv[0], argv[1], "again", NULL); _exit(1); }
  int status; wait(&status), print_status("child", status);
}
C
LIMIT=1073741824 same env LIMIT=1073741824 "$T/limits" 9   # RLIMIT_AS
same env LIMIT=268435456 "$T/limits" 2                     # RLIMIT_DATA
same env LIMIT=12 "$T/limits" 7                            # RLIMIT_NOFILE
same env LIMIT=100000 "$T/limits" 1                        # RLIMIT_FSIZE
same env LIMIT=1000 "$T/limits" 6                          # RLIMIT_NPROC
