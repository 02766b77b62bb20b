# Loads and stores that --tool=memory counts equal those of a single-stepped native run: by size, by kind, in bytes.
. "$(dirname "$0")/lib.sh"
compile kinds.c -O1 -fno-builtin <<'C'
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static int bss[3000], data[100] = {1, 2, 3};
static const char *const names[] = {"a", "bc"};
__attribute__((noinline)) static long sum(const int *p, int n) { long s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
__attribute__((noinline)) static int frame(int n) { volatile int local[8]; for (int i = 0; i < 8; i++) local[i] = n; return n ? frame(n - 1) + local[n % 8] : 0; }
int main() {
  int stack[200], *heap = malloc(800), *map = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char *code = (unsigned char *)(uintptr_t)sum;
  memset(stack, 1, sizeof stack), memset(heap, 2, 800), memset(map, 3, 5000);
  long s = sum(stack, 200) + sum(heap, 200) + sum(map, 1000) + sum(bss, 3000) + sum(data, 100) + sum((int *)code, 5) + frame(9);
  char text[64] = "where the colours are, the river is wide", *t = text;
  asm volatile("cld; rep movsb" : "+S"(t), "+D"(map) : "c"(40L) : "memory");
  char *a = text, *b = (char *)heap; long n = 64;
  memcpy(heap, text, 64), ((char *)heap)[30] ^= 1;
  asm volatile("repe cmpsb" : "+S"(a), "+D"(b), "+c"(n) : : "cc", "memory"); s += n;
  a = text, n = -1;
  asm volatile("repne scasb" : "+D"(a), "+c"(n) : "a"(0) : "cc", "memory"); s += n;
  a = text + 63, n = 10;
  asm volatile("std; rep lodsb; cld" : "+S"(a), "+c"(n) : : "rax", "cc");
  asm volatile("bts %1, %0; enter $64, $1; push (%%rsp); pop 8(%%rsp); leave" : "+m"(bss) : "r"(4000L) : "cc", "memory");
  asm volatile("xlat" : : "b"(text), "a"(3) : "cc");
  heap = realloc(heap, 300000), heap[70000] = 7, s += heap[70000];
  int *again = mmap(map, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, open("/proc/self/exe", 0), 0);
  munmap(bss == 0 ? bss : (void *)(((uintptr_t)map + 65536) & ~4095ul), 4096);
  printf("%ld %s %.3f\n", s, names[s & 1], s / 3.0);
  return 6;
}
C
build "$T/kinds.c" "$T/kinds-static" -O1 -fno-builtin -w -static
build "$T/kinds.c" "$T/kinds-frames" -O0 -w -static-pie
accesses "$T/kinds"
accesses "$T/kinds-static"
accesses "$T/kinds-frames"
accesses /bin/true
