# A thread's stack is part of a larger mapping, in which lie stacks of coroutines, too, with pages that nobody may read above them.
. "$(dirname "$0")/lib.sh"
compile stacks.c -pthread <<'C'
#include "posix.h"
#include <sys/mman.h>
enum { size = 16 << 20, own = 2 << 20, inner = 1 << 20 };
static char *all; static ucontext_t back, there; static volatile long n;
static void (*written)(long);  // without unwind information: callers are guessed
__attribute__((noipa)) static void spin(long rounds) { for (long i = 0; i < rounds; i++) n++; }
static void coroutine(void) { written(100000000); swapcontext(&there, &back); }
static void *thread(void *p) {
  spin(50000000);  // Weir learns of the stack
  char *stack = all + (4 << 20);
  CHECK(mprotect(stack + inner, 4096, PROT_NONE) == 0);
  getcontext(&there), there.uc_stack.ss_sp = stack, there.uc_stack.ss_size = inner;
  makecontext(&there, coroutine, 0), swapcontext(&back, &there);
  return NULL;
}
int main() {
  static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};  // mov %rdi, %rax ; 1: dec %rax ; jnz 1b ; ret
  written = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(written, code, sizeof code);
  all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t a; pthread_t t; pthread_attr_init(&a), pthread_attr_setstack(&a, all + size - own, own);
  CHECK(pthread_create(&t, &a, thread, NULL) == 0 && pthread_join(t, NULL) == 0);
  puts("right");
}
C
sampled "$T/stacks"
seen spin thread
