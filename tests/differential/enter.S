# run_sequence: sets all registers from `run` and `state`, calls run.target on its own stack, and keeps what it leaves.
#include "layout.h"
#define FLAGS 128
#define TARGET 136
#define OWN_RSP 144
#define OWN_FS 152
#define LEFT 160
#define LEFT_FLAGS 288
.macro each what
  \what rcx,1; \what rdx,2; \what rbx,3; \what rbp,5; \what rsi,6; \what rdi,7; \what r8,8; \what r9,9; \what r10,10
  \what r11,11; \what r12,12; \what r13,13; \what r14,14; \what r15,15; \what rax,0
.endm
.macro load reg, n; mov run + 8 * \n(%rip), %\reg; .endm
.macro keep reg, n; mov %\reg, run + LEFT + 8 * \n(%rip); .endm

.text
.globl run_sequence, behind_fault
.type run_sequence, @function
run_sequence:
  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
  mov %rsp, run + OWN_RSP(%rip)
  rdfsbase %rax
  mov %rax, run + OWN_FS(%rip)
  mov $0xe7, %eax
  xor %edx, %edx
  xrstor64 state(%rip)
  movabs $FS_AREA + SMALL_AREA / 2, %rax
  wrfsbase %rax
  movabs $GS_AREA + SMALL_AREA / 2, %rax
  wrgsbase %rax
  mov run + 32(%rip), %rsp
  push run + FLAGS(%rip)
  popfq
  each load
  call *run + TARGET(%rip)
  each keep
  mov %rsp, run + LEFT + 32(%rip)
  mov run + OWN_RSP(%rip), %rsp
  pushfq
  pop run + LEFT_FLAGS(%rip)
  cld
  mov $0xe7, %eax
  xor %edx, %edx
  xsave64 left_state(%rip)
behind_fault:
  mov run + OWN_FS(%rip), %rax
  wrfsbase %rax
  fninit
  ldmxcsr plain_mxcsr(%rip)
  vzeroupper
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
  ret
.size run_sequence, . - run_sequence

# The compiler's own start-up files do not go to high addresses.
.globl _start
_start:
  xor %ebp, %ebp
  mov %rdx, %r9
  pop %rsi
  mov %rsp, %rdx
  and $-16, %rsp
  push %rax; push %rsp
  xor %ecx, %ecx
  xor %r8d, %r8d
  lea main(%rip), %rdi
  call *__libc_start_main@GOTPCREL(%rip)
  hlt
.section .rodata
plain_mxcsr: .long 0x1f80
.section .note.GNU-stack,"",@progbits
