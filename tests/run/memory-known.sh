# What --tool=memory counts of a program whose accesses are known; of one that forks, executes another, and is killed; of threads.
. "$(dirname "$0")/lib.sh"
memory() {
  run count "$WEIR" run -q --tool=memory --json "$T/count.json" -- "$@"
  [[ $(<"$T/count.status") == "${STATUS:-0}" && -s $T/count.json ]] || fail "$*: status $(<"$T/count.status"): $(<"$T/count.err")"
}
compile loops.S -nostdlib -static <<'S'
  .globl _start
_start:
  mov $1000, %ebx
1: mov numbers(%rip), %eax      # static, 4 bytes, its address is known
  push %rax                     # frame
  add %rbx, (%rsp)              # frame, read and written
  pop %rcx                      # frame
  lea numbers(%rip), %rdi
  mov %cx, 8(%rdi)              # static, 2 bytes
  lea -64(%rsp), %rsi
  movb $1, 3(%rsi)              # stack
  dec %ebx
  jnz 1b
  cld
  lea numbers(%rip), %rdi
  mov $300, %ecx
  rep stosb                     # static, 300 times a byte
  mov $60, %eax
  xor %edi, %edi
  syscall
  .data
numbers: .fill 400
S
memory "$T/loops"
[[ $(json 'j["loads"], j["stores"], j["bytes_read"], j["bytes_written"]') == "3000 4300 20000 19300" ]] || fail "$(json j)"
[[ $(json '[(k, c["loads"], c["stores"]) for k, c in j["by_kind"].items()]') == "[('frame', 2000, 2000), ('stack', 0, 1000), ('heap', 0, 0), ('static', 1000, 1300), ('code', 0, 0)]" ]] || fail "$(json 'j["by_kind"]')"
[[ $(json '[(s, c["loads"], c["stores"]) for s, c in j["by_size"].items()]') == "[('1', 0, 1300), ('2', 0, 1000), ('4', 1000, 0), ('8', 2000, 2000)]" ]] || fail "$(json 'j["by_size"]')"
[[ $(json 'j["known_before_run"], j["relative_to_frame"], round(j["share_known"], 4)') == "1000 4000 0.6849" ]] || fail "$(json j)"
[[ $(json 'len(j["images"]), [i["loads"] for i in j["images"].values()]') == "1 [3000]" ]] || fail "$(json 'j["images"]')"
compile processes.c -O1 -pthread <<'C'
#include "posix.h"
static char *heap;
static void *work(void *millions) { char *p = heap; for (long n = (long)millions * 1000000; n; n--) asm volatile("incb (%0)" : : "r"(p) : "memory"); return NULL; }
int main(int argc, char **argv) {
  pthread_t threads[2];
  heap = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (argc > 1) { work((void *)3); raise(SIGKILL); }
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)2);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  if (fork() == 0) { work((void *)1); _exit(0); }
  while (wait(NULL) > 0) {}
  execl(argv[0], argv[0], "again", NULL);
}
C
STATUS=137 memory "$T/processes"
[[ $(json 'j["by_kind"]["heap"]["loads"] // 1000000, j["by_kind"]["heap"]["stores"] // 1000000') == "8 8" ]] || fail "$(json 'j["by_kind"]')"
OPTIONS='' TOOLS=memory STATUS=137 same "$T/processes"
expect_fail 125 "--blocks needs --tool=icount" "$WEIR" run --tool=memory --json "$T/x" --blocks -- true
