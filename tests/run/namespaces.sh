# A program that goes to other namespaces (unshare, setns), or to another root (chroot, pivot_root), in the middle of a run, goes on as natively.
. "$(dirname "$0")/lib.sh"
((EUID == 0)) || skip 'only root may change namespaces'
unshare -m true 2>/dev/null || skip 'unshare is not permitted'
compile goes.c -static -pthread <<'C'
#include "posix.h"
#include <sys/mount.h>
static int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }
static void *thread(void *x) { return (void *)(long)work(12); }
static void go_on(const char *what, char **argv) {
  pthread_t t; void *result; pthread_create(&t, NULL, thread, NULL), pthread_join(t, &result);
  printf("%s: %ld %.2f\n", what, (long)result, strtod("1.25", NULL)), fflush(stdout);
  if (fork() == 0) { printf("child %d\n", work(10)), fflush(stdout); execl("/goes", "goes", "executed", NULL), execl(argv[0], argv[0], "executed", NULL); _exit(errno); }
  int status; wait(&status), print_status(what, status);
}
int main(int argc, char **argv) {
  if (!strcmp(argv[1], "executed")) return printf("executed %d\n", work(11)), fflush(stdout), 5;
  int mine = open("/proc/self/ns/uts", O_RDONLY);
  for (char *how = argv[1]; *how; how++) switch (*how) {
    case 'u': CHECK(unshare(CLONE_NEWUTS | CLONE_NEWIPC | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM) == 0), sethostname("weir", 4), go_on("unshare", argv); break;
    case 's': CHECK(setns(mine, CLONE_NEWUTS) == 0), go_on("setns", argv); break;
    case 'm': CHECK(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0), go_on("mounts", argv); break;
    case 'c': CHECK(chdir(argv[2]) == 0 && chroot(".") == 0), go_on("chroot", argv); break;
    case 'p': CHECK(mount(argv[2], argv[2], NULL, MS_BIND, NULL) == 0 && chdir(argv[2]) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 && chdir("/") == 0), go_on("pivot_root", argv); break;
  }
}
C
same "$T/goes" us
same "$T/goes" m
mkdir "$T/root"; cp "$T/goes" "$T/root/goes"
said() { ! grep -v '^weir: not followed' "$T/weir.err" || fail "stderr: $(head -c 1000 "$T/weir.err")"; }   # (there is no /proc there)
same_out "$T/goes" c "$T/root"; said
same_out "$T/goes" mp "$T/root"; said
