# Wherever a program is moved, its data is aligned as its segments say.
. "$(dirname "$0")/lib.sh"
for n in 1 2 3 4; do
  compile aligned$n.c -Wl,--build-id=0x000$n <<'C'
#include "posix.h"
_Alignas(2 << 20) char zero[4096], data[4096] = {1};
int main() { volatile uintptr_t a = (uintptr_t)zero, b = (uintptr_t)data; return printf("%d %d\n", (int)(a % (2 << 20)), (int)(b % (2 << 20))) < 0; }
C
  same "$T/aligned$n"
done
# A program that lies where the table would be.
cat >"$T/high.S" <<'S'
.globl _start
_start: mov $1, %eax; mov $1, %edi; lea text(%rip), %rsi; mov $3, %edx; syscall
  mov $60, %eax; mov $4, %edi; syscall
.data
text: .ascii "hi\n"
S
for base in 0x6fff0000 0x100000000 0x300000000000; do
  build "$T/high.S" "$T/high" -nostdlib -static -no-pie -Wl,-Ttext-segment=$base
  STATUS=4 same "$T/high"
done
