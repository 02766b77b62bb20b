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
