# A small code cache that is nearly full, when what all its code calls is unmapped: it has room for that, or the process was ended
# before, with a line.
. "$(dirname "$0")/lib.sh"
compile fill.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
  size_t G = 1ul << 30, M = 1ul << 20, gap = 16 * M, pages = atoi(argv[1]);
  char *all = mmap(0, 8 * G, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *callee = all + 4 * G + 700 * M, *code = callee + M;
  munmap((char *)(((size_t)code + 200 * M) & ~(gap - 1)), 2 * gap);
  mprotect(callee, 4096, PROT_READ | PROT_WRITE), *callee = 0xc3, mprotect(callee, 4096, PROT_READ | PROT_EXEC);
  mprotect(code, pages * 4096, PROT_READ | PROT_WRITE);
  for (char *page = code; page < code + pages * 4096; page += 4096) {  // 800 times call callee, and ret
    for (int i = 0; i < 800; i++) page[5 * i] = 0xe8, *(int *)(page + 5 * i + 1) = callee - (page + 5 * i + 5);
    page[4000] = 0xc3;
  }
  mprotect(code, pages * 4096, PROT_READ | PROT_EXEC);
  for (char *page = code; page < code + pages * 4096; page += 4096) ((void (*)(void))page)();
  munmap(callee, 4096);
  puts("done");
}
C
for pages in 200 400 600 800 1000 1200; do
  run weir "$WEIR" run -- "$T/fill" $pages
  case $(<"$T/weir.status") in
    0) [[ $(<"$T/weir.out") == 'done' ]] || fail "$pages: $(<"$T/weir.out")" ;;
    125) grep -q 'code cache is full' "$T/weir.err" || fail "$pages: $(<"$T/weir.err")" ;;
    *) fail "$pages: status $(<"$T/weir.status"): $(<"$T/weir.err")" ;;
  esac
done
# With a limit all is flushed in time, and room that is free again is used.
OPTIONS='--cache-mb 1' same "$T/fill" 3000
