// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 6
#define REGS 224
#define REGS_FLAGS 352
#define REGS_PC 360
#define DEAD 1000
#define SIGNAL_PENDING 1016
#define EXIT_MASK 1032
#define EXIT_UNMASK 1040
#define SIGNAL_STACK_TOP 15424
#define STACK_TOP 27712
#define HAS_WRGSBASE 1052
#define EXIT_ID 56
#define ROUTINE_NOTHING 5
