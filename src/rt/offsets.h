// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 2
#define REGS 160
#define REGS_FLAGS 288
#define REGS_PC 296
#define DEAD 936
#define SIGNAL_PENDING 952
#define EXIT_MASK 968
#define EXIT_UNMASK 976
#define SIGNAL_STACK_TOP 11776
#define STACK_TOP 24064
#define HAS_WRGSBASE 988
