// What the parts of the runtime offer one another.
#pragma once

#include "rt/abi.h"
#include "rt/hooks.h"
#include "rt/sys.h"

namespace weir::rt {

// Posts the request that is in tb->request, and waits for the answer, which is there then.
void ask_as(ThreadBlock* tb, Request kind);
template <class T>
typename T::Answer ask(ThreadBlock* tb, const T& request) {
  to_words(request, tb->request.args);
  ask_as(tb, T::kind);
  return from_words<typename T::Answer>(tb->request.answer);
}
// Posts a request that has no answer.
void tell(ThreadBlock* tb, const ThreadEndRequest& request);
// Ends the process with one line on stderr.
[[noreturn]] void die(const char* why);

// All of them; returns the program's mask. (Under a seccomp filter: nothing is done.)
uint64_t block_signals(ThreadBlock* tb);
// When the runtime is left.
void unblock_signals(ThreadBlock* tb, uint64_t mask);
bool read_memory(const void* from, void* to, uint64_t size);  // false: not readable
bool write_memory(void* to, const void* from, uint64_t size);

// A system call that the runtime makes for the program.
inline int64_t own_call(ThreadBlock* tb, int64_t nr, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                        uint64_t e = 0, uint64_t f = 0) {
  call_hook(tb, &Hooks::kernel_begins);
  int64_t result = sys(nr, a, b, c, d, e, f);
  call_hook(tb, &Hooks::kernel_ends);
  return result;
}

// signals.cc
int64_t set_action(ThreadBlock* tb, int sig, uint64_t act, uint64_t old, uint64_t set_size);
void return_from_signal(ThreadBlock* tb);
void own_trap(ThreadBlock* tb);
bool give_trap_back(ThreadBlock* tb);
void take_trap_again(ThreadBlock* tb);
void guard_doors(ThreadBlock* tb, bool on);

// told_calls.cc: for tools that ask; nothing is done for others. The program's registers are in the thread block.
void begin_told_call(ThreadBlock* tb, uint64_t pc);  // behind its instruction
void end_told_call(ThreadBlock* tb, uint64_t pc);
// It was not made: a SIGSYS came instead.
void drop_call(ThreadBlock* tb, uint64_t pc, uint64_t rsp);
// A child will return from the call that its parent makes.
void pass_calls_on(const ThreadBlock* tb, ThreadBlock* child);
// The frame of a signal that is delivered.
void tell_frame(ThreadBlock* tb, int sig, UContext* uc);

// dispatch.cc
int64_t set_dispatch(ThreadBlock* tb, const uint64_t* a);
// Of the call before this address of the program.
bool is_allowed(const ThreadBlock* tb, uint64_t behind);
bool is_dispatched(ThreadBlock* tb, uint64_t inline_pc);

// open_calls.cc. Registers of the program are in tb->regs.
void begin_call(ThreadBlock* tb, uint32_t wants, uint32_t number);
// Control has come back to `site`; the stack pointer has moved.
void end_calls(ThreadBlock* tb, uint64_t site);
void move_stack(ThreadBlock* tb);
// A handler begins, and control goes on where its frame says: `index` as in Hooks::handler_ends.
void interrupt_calls(ThreadBlock* tb, uint32_t index);
void resume_calls(ThreadBlock* tb, uint32_t index, uint64_t frame);

extern "C" {
// execve with this signal mask; -ERESTARTSYS when a signal came before it.
int64_t rt_exec(int64_t nr, const uint64_t* args, const uint64_t* mask);
int64_t rt_clone(int64_t nr, const uint64_t* args, ThreadBlock* child);
[[noreturn]] void rt_exit_thread(ThreadBlock* tb, uint64_t status);
void rt_sigreturn(uint64_t rsp);
[[noreturn]] void rt_sigreturn_now(uint64_t rsp);
void rt_restorer();
[[noreturn]] void rt_go_native(uint64_t rsp, uint64_t pc);
void rt_signal_entry();
void rt_sent_back();
void rt_guarded_sent_back();
extern const char rt_exec_window[], rt_exec_window_end[], rt_exec_aborted[];
extern const char rt_probe_exit[], rt_probe_exit_end[], rt_light_exit[], rt_light_exit_end[];
extern const char rt_sigreturn_window[], rt_sigreturn_kept[], rt_kept[], rt_kept_end[];
extern const char rt_allowed[], rt_allowed_done[], rt_allowed_end[], rt_doors_begin[], rt_doors_end[], rt_enter[],
    rt_enter_end[];
extern const uint64_t rt_doors[], rt_guarded_doors[];
extern const char rt_guard_exit[], rt_guard_exit_end[];
extern const char rt_exit[], rt_exit_end[], rt_unmasked[], rt_unmasked_end[], rt_begin[], rt_end[];
}

}  // namespace weir::rt
