# The code cache, the table and the runtime are never writable in the target, by no way that a program has.
. "$(dirname "$0")/lib.sh"
compile tries.c <<'C'
#include "posix.h"
static int bad;
static void refused(const char *what, long result) { if (result != -1) bad++, printf("not refused: %s\n", what); }
int main(int argc, char **argv) {
  int mem = open("/proc/self/mem", O_RDWR);
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4200], mode[5], path[4096];
  unsigned long begin, end, weirs = 0, writable = 0, inode, executable = 0;
  while (fgets(line, sizeof line, maps)) {
    path[0] = 0, sscanf(line, "%lx-%lx %4s %*s %*s %lu %4095s", &begin, &end, mode, &inode, path);
    int is_archive = strstr(path, "/.cache/weir/") != NULL;
    if (strncmp(path, "/memfd:weir-", 12) && !is_archive) continue;
    weirs++, executable += mode[2] == 'x';
    if (strstr(path, "weir-threads")) { if (mode[2] == 'x') bad++, puts("thread blocks can be executed"); continue; }
    if (mode[1] == 'w') writable++, printf("writable: %s", line);
    refused("mprotect", mprotect((void *)begin, 4096, PROT_READ | PROT_WRITE));
    char byte = 0;
    CHECK(pread(mem, &byte, 1, begin) == 1);
    refused("/proc/self/mem", pwrite(mem, &byte, 1, begin));
    struct iovec local = {&byte, 1}, remote = {(void *)begin, 1};
    refused("process_vm_writev", process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
    refused("mremap", (long)mremap((void *)begin, 0, 4096, MREMAP_MAYMOVE) == -1 ? -1 : mprotect(mremap((void *)begin, 0, 4096, MREMAP_MAYMOVE), 4096, PROT_READ | PROT_WRITE));
    char file[99]; snprintf(file, sizeof file, "/proc/self/map_files/%lx-%lx", begin, end);
    int fd = open(file, O_RDWR);
    if (fd >= 0 && !is_archive) {
      refused("map_files: write", pwrite(fd, &byte, 1, 0)), refused("map_files: truncate", ftruncate(fd, 0));
      refused("map_files: mmap", (long)mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0));
    }
    if (fd >= 0) close(fd);
  }
  if (weirs < 4 || executable < 2) bad++, printf("%lu mappings of Weir's, %lu executable\n", weirs, executable);
  // Weir's own descriptors.
  int opened = 0;
  for (int i = 0; i < 100; i++) {
    char file[99], name[99] = ""; snprintf(file, sizeof file, "/proc/%d/fd/%d", getppid(), i);
    if (readlink(file, name, 98) < 0 || strncmp(name, "/memfd:weir-", 12)) continue;
    int fd = open(file, O_RDWR);
    if (fd < 0) continue;
    opened++;
    refused("truncate", ftruncate(fd, 0)), refused("grow", ftruncate(fd, 1l << 50));
    if (strstr(name, "weir-threads")) continue;
    refused("write", pwrite(fd, name, 1, 0)), refused("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    refused("mmap", (long)mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0));
    int again = open(file, O_RDONLY);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, again, 0);
    refused("mmap and mprotect", mprotect(page, 4096, PROT_READ | PROT_WRITE));
  }
  if (argc > 1 && opened < 4) bad++, printf("only %d files of Weir's were tried\n", opened);
  return puts(bad || writable ? "bad" : "good") < 0;
}
C
for round in first archived; do
  for way in run 'run --tool=icount' 'profile -q -o run.weir'; do
    run weir "$WEIR" $way -- "$T/tries" descriptors
    [[ $(<"$T/weir.out") == good ]] || fail "$round, $way: $(<"$T/weir.out") $(<"$T/weir.err")"
  done
done
# From outside, while it runs.
"$WEIR" run -- sleep 600 & weir=$!
is_served() { pid=$(pgrep -P $weir -x sleep) && grep -q weir-cache "/proc/$pid/maps"; }
wait_for is_served
grep -Eq '^[0-9a-f-]+ r-xs .*weir-cache' /proc/$pid/maps || fail 'no code cache'
! grep -E '^[0-9a-f-]+ .w.. .*weir-(cache|table|page|runtime)' /proc/$pid/maps || fail 'it is writable'
kill $pid; wait $weir || true
