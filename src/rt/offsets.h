// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 3
#define REGS 176
#define REGS_FLAGS 304
#define REGS_PC 312
#define DEAD 952
#define SIGNAL_PENDING 968
#define EXIT_MASK 984
#define EXIT_UNMASK 992
#define SIGNAL_STACK_TOP 11776
#define STACK_TOP 24064
#define HAS_WRGSBASE 1004
