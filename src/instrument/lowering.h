// The state of one lowering, shared by its parts: blocks (lower.cc), transfers inside the function (transfer.cc), operands that are
// rewritten (operand.cc), probes (probe.cc, frame.cc, clock.cc), and the placement, which writes what leads out of the function.
#pragma once

#include "instrument/clock.h"
#include "instrument/emitter.h"
#include "instrument/inline_code.h"
#include "instrument/lower.h"
#include "instrument/placement.h"
#include "instrument/probe_state.h"
#include "rt/abi.h"

namespace weir::instrument {

inline constexpr uint32_t gs_app = offsetof(rt::ThreadBlock, app_gs);  // the base of the program's %gs
inline constexpr uint32_t gs_rcx = offsetof(rt::ThreadBlock, rcx);
inline constexpr uint32_t gs_spill(int n) { return offsetof(rt::ThreadBlock, spill) + 8 * n; }
inline constexpr Xmm clock_register{31};  // where the virtual clock is in one
inline constexpr uint32_t gs_counter(Counter c) { return rt::counters_offset + 8 * c.index; }
// The clock takes turns over its cells: an addition would wait for the one before it in the same cell.
inline constexpr uint32_t gs_clock(AppPc at) {
  return gs_counter({static_cast<uint32_t>(at.value >> 2) % Counters::clock_cells});
}

// Sizes of the longest forms, for bounds.
inline constexpr uint32_t restore_size = 9, transfer_bound = 64, special_bound = 128, tail_bound = 96, probe_op_bound = 48;

// Does the instruction have an operand [rip + disp] that code at `base`, and some way behind it, cannot have?
inline bool is_out_of_reach(const x86::Insn& insn, CachePc base) {
  constexpr int64_t reach = (int64_t{2} << 30) - (64 << 20);
  int64_t distance = insn.target - AppPc{base.value};
  return (distance > reach || distance < -reach) && insn.shape->rip_relative;
}
// How many of its instructions have one?
uint32_t count_far_operands(const x86::Function& function, CachePc base);

// A probe at an instruction.
struct Placed {
  uint32_t insn;
  bool after;
  const Insertion* insertion;
};
// Code that is emitted behind the function: what a call goes through, what a miss does, what a link waits at.
struct Tail {
  enum Kind : uint8_t {
    CallThunk,  // of the code cache,
    IndirectCallThunk,
    IndirectMiss,
    ReturnMiss,
    LinkStub,  // … up to here
    TableEntry,
    Edge,
    Routine,
    Arrival,
    Return,  // of a function that the tool has replaced, from its begin: the program's rcx is in its slot
    Own,     // of the tool's inline code
    Cold,    // operations of a probe
  };
  Kind kind;
  uint32_t from;  // offset of the 32-bit displacement that leads here
  const x86::Insn* insn = nullptr;
  AppPc target = {};
  uint32_t number = 0;  // bytes that a return pops; a block; an exit; a routine; Own: the tool's; a cold part
  uint32_t argument = 0, second = 0;  // Routine: A, B; Arrival: the callee; Own: the tool's
  uint32_t back = 0;                  // where to go on
  x86::Gpr t = x86::RAX, u = x86::RAX;
  bool rcx_in_slot = false, rax_in_slot = false;  // of the probe: the program's is in gs_rcx, gs_spill(2)
  Version version = 0;                            // LinkStub: of the target
};
struct Fixup {
  uint32_t offset;
  x86::BlockId block;
  bool is_short;
};

// A number that an instruction reads, behind the code.
struct Literal {
  uint64_t value;
  uint32_t displacement;  // offset of the instruction's
};

struct Lowered::Scratch {
  std::vector<uint32_t> body, bound;
  std::vector<Placed> placed;
  std::vector<const Insertion*> edges, arrivals;
  std::vector<Fixup> fixups;
  std::vector<Tail> tails;
  std::vector<Literal> literals;
  std::vector<ColdPart> cold_parts;
};
Lowered::Scratch& scratch_of(Lowered& lowered);
// Registers that a probe reads.
uint16_t registers_read(std::span<const Op> ops);

class Lowering {
 public:
  Lowering(const Input& in, Lowered& out);
  void run();

  // ---- For the tool's inline code, in the probe that is being emitted (frame.cc) ----
  Emitter& emitter() { return e_; }
  bool has_register_clock() const { return register_clock_; }
  // u = the clock (flags are written where it is in no register).
  void read_clock(x86::Gpr u);
  // How much of the program's state is kept: everything; all but flags; the same, quickly, for the light routines.
  enum class Door : uint8_t { Routine, Probe, Light };
  void call_routine(Door door, uint32_t routine, uint32_t a, uint32_t b);
  void set_argument(uint32_t n, uint32_t value);
  void set_argument(uint32_t n, x86::Gpr value);
  void go_through(Door door, uint32_t routine);
  // A part that stands behind the function, to which the displacement that ends here leads. It finds registers as they are here, t and u among them.
  // The part goes back to here, or to where ends_cold() is called with the number that this returns.
  size_t leads_to_cold(uint32_t number, uint32_t argument, x86::Gpr t, x86::Gpr u, uint32_t second = 0);
  void ends_cold(size_t part) { tails_[part].back = e_.offset(); }
  void jump_back(const Tail& cold) { e_.jmp_to(cold.back); }
  // In a cold part: rax, where it is not kept already.
  void keep_rax(const Tail& cold);
  void take_rax_back(const Tail& cold);
  // Where the next frame goes; the function with this counter, or whose number is in a register, has one frame less (ZF: none any more); the
  // frame below t is taken off.
  void load_top(x86::Gpr t);
  void leave_function(Counter callee);
  void leave_function(x86::Gpr callee);
  void take_off(x86::Gpr t);

  // ---- For the placement ----
  const Input& input() const { return in_; }
  const Processor& processor() const { return placement_.facts().processor; }
  Lowered& result() { return out_; }
  // From here on. What the mark before says already is not said again.
  void mark(Mark::Kind kind, AppPc app, uint8_t restore = 0, uint32_t resume = ~0u, uint16_t spilled = 0) {
    uint32_t offset = e_.offset(), app_offset = static_cast<uint32_t>(app - f_.bounds.begin);
    if (kind == Mark::Run && !out_.marks.empty()) {
      const Mark& last = out_.marks.back();
      if (last.kind == Mark::Run && last.app - last.offset == app_offset - offset) return;
    }
    out_.marks.push_back({offset, app_offset, resume == ~0u ? offset : resume, kind, restore, spilled});
  }
  // The instructions as they are, but for what they name; rax_ is noted where that is wanted.
  void copy(std::span<const x86::Insn> insns, std::span<const std::byte> bytes, bool wants_rax = false);
  std::span<const std::byte> bytes_of(const x86::Insn& insn) { return in_.code(insn.pc, insn.shape->length); }
  bool has_far_operand(const x86::Insn& insn) const { return has_far_operands_ && is_out_of_reach(insn, in_.base); }
  // For Placement::tail().
  void put_off(const Tail& tail) { tails_.push_back(tail); }
  // A direct jump out of the function.
  void jump_out(AppPc target);

 private:
  friend class Operations;

  // lower.cc
  void place_probes();
  void emit_entry();
  void emit_block(x86::BlockId b);
  void emit_block_end(x86::BlockId b, const x86::Insn& last, std::span<const std::byte> bytes);
  void fall_through(x86::BlockId b, AppPc next);
  void resolve_fixups();

  // transfer.cc
  bool is_surely_near(x86::BlockId from, x86::BlockId to) const;
  void jump_block(x86::BlockId target, x86::BlockId from);
  void branch(x86::BlockId b, const x86::Insn& insn, std::span<const std::byte> bytes);
  void system_call(x86::BlockId b, const x86::Insn& insn);
  void return_site(x86::BlockId b, AppPc address);
  void emit_tail(const Tail& tail);

  // probe.cc
  void probe(std::span<const Op> ops, x86::RegSet live, AppPc app, bool rcx_in_slot = false);
  void arrive(x86::BlockId to, AppPc address);
  void call_with_temps(const Op& op, x86::Gpr a, x86::Gpr b, bool flags_free);

  // operate.cc
  void operate(std::span<const Op> ops, x86::RegSet live, AppPc app);
  void leads_to_cold(uint32_t from, const ColdPart& part);
  void emit_cold_part(const Tail& tail);

  // frame.cc
  void frame_op(const Op& op, x86::Gpr t, x86::Gpr u, bool flags_free);
  void compare_chain(x86::Gpr t, x86::Gpr u, int32_t end);
  void push_frame(const Op& op, x86::Gpr t, x86::Gpr u);
  void arrive_by_tail_call(const Tail& tail);
  int8_t frame_size() const { return static_cast<int8_t>(inline_code_->frame_size()); }
  bool keeps_flags(const Op& op) const;
  bool ends_a_call(const Op& op) const;
  void add_frame_tail(Tail::Kind kind, uint32_t from, uint32_t argument, uint32_t back, x86::Gpr t, x86::Gpr u);
  void emit_frame_tail(const Tail& tail);
  void begin_call(const Op& op);

  // clock.cc
  void advance_clock(int64_t by);
  void take_vector31();
  void give_vector31_back();
  void lend_clock_register(std::span<const x86::Insn> insns, std::span<const std::byte> bytes, bool wants_rax);
  void emit_literals();

  // operand.cc
  bool must_rewrite(const x86::Insn& insn) const { return (insn.shape->uses_gs && takes_gs_) || has_far_operand(insn); }
  void rewrite_operand(const x86::Insn& insn, std::span<const std::byte> bytes);
  void gs_register(const x86::Insn& insn, std::span<const std::byte> bytes);

  bool is_live(x86::BlockId b, x86::Gpr r) const { return live_.live_in[b].gpr >> r & 1; }

  const Input& in_;
  Lowered& out_;
  const x86::Function& f_;
  const x86::Liveness& live_;
  Placement& placement_;
  Emitter e_;
  Lowered::Scratch& scratch_;
  std::vector<uint32_t>& body_;   // per block: offset of its body, ~0 while unknown
  std::vector<uint32_t>& bound_;  // per block: an upper bound of the offset of its end, relative to the first
  std::vector<Placed>& placed_;   // by instruction
  std::vector<const Insertion*>& edges_;
  std::vector<const Insertion*>& arrivals_;  // see arrive()
  std::vector<Fixup>& fixups_;
  std::vector<Tail>& tails_;
  std::vector<Literal>& literals_;
  std::vector<ColdPart>& cold_parts_;
  const InlineCode* const inline_code_;
  const bool register_clock_, takes_gs_, knows_distances_, has_table_, has_far_operands_;
  const x86::Insn* insn_ = nullptr;                 // that the probe which is being emitted stands before; null: none
  int64_t rax_ = -1;                                // the system call number, where it is known
  bool rcx_in_slot_ = false, rax_in_slot_ = false;  // of the program, in the probe that is being emitted
};

}  // namespace weir::instrument
