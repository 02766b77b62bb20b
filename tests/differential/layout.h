// What the generator of sequences and the program that runs them agree on. The state that a sequence begins with is random,
// but some registers are pointers into memory and some are small, so that most sequences do not fault at once.
#pragma once

// Where memory is, natively and under Weir: a low area for 32-bit addresses, a high one, and those of %fs, %gs and the stack.
// Pointers are near the middle. A page that cannot be touched is on both sides of each.
#define LOW_AREA 0x20000000
#define HIGH_AREA 0x051070000000
#define FS_AREA 0x051071000000
#define GS_AREA 0x051072000000
#define STACK_AREA 0x051073000000
#define BIG_AREA 0x4000    // the first two
#define SMALL_AREA 0x2000  // the others

// Where the code is: a program at a low address, or at a high one.
#define LOW_CODE 0x1b340000
#define HIGH_CODE 0x051058000000
// The rest of a low program begins, and the code cache of one ends, here.
#define LOW_PROGRAM 0x400000
#define LOW_CACHE_END 0x70000000

// Registers by number, rax rcx rdx rbx rsp rbp rsi rdi r8 …
#define HIGH_POINTERS (1 << 3 | 1 << 5 | 1 << 6 | 1 << 12 | 1 << 15)
#define LOW_POINTERS (1 << 7 | 1 << 9 | 1 << 13)
#define SMALL_NUMBERS (1 << 1 | 1 << 8 | 1 << 14)
// Vector registers with small numbers in 64-bit elements: 4 to 7 and 20 to 23.
#define HAS_SMALL_ELEMENTS(vector) (((vector) & 12) == 4)
// In these sequences x87 exceptions are not masked.
#define IS_X87_UNMASKED(sequence) ((sequence) % 16 == 5)

#ifndef __ASSEMBLER__
// What is live before an instruction, for all instructions by their offset: a probe may leave anything elsewhere at a fault.
struct Live {
  unsigned offset;
  unsigned short registers;
  unsigned short flags;  // as in rflags
};
#endif
