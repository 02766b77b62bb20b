# Code that a program writes into its heap, as tcc does, is code that is written at run time: a function is what was called there, and its parts call each
# other in ways that no call site tells.
. "$(dirname "$0")/lib.sh"
compile heap.c -O1 <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern const char code[], code_end[];
asm(".section .rodata\n"
    "code: push %rbx ; xor %ebx, %ebx\n"
    "1: cmp $100, %ebx ; jge 4f ; jmp 3f\n"
    "2: inc %ebx ; jmp 1b\n"
    "3: call 5f ; jmp 2b\n"
    "4: mov %ebx, %eax ; pop %rbx ; ret\n"
    "5: push %rbp ; mov $5, %eax ; 6: dec %eax ; jnz 6b ; pop %rbp ; ret\n"
    "code_end:\n.text\n");
int main() {
  char *at = (char *)(((long)sbrk(8192) + 4095) & -4096L);
  mprotect(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  memcpy(at, code, code_end - code);
  printf("%d\n", ((int (*)(void))at)());
}
C
same "$T/heap"
profile "$T/heap"
[[ $(ask "SELECT sum(self) > 1000 FROM function_total WHERE image = '[heap]'") == 1 ]] || fail "$(ask "SELECT * FROM function_total WHERE image = '[heap]'")"
