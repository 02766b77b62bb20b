// Code that lowering has written is executed, here, from any registers. Included by one file of a test program.
#pragma once

#include <asm/prctl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lower_subject.h"

namespace weir::instrument {

// void weir_test_enter(Registers*, void* code): as a program that is at `code` with these registers; the code leaves through
// weir_test_leave, which keeps what it had.
extern "C" {
void weir_test_enter(rt::Registers* registers, const void* code);
extern const char weir_test_leave[];
uint64_t weir_test_host_rsp, weir_test_code;
rt::Registers weir_test_result;
}
asm(R"(
        .text
weir_test_enter:
        push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
        mov %rsp, weir_test_host_rsp(%rip)
        mov %rsi, weir_test_code(%rip)
        pushq 128(%rdi); popfq
        mov %rdi, %rsp
        mov 0(%rsp), %rax; mov 8(%rsp), %rcx; mov 16(%rsp), %rdx; mov 24(%rsp), %rbx
        mov 40(%rsp), %rbp; mov 48(%rsp), %rsi; mov 56(%rsp), %rdi; mov 64(%rsp), %r8
        mov 72(%rsp), %r9; mov 80(%rsp), %r10; mov 88(%rsp), %r11; mov 96(%rsp), %r12
        mov 104(%rsp), %r13; mov 112(%rsp), %r14; mov 120(%rsp), %r15; mov 32(%rsp), %rsp
        jmp *weir_test_code(%rip)
weir_test_leave:
        mov %rsp, 32+weir_test_result(%rip)
        lea 144+weir_test_result(%rip), %rsp
        mov %rax, -144(%rsp); mov %rcx, -136(%rsp); mov %rdx, -128(%rsp); mov %rbx, -120(%rsp)
        mov %rbp, -104(%rsp); mov %rsi, -96(%rsp); mov %rdi, -88(%rsp); mov %r8, -80(%rsp)
        mov %r9, -72(%rsp); mov %r10, -64(%rsp); mov %r11, -56(%rsp); mov %r12, -48(%rsp)
        mov %r13, -40(%rsp); mov %r14, -32(%rsp); mov %r15, -24(%rsp)
        lea -8(%rsp), %rsp
        pushfq
        cld
        mov weir_test_host_rsp(%rip), %rsp
        pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
        ret
)");

constexpr uint32_t cells = 64, all_cells = 1 << 16;
constexpr uint64_t flag_bits[6] = {1, 4, 16, 64, 128, 2048};  // CF PF AF ZF SF OF, as x86::Flag has them
constexpr uint64_t DF_bit = 1024;

// A thread block, some memory, and code that leaves to weir_test_leave and has a routine to call.
struct Machine {
  rt::ThreadBlock* block;
  uint64_t* counters;
  std::byte* code;
  uint64_t memory[cells];
  uint64_t stack[64];

  Machine() {
    auto map = [](size_t size) {
      return static_cast<char*>(
          mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    };
    char* p = map(rt::counters_offset + 8 * all_cells);
    block = reinterpret_cast<rt::ThreadBlock*>(p);
    counters = reinterpret_cast<uint64_t*>(p + rt::counters_offset);
    code = reinterpret_cast<std::byte*>(map(room + 4096));
    Emitter e({leave(), 256}, {});
    e.jmp(relative(6));  // behind it
    e.quad(reinterpret_cast<uint64_t>(weir_test_leave));
    block->enter_link = reinterpret_cast<uint64_t>(leave());
    block->enter_routine = block->enter_probe = reinterpret_cast<uint64_t>(leave() + e.offset());
    e.mov(thread(offsetof(rt::ThreadBlock, regs)), x86::RAX);  // as the runtime's doors do
    e.mov(x86::RAX, thread(offsetof(rt::ThreadBlock, target)));
    e.lea(x86::RAX, at(x86::RAX, 1));
    e.mov(thread(offsetof(rt::ThreadBlock, target)), x86::RAX);  // counts the calls
    e.mov(x86::RAX, thread(offsetof(rt::ThreadBlock, regs)));
    e.jmp(x86::RCX);
    use_gs(block);
  }
  std::byte* leave() const { return code + room; }
  // To `code`; what leaves the function leaves.
  Lowered lower(const Subjects& s, const Plan& plan) const {
    return lowered(s, plan, {code, room}, {reinterpret_cast<uint64_t>(code)},
                   [&](AppPc) { return CachePc{reinterpret_cast<uint64_t>(leave())}; });
  }
  static void use_gs(const void* base) { syscall(SYS_arch_prctl, ARCH_SET_GS, base); }

  static constexpr size_t room = 4 << 20;
};

inline int64_t random_value(Random& random) {
  switch (random() % 6) {
    case 0: return 1;
    case 1: return int64_t(random() % 256) - 128;
    case 2: return int32_t(random());
    case 3: return int64_t(random());
    case 4: return int64_t{1} << random() % 64;
    default: return -(int64_t{1} << random() % 63);
  }
}

inline Op random_op(Random& random, const uint64_t* memory) {
  Op op{.kind = static_cast<Op::Kind>(random() % (Op::Call + 1)),
        .temp = Temp(random() % 2),
        .other = Temp(random() % 2),
        .reg = x86::Gpr(random() % 16),
        .count = uint8_t(random() % 6),
        .counter = {uint32_t(random() % cells)},
        .value = random_value(random)};
  if (op.kind == Op::Load || op.kind == Op::Store) op.value = int64_t(random() % 8) * 8;
  if (op.kind == Op::Set && random() % 2) op.value = reinterpret_cast<int64_t>(memory + random() % cells);
  if (op.kind == Op::SkipUnless && random() % 2) op.value = 7;
  if (op.kind == Op::Set && random() % 3 == 0) op.value = 7;
  if (op.kind == Op::Call && random() % 2) op.kind = Op::AddCounter;
  return op;
}

}  // namespace weir::instrument
