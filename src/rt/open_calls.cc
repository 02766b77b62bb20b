// Named functions: how their calls begin and end (rt/open_calls.h).
//
// What can end a call without a return moves the stack pointer in a way that translated code tells. Such a move may as well be a switch to another
// stack, of a coroutine, from which control comes back. The two look the same: the stack pointer goes up. So calls that it has passed are
// *suspended*, with the place where it was. They go on when it comes back to there; they have been left when another call begins where one
// of them had its return address, or the thread ends.
//
//   a call begins at rsp            suspended calls there were left; calls there that go on have ended in a jump to this function (a tail call)
//   control returns, to rsp         calls with their return address below: returned, if theirs is at rsp - 8, and names this place; left otherwise
//   the stack pointer moves, to     calls with their return address below `to` are suspended; those that were, near `to`, go on
//
// Down it moves to another stack as well, or for an array (alloca): calls above stay awaited, but it is noted where they were left. When a later
// move passes them, to a third stack, that is the place where they go on.
//
// Signal handlers on a stack above that of what they interrupt suspend it in the same way.

#include "rt/runtime.h"

namespace weir::rt {

namespace {

constexpr uint64_t never = ~uint64_t{0};
// Behind a switch of stacks the stack pointer is where it was, less what the function that switched has popped meanwhile.
constexpr uint64_t switch_slack = 1024;

class Calls {
 public:
  explicit Calls(ThreadBlock* tb)
      : tb_(tb), s_(*reinterpret_cast<OpenCalls*>(reinterpret_cast<char*>(tb) + open_calls_offset)) {}

  // (What a thread without such calls has there is never touched: it would be a page.)
  bool is_empty() const { return tb_->awaited.moved == never; }
  uint64_t& interrupted(uint32_t index) { return s_.interrupted[index]; }

  // False: there is no room.
  bool open(const OpenCall& call) {
    if (s_.count == max_open_calls) drop_suspended();
    if (s_.count == max_open_calls) return s_.lost++, false;
    uint32_t i = first_below(call.rsp);
    for (uint32_t k = s_.count++; k > i; k--) s_.calls[k] = s_.calls[k - 1];
    s_.calls[i] = call;
    return true;
  }

  // What is known to be over when a call begins: what control has left without a trace, and what stood in its place.
  void settle_before(uint64_t rsp, uint64_t return_address) {
    for (uint32_t i = s_.count; i-- > 0 && s_.calls[i].rsp <= rsp;) {
      const OpenCall& c = s_.calls[i];
      bool is_over = c.rsp == rsp ? c.is_suspended || c.return_address != return_address : !c.is_suspended;
      if (is_over) leave(i);
    }
  }

  void settle_behind(uint64_t rsp, uint64_t site) {
    for (uint32_t i = s_.count; i-- > 0 && s_.calls[i].rsp < rsp;) {
      const OpenCall& c = s_.calls[i];
      if (c.is_suspended) continue;
      if (c.rsp + 8 == rsp && c.return_address == site) end(i);
      else leave(i);
    }
  }

  void move(uint64_t from, uint64_t to) {
    for (uint32_t i = 0; i < s_.count; i++) {
      OpenCall& c = s_.calls[i];
      if (c.is_suspended || (c.rsp >= to && c.rsp < from)) continue;
      if (!c.left_at && (c.rsp < to || to < from)) c.left_at = from;
      if (c.rsp < to) c.is_suspended = 1, s_.suspended++;
    }
    for (uint32_t i = 0; i < s_.count && s_.calls[i].rsp >= to; i++)
      if (uint64_t left_at = s_.calls[i].left_at; left_at && left_at <= to && to - left_at <= switch_slack) go_on(i);
  }

  // Those that were suspended there go on, as far as they are not below `to`.
  void come_back(uint64_t left_at, uint64_t to) {
    for (uint32_t i = 0; i < s_.count && s_.calls[i].rsp >= to; i++)
      if (s_.calls[i].is_suspended && s_.calls[i].left_at == left_at) go_on(i);
  }

  // Those of a handler that has ended, on a stack of its own.
  void leave_handler(const Interrupted& handler) {
    for (uint32_t i = s_.count; i-- > 0;)
      if (s_.calls[i].rsp >= handler.stack && s_.calls[i].rsp < handler.frame) leave(i);
  }

  // The stack pointer is `rsp`.
  void await(uint64_t rsp) {
    uint32_t i = s_.count;
    while (i > 0 && (s_.calls[i - 1].is_suspended || s_.calls[i - 1].rsp < rsp)) i--;
    tb_->awaited.returned = i ? s_.calls[i - 1].rsp + 8 : never;
    tb_->awaited.moved = s_.count ? 0 : never;
    if (i && s_.calls[i - 1].left_at < rsp) s_.calls[i - 1].left_at = 0;  // control is above that place again
  }

 private:
  // The first call with a lower address; of several at one, the later one comes behind.
  uint32_t first_below(uint64_t rsp) const {
    uint32_t i = s_.count;
    while (i > 0 && s_.calls[i - 1].rsp < rsp) i--;
    return i;
  }
  OpenCall take(uint32_t i) {
    OpenCall call = s_.calls[i];
    s_.suspended -= call.is_suspended;
    s_.count--;
    for (; i < s_.count; i++) s_.calls[i] = s_.calls[i + 1];
    return call;
  }
  void end(uint32_t i) {
    OpenCall call = take(i);
    call_hook(tb_, &Hooks::call_returns, &call);
  }
  void leave(uint32_t i) {
    OpenCall call = take(i);
    call_hook(tb_, &Hooks::call_left, &call);
  }
  void go_on(uint32_t i) {
    s_.suspended -= s_.calls[i].is_suspended;
    s_.calls[i].left_at = s_.calls[i].is_suspended = 0;
  }
  void drop_suspended() {
    for (uint32_t i = s_.count; i-- > 0;)
      if (s_.calls[i].is_suspended) leave(i);
  }

  ThreadBlock* tb_;
  OpenCalls& s_;
};

uint64_t word_at(uint64_t at) { return *reinterpret_cast<const uint64_t*>(at); }

}  // namespace

// The return address is on top of the stack. (Its place was written to by the call.)
void begin_call(ThreadBlock* tb, uint32_t wants, uint32_t number) {
  uint64_t rsp = tb->regs.gpr[4];
  OpenCall call{rsp, word_at(rsp), 0, 0, number, 0, 0};
  Calls calls(tb);
  if (!calls.is_empty()) calls.settle_before(rsp, call.return_address);
  bool is_done = tb->hooks && tb->hooks->call_begins && tb->hooks->call_begins(tb, &call);
  if (is_done && wants & MayReplace) tb->regs.pc -= replaced_entry;
  else if (wants & WantsReturn) calls.open(call);
  calls.await(rsp);
}

void end_calls(ThreadBlock* tb, uint64_t site) {
  Calls calls(tb);
  calls.settle_behind(tb->regs.gpr[4], site);
  calls.await(tb->regs.gpr[4]);
}

// (Perhaps from a handler on the alternate stack, to the stack that it has interrupted.)
void move_stack(ThreadBlock* tb) {
  uint64_t from = tb->awaited.moved_from, to = tb->regs.gpr[4];
  Calls calls(tb);
  for (uint32_t n = 0; n < interrupted_count; n++) {
    const Interrupted& handler = tb->interrupted[n];
    if (!handler.frame || !handler.stack || from < handler.stack || from >= handler.frame) continue;
    calls.leave_handler(handler);
    if (uint64_t rsp = calls.interrupted(n); rsp && to >= rsp) calls.come_back(rsp, to);
  }
  calls.move(from, to);
  calls.await(to);
}

void interrupt_calls(ThreadBlock* tb, uint32_t index) {
  Calls calls(tb);
  if (calls.is_empty()) return;
  const Interrupted& handler = tb->interrupted[index];
  uint64_t rsp = reinterpret_cast<const UContext*>(handler.frame)->rsp;
  calls.interrupted(index) = rsp;
  if (handler.frame > rsp) calls.move(rsp, handler.frame);
  calls.await(tb->regs.gpr[4]);
}

void resume_calls(ThreadBlock* tb, uint32_t index, uint64_t frame) {
  Calls calls(tb);
  if (calls.is_empty()) return;
  uint64_t rsp = reinterpret_cast<const UContext*>(frame)->rsp;
  if (index < interrupted_count && tb->interrupted[index].stack) calls.leave_handler(tb->interrupted[index]);
  calls.come_back(rsp, rsp);
  calls.move(frame, rsp);
  calls.await(rsp);
}

}  // namespace weir::rt
