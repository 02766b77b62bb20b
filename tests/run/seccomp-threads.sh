# Threads and children start under a filter that kills for calls they do not make themselves.
. "$(dirname "$0")/lib.sh"
compile filter.c -pthread <<'C'
#include "posix.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
static void *thread(void *x) { return (void *)((long)x + strtol("7", NULL, 10)); }
int main() {
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {4, code}; pthread_t t; void *result; int status;
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
  for (long i = 0; i < 20; i++) CHECK(pthread_create(&t, NULL, thread, (void *)i) == 0), pthread_join(t, &result), printf("thread %ld\n", (long)result);
  fflush(stdout);
  if (fork() == 0) pthread_create(&t, NULL, thread, (void *)2), pthread_join(t, &result), _exit((long)result);
  wait(&status), print_status("child", status);
  syscall(SYS_arch_prctl, 0, 0);
}
C
STATUS=159 same "$T/filter"
