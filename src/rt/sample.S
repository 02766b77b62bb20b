// The head of the sampler's image, and the ways out of its handler.
#include "rt/offsets.h"

        .section .text.header, "ax"
        .globl sampler_header
sampler_header:
        .quad SAMPLER_VERSION
        .quad rt_sample, sampler_restorer
        .quad rt_image_size

        .text
sampler_restorer:
        movl $15, %eax                    // rt_sigreturn
        syscall

// void rt_hand_over(int signal, SigInfo*, UContext*, uint64_t handler): the program's handler, in the frame that the kernel has made.
        .globl rt_hand_over
rt_hand_over:
        leaq -8(%rdx), %rsp
        xorl %eax, %eax
        jmp *%rcx

// The way back to a thread whose system calls are dispatched: see rt/dispatched.h. On the stack: the selector's address, rax, rip, cs, rflags, rsp, ss.
        .globl rt_blocked
rt_blocked:
        popq %rax
        movb $1, (%rax)
        popq %rax
        iretq

// void rt_resume(const UContext*, uint64_t fpstate, uint64_t features): back to a thread without rt_sigreturn. `features`: what XSAVE has saved;
// 0: FXSAVE has. Signals of the program's may come from the system call on, and find us on the stack: nothing that is needed lies below rsp.
        .globl rt_resume, rt_resume_end
rt_resume:
        movq %rdi, %rbx
        movq %rsi, %rbp
        movq %rdx, %r12
        movl $14, %eax                    // rt_sigprocmask
        movl $2, %edi
        leaq 296(%rbx), %rsi
        xorl %edx, %edx
        movl $8, %r10d
        syscall
        testq %rbp, %rbp
        jz 2f
        movl %r12d, %eax
        movq %r12, %rdx
        shrq $32, %rdx
        testq %r12, %r12
        jz 1f
        xrstor64 (%rbp)
        jmp 2f
1:      fxrstor64 (%rbp)
2:      movzwl 190(%rbx), %eax
        pushq %rax
        pushq 160(%rbx)
        pushq 176(%rbx)
        movzwl 184(%rbx), %eax
        pushq %rax
        pushq 168(%rbx)
        movq 40(%rbx), %r8
        movq 48(%rbx), %r9
        movq 56(%rbx), %r10
        movq 64(%rbx), %r11
        movq 72(%rbx), %r12
        movq 80(%rbx), %r13
        movq 88(%rbx), %r14
        movq 96(%rbx), %r15
        movq 104(%rbx), %rdi
        movq 112(%rbx), %rsi
        movq 120(%rbx), %rbp
        movq 136(%rbx), %rdx
        movq 144(%rbx), %rax
        movq 152(%rbx), %rcx
        movq 128(%rbx), %rbx
        iretq
rt_resume_end:

// void rt_call_on(uint64_t stack, void (*function)(void*), void* argument)
        .globl rt_call_on
rt_call_on:
        pushq %rbp
        movq %rsp, %rbp
        movq %rdi, %rsp
        movq %rdx, %rdi
        call *%rsi
        movq %rbp, %rsp
        popq %rbp
        ret

        .section .note.GNU-stack, "", @progbits
