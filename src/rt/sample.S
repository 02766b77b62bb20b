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

        .section .note.GNU-stack, "", @progbits
