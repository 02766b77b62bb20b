# The vDSO: clocks run and never go back, from libc and from its own symbols.
. "$(dirname "$0")/lib.sh"
compile vdso.c <<'C'
#include "posix.h"
#include <elf.h>
#include <link.h>
static int seen; static void *vdso_symbol;
static int look(struct dl_phdr_info *info, size_t size, void *data) { if (info->dlpi_addr == getauxval(AT_SYSINFO_EHDR)) seen = 1; return 0; }
int main() {
  static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
  for (int c = 0; c < 7; c++) {
    struct timespec last = {}, now, kernel;
    for (int i = 0; i < 20000; i++) {
      CHECK(clock_gettime(clocks[c], &now) == 0);
      CHECK(c == 0 || now.tv_sec > last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec >= last.tv_nsec));
      last = now;
    }
    CHECK(syscall(SYS_clock_gettime, clocks[c], &kernel) == 0 && labs(kernel.tv_sec - now.tv_sec) < 30);
    CHECK(clock_getres(clocks[c], &now) == 0 && now.tv_nsec > 0);
  }
  struct timeval tv; struct timespec ts; unsigned cpu, node;
  CHECK(gettimeofday(&tv, NULL) == 0 && clock_gettime(CLOCK_REALTIME, &ts) == 0 && labs(ts.tv_sec - tv.tv_sec) < 30 && labs(time(NULL) - tv.tv_sec) < 30);
  CHECK(getcpu(&cpu, &node) == 0 && cpu < sysconf(_SC_NPROCESSORS_CONF) && sched_getcpu() >= 0);
  const Elf64_Ehdr *header = (void *)getauxval(AT_SYSINFO_EHDR);
  CHECK(header && !memcmp(header->e_ident, ELFMAG, 4));
  void *handle = dlopen("linux-vdso.so.1", RTLD_NOLOAD | RTLD_NOW);
  int (*direct)(clockid_t, struct timespec *) = handle ? dlsym(handle, "__vdso_clock_gettime") : NULL;
  if (direct) for (int i = 0; i < 1000; i++) CHECK(direct(CLOCK_MONOTONIC, &ts) == 0);
  printf("symbol %d, error %d\n", direct != NULL, clock_gettime(12345, &ts));
}
C
same "$T/vdso"
build "$T/vdso.c" "$T/vdso" -static 2>/dev/null
same "$T/vdso"
# It lies at the same place in every run, so that no image has to go elsewhere.
place() { "$WEIR" run -- grep -F '[vdso]' /proc/self/maps; }
[[ $(place) == "$(place)" && $(place) ]] || fail "the vDSO is now here, now there: $(place)"
