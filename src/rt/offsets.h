// Offsets of ThreadBlock for the assembler; offsets_check in runtime.cc holds them to rt/abi.h.
#pragma once
#define ABI_VERSION 15
#define SAMPLER_VERSION 2
#define REGS 224
#define REGS_FLAGS 352
#define REGS_PC 360
#define DEAD 1064
#define SIGNAL_PENDING 1080
#define EXIT_MASK 1096
#define EXIT_UNMASK 1104
#define SIGNAL_STACK_TOP 19008
#define STACK_TOP 31296
#define HAS_WRGSBASE 1116
#define EXIT_ID 56
#define NO_ROUTINE 5
#define LIGHT_ROUTINES 4304
#define DOOR_REGISTERS 1296
#define ALLOWED_RETURN 1176
#define SENT_FROM 10592
#define GUARD_PC 0
#define GUARD_LOCKED 16
#define GUARD_CODE 24
#define GUARDED_SIZE 8
#define GUARDED_WAS 16
#define GUARDED_NEXT 24
