// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 4
#define REGS 192
#define REGS_FLAGS 320
#define REGS_PC 328
#define DEAD 968
#define SIGNAL_PENDING 984
#define EXIT_MASK 1000
#define EXIT_UNMASK 1008
#define SIGNAL_STACK_TOP 12352
#define STACK_TOP 24640
#define HAS_WRGSBASE 1020
#define EXIT_ID 56
#define ROUTINE_NOTHING 1
