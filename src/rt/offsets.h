// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 2
#define REGS 160
#define REGS_FLAGS 288
#define REGS_PC 296
#define DEAD 984
#define SIGNAL_PENDING 1000
#define EXIT_MASK 1016
#define EXIT_UNMASK 1024
#define SIGNAL_STACK_TOP 11840
#define STACK_TOP 24128
#define HAS_WRGSBASE 1036
