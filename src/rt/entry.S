// The doors of the runtime: from translated code into C++ and back, and from the kernel's signal frames.
//
// Invariant: between `rt_exit` and `rt_exit_end` the program's whole state is in ThreadBlock::regs and stays there, so the
// way out can be begun again at any instant; a signal that comes there does just that. Between `rt_unmasked` and
// `rt_unmasked_end` the stack pointer is the program's too: a signal that the kernel delivers there has its frame
// where it would be natively.

#include "rt/offsets.h"

        .macro ENTER name, handler
        .globl \name
\name:
        movq %rax, %gs:REGS+0
        movq %rcx, %gs:REGS+8
        movq %rdx, %gs:REGS+16
        movq %rbx, %gs:REGS+24
        movq %rsp, %gs:REGS+32
        movq %rbp, %gs:REGS+40
        movq %rsi, %gs:REGS+48
        movq %rdi, %gs:REGS+56
        movq %r8, %gs:REGS+64
        movq %r9, %gs:REGS+72
        movq %r10, %gs:REGS+80
        movq %r11, %gs:REGS+88
        movq %r12, %gs:REGS+96
        movq %r13, %gs:REGS+104
        movq %r14, %gs:REGS+112
        movq %r15, %gs:REGS+120
        movq %gs:0, %rdi
        leaq STACK_TOP(%rdi), %rsp
        pushfq
        popq %gs:REGS_FLAGS
        cld
        call \handler
        jmp rt_exit
        .endm

        .macro LEAVE                      // all registers from the thread block, rsp last
        pushq %gs:REGS_FLAGS
        popfq
        LEAVE_REGISTERS
        .endm

        .macro LEAVE_REGISTERS
        LOAD_REGISTERS
        jmp *%gs:REGS_PC
        .endm

        .macro LOAD_REGISTERS
        movq %gs:REGS+0, %rax
        movq %gs:REGS+8, %rcx
        movq %gs:REGS+16, %rdx
        movq %gs:REGS+24, %rbx
        movq %gs:REGS+40, %rbp
        movq %gs:REGS+48, %rsi
        movq %gs:REGS+56, %rdi
        movq %gs:REGS+64, %r8
        movq %gs:REGS+72, %r9
        movq %gs:REGS+80, %r10
        movq %gs:REGS+88, %r11
        movq %gs:REGS+96, %r12
        movq %gs:REGS+104, %r13
        movq %gs:REGS+112, %r14
        movq %gs:REGS+120, %r15
        movq %gs:REGS+32, %rsp
        .endm

        .section .text.header, "ax"
        .globl rt_header
rt_header:
        .quad ABI_VERSION
        .quad enter_link, enter_indirect, enter_syscall, enter_guard, enter_routine, enter_probe
        .quad enter_light_0, enter_light_1, enter_light_2, enter_light_3, enter_light_4
        .quad rt_begin_program, rt_signal_entry
        .quad rt_sent, guarded_sent, rt_sent_back, rt_guarded_sent_back
        .quad rt_allowed, rt_allowed_done
        .quad rt_image_size
        .quad rt_tools, rt_tools_end

        .text
        .globl rt_doors_begin, rt_doors_end, rt_enter, rt_enter_end
rt_doors_begin:
rt_enter:
        ENTER enter_link, rt_link
        ENTER enter_indirect, rt_indirect
        ENTER enter_syscall, rt_syscall
        ENTER enter_changed, rt_guard
        ENTER enter_routine, rt_routine
// Weir sends a thread here that it has stopped, to go on in another version: from an exact place of the program, or, behind it, from a
// system call (rt_allowed), which has left the wrong rcx.
        .globl rt_sent_back
rt_sent_back:
        movq %gs:SENT_FROM, %rcx
        ENTER rt_sent, rt_change_version
rt_enter_end:

// Both doors below may be left again from `…_exit` at any instant before `…_exit_end`: a signal that comes there does that.
        .globl rt_probe_exit, rt_probe_exit_end, rt_light_exit, rt_light_exit_end

// A probe calls where the flags are dead: rcx holds where to go on (the code there takes the program's back from its slot), the
// arguments are in the thread block. Registers that a C function keeps stay where they are.
enter_probe:
        movq %rax, %gs:REGS+0
        movq %rcx, %gs:REGS+8
        movq %rdx, %gs:REGS+16
        movq %rsp, %gs:REGS+32
        movq %rsi, %gs:REGS+48
        movq %rdi, %gs:REGS+56
        movq %r8, %gs:REGS+64
        movq %r9, %gs:REGS+72
        movq %r10, %gs:REGS+80
        movq %r11, %gs:REGS+88
        movq %gs:0, %rdi
        leaq STACK_TOP(%rdi), %rsp
        call rt_routine
rt_probe_exit:
        movq %gs:0, %rdi
        leaq STACK_TOP(%rdi), %rsp
        cmpl $0, %gs:SIGNAL_PENDING
        jne 1f
        movq %gs:REGS+0, %rax
        movq %gs:REGS+16, %rdx
        movq %gs:REGS+48, %rsi
        movq %gs:REGS+56, %rdi
        movq %gs:REGS+64, %r8
        movq %gs:REGS+72, %r9
        movq %gs:REGS+80, %r10
        movq %gs:REGS+88, %r11
        movq %gs:REGS+32, %rsp
        jmp *%gs:REGS+8
rt_probe_exit_end:
1:      movq %rbx, %gs:REGS+24            // a signal waits: out by the door where it is delivered
        movq %rbp, %gs:REGS+40
        movq %r12, %gs:REGS+96
        movq %r13, %gs:REGS+104
        movq %r14, %gs:REGS+112
        movq %r15, %gs:REGS+120
        pushfq
        popq %gs:REGS_FLAGS
        jmp rt_exit

// The same for routines that come up often: all registers stay where they are, as the functions keep them that they use. What is not
// done there is done by enter_probe.
        .macro LIGHT number
enter_light_\number:
        movq %rcx, %gs:REGS+8
        movq %rsp, %gs:REGS+32
        movq %gs:0, %rcx
        leaq STACK_TOP(%rcx), %rsp
        call *%gs:LIGHT_ROUTINES+8*\number
        jmp rt_light_exit
        .endm
        LIGHT 1
        LIGHT 2
        LIGHT 3
        LIGHT 4
        LIGHT 0
rt_light_exit:
        movq %gs:REGS+8, %rcx
        movq %gs:REGS+32, %rsp
        cmpl $NO_ROUTINE, %gs:EXIT_ID
        jne enter_probe
        cmpl $0, %gs:SIGNAL_PENDING
        jne enter_probe
        jmp *%rcx
rt_light_exit_end:

// The doors of a thread whose stack pointer is on the alternate stack: see guard_doors(). Signals are blocked while it still is; the program's
// mask is set again on the way out. All doors lead to those that save everything.
        .globl rt_doors, rt_guarded_doors
        .macro GUARDED name, door, routine=-1
guarded_\name:
        movq %rax, %gs:DOOR_REGISTERS+0
        .if \routine >= 0
        movl $\routine, %gs:EXIT_ID
        .endif
        leaq \door(%rip), %rax
        jmp guard
        .endm
        GUARDED link, enter_link
        GUARDED indirect, enter_indirect
        GUARDED syscall, enter_syscall
        GUARDED guard, enter_changed
        GUARDED routine, enter_routine
        GUARDED probe, enter_routine
        GUARDED light_0, enter_routine, 0
        GUARDED light_1, enter_routine, 1
        GUARDED light_2, enter_routine, 2
        GUARDED light_3, enter_routine, 3
        GUARDED light_4, enter_routine, 4
        .globl rt_guarded_sent_back
rt_guarded_sent_back:
        movq %gs:SENT_FROM, %rcx
        GUARDED sent, rt_sent
guard:  movq %rax, %gs:REGS_PC
        movq %rcx, %gs:DOOR_REGISTERS+8
        movq %rdx, %gs:DOOR_REGISTERS+16
        movq %rsi, %gs:DOOR_REGISTERS+24
        movq %rdi, %gs:DOOR_REGISTERS+32
        movq %r10, %gs:DOOR_REGISTERS+40
        movq %r11, %gs:DOOR_REGISTERS+48
        movq %gs:0, %rdx
        leaq EXIT_MASK(%rdx), %rdx
        leaq all_signals(%rip), %rsi
        movl $2, %edi                     // SIG_SETMASK
        movl $8, %r10d
        movl $14, %eax                    // rt_sigprocmask (the kernel keeps the flags)
        syscall
        movl $1, %gs:EXIT_UNMASK
        movq %gs:DOOR_REGISTERS+0, %rax
        movq %gs:DOOR_REGISTERS+8, %rcx
        movq %gs:DOOR_REGISTERS+16, %rdx
        movq %gs:DOOR_REGISTERS+24, %rsi
        movq %gs:DOOR_REGISTERS+32, %rdi
        movq %gs:DOOR_REGISTERS+40, %r10
        movq %gs:DOOR_REGISTERS+48, %r11
        jmp *%gs:REGS_PC
        .balign 8
all_signals:
        .quad -1
rt_doors:
        .quad enter_link, enter_indirect, enter_syscall, enter_guard, enter_routine, enter_probe
        .quad enter_light_0, enter_light_1, enter_light_2, enter_light_3, enter_light_4
rt_guarded_doors:
        .quad guarded_link, guarded_indirect, guarded_syscall, guarded_guard, guarded_routine, guarded_probe
        .quad guarded_light_0, guarded_light_1, guarded_light_2, guarded_light_3, guarded_light_4
// The entry of volatile code: is it what was translated? rcx holds its Guard, the program's rcx is in the slot. Flags are kept as lahf and
// seto have them: popfq takes longer than most comparisons. What is not done here is done by rt_guard.
        .globl rt_guard_exit, rt_guard_exit_end
enter_guard:
        movq %rax, %gs:REGS+0
        movq %rdx, %gs:REGS+16
        movq %rsi, %gs:REGS+48
        movq %rdi, %gs:REGS+56
        movq %r8, %gs:REGS+64
        movq %r9, %gs:REGS+72
        lahf
        seto %al
        movq %rax, %gs:REGS_FLAGS
        cmpq $0, GUARD_LOCKED(%rcx)
        jne 8f
        leaq GUARD_CODE-GUARDED_NEXT(%rcx), %r9
        jmp 6f
0:      movq (%r9), %rsi
        movq GUARDED_WAS(%r9), %rdi
1:      subq $32, %rdx
        jb 2f
        movq (%rsi), %rax
        xorq (%rdi), %rax
        movq 8(%rsi), %r8
        xorq 8(%rdi), %r8
        orq %r8, %rax
        movq 16(%rsi), %r8
        xorq 16(%rdi), %r8
        orq %r8, %rax
        movq 24(%rsi), %r8
        xorq 24(%rdi), %r8
        orq %r8, %rax
        jne 8f
        addq $32, %rsi
        addq $32, %rdi
        jmp 1b
2:      addl $24, %edx                    // 8 less than are left
        js 4f
3:      movq (%rsi), %rax
        cmpq (%rdi), %rax
        jne 8f
        addq $8, %rsi
        addq $8, %rdi
        subl $8, %edx
        jns 3b
4:      addl $8, %edx
        je 6f
        cmpq $8, GUARDED_SIZE(%r9)
        jb 5f
        movq -8(%rsi,%rdx), %rax          // the last ones, and some once more
        cmpq -8(%rdi,%rdx), %rax
        jne 8f
        jmp 6f
5:      movb (%rsi), %al
        cmpb (%rdi), %al
        jne 8f
        incq %rsi
        incq %rdi
        decl %edx
        jne 5b
6:      addq $GUARDED_NEXT, %r9
        movq GUARDED_SIZE(%r9), %rdx
        testq %rdx, %rdx
        jne 0b
rt_guard_exit:
        cmpl $0, %gs:SIGNAL_PENDING
        jne 8f
        movq %gs:REGS+16, %rdx
        movq %gs:REGS+48, %rsi
        movq %gs:REGS+56, %rdi
        movq %gs:REGS+64, %r8
        movq %gs:REGS+72, %r9
        movq %gs:REGS_FLAGS, %rax
        addb $127, %al
        sahf
        movq %gs:REGS+0, %rax
        jmp *GUARD_PC(%rcx)
rt_guard_exit_end:
8:      movq %gs:REGS+16, %rdx
        movq %gs:REGS+48, %rsi
        movq %gs:REGS+56, %rdi
        movq %gs:REGS+64, %r8
        movq %gs:REGS+72, %r9
        movq %gs:REGS_FLAGS, %rax
        addb $127, %al
        sahf
        movq %gs:REGS+0, %rax
        jmp enter_changed

// A new program comes here from the kernel's exec: its registers are in the thread block already, signals are blocked.
rt_begin_program:
        movq %gs:0, %rdi
        leaq STACK_TOP(%rdi), %rsp
        call rt_program
        jmp rt_exit

// void rt_go_native(uint64_t rsp, uint64_t pc): as the kernel leaves a new program, all other registers are zero.
        .globl rt_go_native
rt_go_native:
        leaq -8(%rdi), %rsp
        movq %rsi, (%rsp)
        xorl %eax, %eax
        xorl %ecx, %ecx
        xorl %edx, %edx
        xorl %ebx, %ebx
        xorl %ebp, %ebp
        xorl %esi, %esi
        xorl %edi, %edi
        xorl %r8d, %r8d
        xorl %r9d, %r9d
        xorl %r10d, %r10d
        xorl %r11d, %r11d
        xorl %r12d, %r12d
        xorl %r13d, %r13d
        xorl %r14d, %r14d
        xorl %r15d, %r15d
        ret

        .globl rt_exit, rt_exit_end, rt_unmasked, rt_unmasked_end
rt_exit:
        movq %gs:0, %rdi
        leaq STACK_TOP(%rdi), %rsp
        cmpl $0, SIGNAL_PENDING(%rdi)
        jne 1f
        cmpl $0, EXIT_UNMASK(%rdi)
        jne 2f
        LEAVE
1:      call rt_prepare_kept              // out by a breakpoint, in whose frame the signal is delivered
        pushq %gs:REGS_FLAGS
        popfq
        LOAD_REGISTERS
        .globl rt_kept, rt_kept_end
rt_kept:
        int3
rt_kept_end:
        ud2
2:      // Signals are blocked here. Unblock them with the program's own stack pointer.
        movl $0, EXIT_UNMASK(%rdi)
        pushq %gs:REGS_FLAGS
        popfq
        leaq EXIT_MASK(%rdi), %rsi
        movl $2, %edi                     // SIG_SETMASK
        movl $0, %edx
        movl $8, %r10d
        movl $14, %eax                    // rt_sigprocmask
        movq %gs:REGS+32, %rsp
        syscall
rt_unmasked:
        LEAVE_REGISTERS
rt_unmasked_end:
rt_exit_end:

// A system call of the program that may not be dispatched, though the kernel would do so: it does not look at those that are made here.
        .globl rt_allowed, rt_allowed_done, rt_allowed_end
rt_allowed:
        syscall
rt_allowed_done:
        jmp *%gs:ALLOWED_RETURN
rt_allowed_end:
rt_doors_end:

// The kernel calls it: rdi = signal, rsi = siginfo, rdx = ucontext, rsp = frame. All signals are blocked.
        .globl rt_signal_entry
rt_signal_entry:
        movq %rsp, %rbx
        movq %gs:0, %rcx
        leaq SIGNAL_STACK_TOP(%rcx), %rsp
        cld
        call rt_signal
        testl %eax, %eax
        jne rt_exit
        leaq 8(%rbx), %rsp                // the frame without the return address
        movl $15, %eax                    // rt_sigreturn
        syscall
        ud2

// long rt_clone(long nr, long args[5], ThreadBlock* child): the child leaves through its own thread block.
        .globl rt_clone
rt_clone:
        pushq %rbx
        movq %rdx, %rbx                   // survives the call in parent and child
        movq %rdi, %rax
        movq %rsi, %r9
        movq 0(%r9), %rdi
        movq 8(%r9), %rsi
        movq 16(%r9), %rdx
        movq 24(%r9), %r10
        movq 32(%r9), %r8
        syscall
        testq %rax, %rax
        jz 1f
        popq %rbx
        ret
1:      cmpl $0, HAS_WRGSBASE(%rbx)       // the child: no stack of its own yet
        je 2f
        wrgsbase %rbx
        jmp 3f
2:      movq %rbx, %rsi
        movl $0x1001, %edi                // ARCH_SET_GS
        movl $158, %eax
        syscall
3:      movq %rbx, %rdi
        leaq STACK_TOP(%rbx), %rsp
        call rt_child
        jmp rt_exit

// long rt_exec(long nr, long args[6], const uint64_t* mask). A signal that comes in the window, where the mask is the
// program's already, takes the thread to rt_exec_aborted.
        .globl rt_exec, rt_exec_window, rt_exec_window_end, rt_exec_aborted
rt_exec:
        pushq %rbx
        pushq %rbp
        movq %rdi, %rbx
        movq %rsi, %rbp
        movq %rdx, %rsi
        movl $2, %edi                     // SIG_SETMASK
        movl $0, %edx
        movl $8, %r10d
        movl $14, %eax
        syscall
rt_exec_window:
        movq %rbx, %rax
        movq 0(%rbp), %rdi
        movq 8(%rbp), %rsi
        movq 16(%rbp), %rdx
        movq 24(%rbp), %r10
        movq 32(%rbp), %r8
        syscall
rt_exec_window_end:
        popq %rbp
        popq %rbx
        ret
rt_exec_aborted:
        movq $-512, %rax
        jmp rt_exec_window_end

// void rt_exit_thread(ThreadBlock*, long status): nothing of the thread block is touched behind `dead`.
        .globl rt_exit_thread
rt_exit_thread:
        movq %rdi, %rdx
        movl %esi, %edi
        movl $60, %eax
        movq $1, DEAD(%rdx)
        syscall
        ud2

// void rt_sigreturn(uint64_t rsp): returns to where the frame says; to its caller only if a signal is kept, which rt_sigreturn_now does not
// look for.
        .globl rt_sigreturn, rt_sigreturn_window, rt_sigreturn_kept, rt_sigreturn_now, rt_restorer
rt_sigreturn:
        pushq %rbx
        movq %rsp, %rbx
rt_sigreturn_window:
        cmpl $0, %gs:SIGNAL_PENDING
        jne rt_sigreturn_kept
        movq %rdi, %rsp
        movl $15, %eax
        syscall
        ud2
rt_sigreturn_kept:
        movq %rbx, %rsp
        popq %rbx
        ret
rt_sigreturn_now:
        movq %rdi, %rsp
rt_restorer:
        movl $15, %eax
        syscall
        ud2

        .section .note.GNU-stack, "", @progbits
