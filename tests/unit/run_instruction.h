// Runs one instruction of any kind on a state of its own, in this process, and says how that ended.
//
// The code stands at a fixed place, as do the registers before and behind it. Behind the instruction the code jumps back. An
// instruction that goes elsewhere (ret, a call) ends in a fault of the fetch, which is told from one of the data.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::x86 {

struct State {
  uint64_t gpr[16];
  uint64_t flags;
  uint64_t mask[8];
  alignas(64) uint8_t vec[32][64];
};
static_assert(offsetof(State, flags) == 128 && offsetof(State, mask) == 136 && offsetof(State, vec) == 256);

}  // namespace weir::x86

extern "C" {
weir::x86::State trial_before, trial_after;
uint64_t trial_stack, trial_code;
bool trial_avx512;
void trial_run();
void trial_back();
}

// Loads the state before, jumps to the instruction, and stores the state behind it.
asm(R"(
  .intel_syntax noprefix
  .text
  .globl trial_run, trial_back
trial_run:
  push rbx; push rbp; push r12; push r13; push r14; push r15
  mov [rip + trial_stack], rsp
  cmp byte ptr [rip + trial_avx512], 0
  je 1f
  lea rax, [rip + trial_before]
  .irp n, 0,1,2,3,4,5,6,7
    kmovq k\n, [rax + 136 + 8 * \n]
  .endr
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 zmm\n, [rax + 256 + 64 * \n]
  .endr
1:
  push qword ptr [rip + trial_before + 128]
  popfq
  mov rax, [rip + trial_before]
  mov rcx, [rip + trial_before + 8]
  mov rdx, [rip + trial_before + 16]
  mov rbx, [rip + trial_before + 24]
  mov rsp, [rip + trial_before + 32]
  mov rbp, [rip + trial_before + 40]
  mov rsi, [rip + trial_before + 48]
  mov rdi, [rip + trial_before + 56]
  .irp n, 8,9,10,11,12,13,14,15
    mov r\n, [rip + trial_before + 8 * \n]
  .endr
  jmp qword ptr [rip + trial_code]
trial_back:
  mov [rip + trial_after], rax
  mov [rip + trial_after + 8], rcx
  mov [rip + trial_after + 16], rdx
  mov [rip + trial_after + 24], rbx
  mov [rip + trial_after + 32], rsp
  mov [rip + trial_after + 40], rbp
  mov [rip + trial_after + 48], rsi
  mov [rip + trial_after + 56], rdi
  .irp n, 8,9,10,11,12,13,14,15
    mov [rip + trial_after + 8 * \n], r\n
  .endr
  mov rsp, [rip + trial_stack]
  pushfq
  pop qword ptr [rip + trial_after + 128]
  cld
  cmp byte ptr [rip + trial_avx512], 0
  je 2f
  lea rax, [rip + trial_after]
  .irp n, 0,1,2,3,4,5,6,7
    kmovq [rax + 136 + 8 * \n], k\n
  .endr
  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    vmovdqu64 [rax + 256 + 64 * \n], zmm\n
  .endr
2:
  fninit
  pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx
  ret
  .att_syntax prefix
)");

namespace weir::x86 {

enum class Ended : uint8_t {
  Behind,     // the instruction was executed
  Elsewhere,  // … and went to an address that cannot be fetched from
  PageFault,  // at Outcome::address
  Otherwise,  // another exception: privileged, not aligned, divided by zero …
  Unknown,    // to this processor
};

struct Outcome {
  Ended ended;
  uint64_t address = 0;
  bool is_write = false;
};

// The code page, the signals; `trial_*` belong to it.
class InstructionRunner {
 public:
  static constexpr uint64_t code_page = 0x71000000;

  // False where the code page is not free.
  bool set_up() {
    trial_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    void* page = reinterpret_cast<void*>(code_page);
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0) != page) return false;
    static std::byte stack[1 << 16];
    stack_t alternate{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO;
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigaction(signal, &action, nullptr);
    trial_code = code_page;
    return true;
  }

  void load(std::span<const std::byte> bytes) {
    uint8_t code[32] = {};
    memcpy(code, bytes.data(), bytes.size());
    // jmp [rip+0]; the address
    uint8_t* end = code + bytes.size();
    end[0] = 0xff, end[1] = 0x25;
    auto back = reinterpret_cast<uint64_t>(&trial_back);
    memcpy(end + 6, &back, 8);
    memcpy(reinterpret_cast<void*>(code_page), code, sizeof code);
  }

  Outcome run(const State& before) {
    trial_before = before;
    if (sigsetjmp(landing(), 0) == 0) {
      outcome() = {Ended::Behind};
      trial_run();
    }
    // What it may have changed: how floating point works, for one.
    constexpr unsigned usual = 0x1f80;
    asm volatile("fninit; ldmxcsr %0; cld" : : "m"(usual));
    return outcome();
  }

 private:
  static sigjmp_buf& landing() {
    static sigjmp_buf buffer;
    return buffer;
  }
  static Outcome& outcome() {
    static Outcome value;
    return value;
  }

  static void on_signal(int signal, siginfo_t* info, void* context) {
    constexpr greg_t page_fault = 14, write_bit = 2, fetch_bit = 16;
    const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    greg_t error = registers[REG_ERR];
    auto address = reinterpret_cast<uint64_t>(info->si_addr);
    if (signal == SIGILL) outcome() = {Ended::Unknown};
    else if (signal != SIGSEGV || registers[REG_TRAPNO] != page_fault) outcome() = {Ended::Otherwise};
    else if (error & fetch_bit) outcome() = {Ended::Elsewhere, address};
    else outcome() = {Ended::PageFault, address, (error & write_bit) != 0};
    siglongjmp(landing(), 1);
  }
};

}  // namespace weir::x86
