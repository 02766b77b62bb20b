// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 1
#define REGS 160
#define REGS_FLAGS 288
#define REGS_PC 296
#define DEAD 536
#define SIGNAL_PENDING 552
#define EXIT_MASK 568
#define EXIT_UNMASK 576
#define SIGNAL_STACK_TOP 11392
#define STACK_TOP 23680
#define HAS_WRGSBASE 588
