# Programs that read and change fs, and selectors of fs and gs.
. "$(dirname "$0")/lib.sh"
need_cpu fsgsbase
compile fs.c -mfsgsbase -fno-stack-protector <<'C'
#include "posix.h"
#include <asm/prctl.h>
#include <immintrin.h>
static uint64_t other[512];
int main() {
  unsigned long base; uint64_t value, self; unsigned short selectors[4];
  CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &base) == 0 && base == _readfsbase_u64());
  asm("mov %%fs:0, %0" : "=r"(self)); CHECK(self == base);
  other[5] = 77;
  asm volatile("wrfsbase %2; mov %%fs:40, %0; movq $55, %%fs:48; mov $102, %%eax; syscall; wrfsbase %1" : "=&r"(value) : "r"(base), "r"(other) : "rax", "rcx", "r11", "memory");
  asm volatile("mov %%ds, %0; mov %%es, %1; mov %%fs, %2; mov %%gs, %3" : "=r"(selectors[0]), "=r"(selectors[1]), "=r"(selectors[2]), "=r"(selectors[3]));
  unsigned short cs, ss; asm("mov %%cs, %0; mov %%ss, %1" : "=r"(cs), "=r"(ss));
  printf("%lu %lu, selectors %x %x %x %x %x %x\n", value, other[6], selectors[0], selectors[1], selectors[2], selectors[3], cs, ss);
}
C
same "$T/fs"
