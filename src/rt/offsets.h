// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 7
#define REGS 224
#define REGS_FLAGS 352
#define REGS_PC 360
#define DEAD 1040
#define SIGNAL_PENDING 1056
#define EXIT_MASK 1072
#define EXIT_UNMASK 1080
#define SIGNAL_STACK_TOP 15488
#define STACK_TOP 27776
#define HAS_WRGSBASE 1092
#define EXIT_ID 56
#define ROUTINE_NOTHING 5
