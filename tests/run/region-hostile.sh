# A program that unmaps, protects, moves, advises or maps over a tool's regions finds nothing there; who maps over them for sure is ended with a line.
. "$(dirname "$0")/lib.sh"
use_tool marks
compile over.c <<'C'
#include "marks.h"
#include <sys/ipc.h>
#include <sys/shm.h>
int main(int argc, char **argv) {
  volatile uint64_t *all[MARKS_REGIONS];
  for (int i = 0; i < MARKS_REGIONS; i++) all[i] = region(i), all[i][2] = 42, all[i][512] = 43;
  for (int i = 0; i < MARKS_REGIONS; i++) {
    void *p = (void *)all[i], *whole[] = {p, (char *)p - 4096};
    for (int k = 0; k < 2; k++) {
      unsigned long size = region_size(i) + (k ? 8192 : 0);
      CHECK(munmap(whole[k], size) == 0);
      CHECK(mprotect(whole[k], size, PROT_NONE) == -1 && errno == ENOMEM);
      CHECK(syscall(SYS_pkey_mprotect, whole[k], size, PROT_NONE, -1) == -1);
      for (int advice = 0; advice < 30; advice++) CHECK(madvise(whole[k], size, advice) == -1);
    }
    CHECK(mremap(p, 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    CHECK(mremap(p, 0, 8192, MREMAP_MAYMOVE) == MAP_FAILED);
    char *other = mmap(p, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);  // a hint
    CHECK(other != MAP_FAILED && other != p), munmap(other, 4096);
    CHECK(mmap(p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    CHECK(segment >= 0 && shmat(segment, p, 0) == (void *)-1), shmctl(segment, IPC_RMID, NULL);
  }
  CHECK(mmap(NULL, 800 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0) == MAP_FAILED || 1);
  for (int flags = 0; flags < 8; flags++) mlockall(flags);
  munlockall();
  for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == 42 && all[i][512] == 43);
  // None of it goes into core files, and nothing was made that nobody touched.
  FILE *maps = fopen("/proc/self/smaps", "r"); char line[500]; unsigned long begin, end, kilobytes; int is_ours = 0, seen = 0;
  while (fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2 && strchr(line, '-') < line + 17) { is_ours = 0; for (int i = 0; i < MARKS_REGIONS; i++) is_ours |= begin == (unsigned long)all[i] && end - begin == region_size(i); seen += is_ours; }
    if (is_ours && sscanf(line, "Rss: %lu", &kilobytes) == 1) CHECK(kilobytes < 4096);
    if (is_ours && !strncmp(line, "VmFlags:", 8)) CHECK(strstr(line, " dd") && !strstr(line, " lo"));
  }
  CHECK(seen == MARKS_REGIONS);
  if (fork() == 0) { for (int i = 0; i < MARKS_REGIONS; i++) munmap((void *)all[i], region_size(i)), CHECK(all[i][2] == 42); _exit(0); }
  int status; wait(&status); CHECK(status == 0);
  puts("fine"), fflush(stdout);
  if (argc > 1) mmap((void *)all[atoi(argv[1])], 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), puts("over it");
}
C
under "$T/over"
[[ $(<"$T/weir.out") == fine && ! -s $T/weir.err ]] || fail "$(<"$T/weir.out") $(<"$T/weir.err")"
for region in 0 1 2 3 4; do
  STATUS=125 under "$T/over" $region
  [[ $(<"$T/weir.out") == fine && $(<"$T/weir.err") == 'weir: the program ends: it wants memory at an address that weir needs' ]] || fail "$region: $(<"$T/weir.err")"
done
# Who wants what Weir has otherwise gets it, by moving: what the regions hold stays.
compile moves.c -pthread <<'C'
#include "marks.h"
static volatile int over;
static void *work(void *x) { long n = 0; while (!over) n += getppid() > 0; return (void *)n; }
int main(void) {
  volatile uint64_t *all[MARKS_REGIONS]; pthread_t t; char c = 0; int fds[2];
  for (int i = 0; i < MARKS_REGIONS; i++) all[i] = region(i), all[i][2] = 42 + i;
  pthread_create(&t, NULL, work, NULL);
  char *p = mmap((void *)0x70000000, 0x800000000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  CHECK(p == (char *)0x70000000); *p = 1;
  for (int i = 0; i < MARKS_REGIONS; i++) CHECK(region(i) == all[i] && all[i][2] == 42u + i);
  CHECK(pipe(fds) == 0 && write(fds[1], "xyz", 3) == 3); char text[8]; clear_marks(text, 8); CHECK(read(fds[0], text, 8) == 3 && marked(text, 8) == 3);
  over = 1, pthread_join(t, NULL);
  CHECK(fork() || (all[MARKS_OWN_FILE][2] == 45 ? _exit(0), 1 : 0)); int status; wait(&status); CHECK(status == 0);
  puts("moved");
}
C
under "$T/moves"
[[ $(<"$T/weir.out") == moved && ! -s $T/weir.err ]] || fail "$(<"$T/weir.out") $(<"$T/weir.err")"
