// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 1
#define REGS 152
#define REGS_FLAGS 280
#define REGS_PC 288
#define DEAD 528
#define SIGNAL_PENDING 544
#define EXIT_MASK 560
#define EXIT_UNMASK 568
#define SIGNAL_STACK_TOP 11392
#define STACK_TOP 23680
