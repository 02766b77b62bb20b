# Sched_getcpu and affinity; rseq is refused (ENOSYS), as its critical sections are native addresses.
. "$(dirname "$0")/lib.sh"
compile cpu.c -pthread <<'C'
#include "posix.h"
#include <sys/rseq.h>
static void *work(void *x) {
  cpu_set_t all, one; CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
  const struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_ZERO(&one); CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    for (int i = 0; i < 100; i++) { unsigned kernel; CHECK(sched_getcpu() == cpu && syscall(SYS_getcpu, &kernel, NULL, NULL) == 0 && kernel == cpu); if (__rseq_size) CHECK(area->cpu_id == cpu); sched_yield(); }
  }
  return NULL;
}
int main() {
  pthread_t thread; work(NULL), pthread_create(&thread, NULL, work, NULL), pthread_join(thread, NULL);
  struct rseq mine __attribute__((aligned(32))) = {}; CHECK(syscall(SYS_rseq, &mine, 32, 0, 0x53053053) == -1 && (errno == ENOSYS || errno == EINVAL || errno == EBUSY));
  puts("every processor");
}
C
same "$T/cpu"
