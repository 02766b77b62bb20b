# A program that unmaps, protects, moves or maps over memory that is Weir's finds nothing there, or is ended with a line where it maps over the runtime.
. "$(dirname "$0")/lib.sh"
compile over.c <<'C'
#include "posix.h"
static int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }
static void each(int how) {
  FILE *maps = fopen("/proc/self/maps", "r"); unsigned long begin, end; char line[500]; int failed = 0;
  while (fgets(line, sizeof line, maps)) {
    if (!strstr(line, "memfd:weir") || sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
    void *p = (void *)begin;
    switch (how) {
      case 0: failed |= munmap(p, end - begin); break;
      case 1: failed |= mprotect(p, 4096, PROT_NONE) != -1 || errno != ENOMEM; break;
      case 2: failed |= mremap(p, 4096, 8192, MREMAP_MAYMOVE) != MAP_FAILED || errno != EFAULT; break;
      case 3: if (mmap(p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED) failed |= munmap(p, 4096); break;
      case 4: mmap(p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
      case 5: madvise(p, 4096, MADV_DONTNEED); break;
    }
  }
  fclose(maps), printf("%d: %d, %d\n", how, failed, work(15)), fflush(stdout);
}
int main(int argc, char **argv) {
  for (int how = 0; how < 6; how++) if (how != 4) each(how);
  if (fork() == 0) { each(0); return 0; }
  wait(NULL); if (argc > 1) each(4);
}
C
same "$T/over"
for tool in $TOOLS; do expect_over=$(STDIN=/dev/null; run weir "$WEIR" run -q --tool="$tool" -- "$T/over" over; cat "$T/weir.status" "$T/weir.err")
  [[ $expect_over == $'125\nweir: the program ends: it wants memory at an address that weir needs' ]] || fail "--tool=$tool: $expect_over"
done
