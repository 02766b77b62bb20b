# spec 3, S5: as OpenSSL keeps its frames: in any register, and behind an array whose length is in one. A word in the array looks like a
# return address, to those who have to guess.
. "$(dirname "$0")/lib.sh"
compile keeper.c <<'E2'
#include <stdio.h>
void in_array(void), in_register(void), caller(void);
asm(".text; in_array: .type in_array, @function; .cfi_startproc; mov %rsp, %rax; .cfi_def_cfa_register rax; push %rbx; .cfi_offset rbx, -16;"
    "mov $16, %r9d; sub $256, %rsp; mov %rax, 8(%rsp, %r9, 8); lea behind(%rip), %rbx; mov %rbx, 40(%rsp);"
    ".cfi_escape 0x0f, 0x0a, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 6, 0x23, 8; mov $300000000, %eax; 1: dec %eax; jnz 1b;"
    "mov 8(%rsp, %r9, 8), %rsi; .cfi_def_cfa rsi, 8; mov -8(%rsi), %rbx; .cfi_restore rbx; mov %rsi, %rsp; .cfi_def_cfa_register rsp;"
    "ret; .cfi_endproc; .size in_array, . - in_array;"
    "in_register: .type in_register, @function; .cfi_startproc; lea behind(%rip), %rax; mov %rsp, %r11; .cfi_def_cfa_register r11;"
    "sub $64, %rsp; mov %rax, 8(%rsp); mov $300000000, %eax; 1: dec %eax; jnz 1b; mov %r11, %rsp; .cfi_def_cfa_register rsp;"
    "ret; .cfi_endproc; .size in_register, . - in_register;"
    "caller: .type caller, @function; .cfi_startproc; mov %rsp, %rax; .cfi_def_cfa_register rax; sub $72, %rsp; lea behind(%rip), %rcx;"
    "mov %rcx, 16(%rsp); call inner; mov %rax, %rsp; .cfi_def_cfa_register rsp; ret; .cfi_endproc; .size caller, . - caller;"
    "inner: .type inner, @function; .cfi_startproc; mov $300000000, %ecx; 1: dec %ecx; jnz 1b; ret; .cfi_endproc; .size inner, . - inner;"
    "decoy: .type decoy, @function; call puts; behind: ret; .size decoy, . - decoy");
__attribute__((noipa)) void outer(void) { in_array(); puts("one"); in_register(); puts("two"); caller(); puts("three"); }
int main() { outer(); puts("done"); }
E2
OPTIONS=--verify RATE=2000 sampled "$T/keeper"
seen in_array in_register inner caller outer main
# (But for the first few: on a busy machine the program has begun before its images are read.)
answers "SELECT samples > 100, truncated * 20 < samples, frames_heuristic * 20 < samples, verify_differences FROM sampling" <<<'1|1|1|0'
answers "SELECT count(*) FROM function_total WHERE name = 'decoy'" <<<0
# Interrupted by a signal, its registers are not looked at; nothing is read that is not there.
compile interrupted.c <<'E2'
#include "posix.h"
void in_register(long n);
asm(".text; in_register: .type in_register, @function; .cfi_startproc; mov %rsp, %r11; .cfi_def_cfa_register r11; sub $64, %rsp;"
    "1: dec %rdi; jnz 1b; mov %r11, %rsp; .cfi_def_cfa_register rsp; ret; .cfi_endproc; .size in_register, . - in_register");
static void handler(int sig) { for (volatile int i = 0; i < 100000; i++) {} }
int main() {
  struct itimerval often = {{0, 300}, {0, 300}};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL), setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 150; i++) in_register(3000000);
  puts("done");
}
E2
OPTIONS=--verify RATE=5000 sampled "$T/interrupted"
seen in_register handler main
answers "SELECT samples > 100, verify_differences FROM sampling" <<<'1|0'
