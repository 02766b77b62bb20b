// One probe of operate.cc, or one of its parts out of line, while it is written.
#pragma once

#include "instrument/emitter.h"
#include "instrument/probe_state.h"
#include "x86/operands.h"

namespace weir::instrument {

class Lowering;

class Operations {
 public:
  Operations(Lowering& lowering, const ProbeState& state);

  // From the program to the probe: temporaries get registers, live flags are put away; and back.
  void begin(std::span<const Op> ops, x86::RegSet live);
  void end();
  void emit(std::span<const Op> ops);

 private:
  const Processor& processor() const;
  // A register for one operation, which nests in others.
  static constexpr uint32_t most_borrowed = 4;
  class Borrowed {
   public:
    explicit Borrowed(Operations& o);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    x86::Gpr reg;

   private:
    Operations& o_;
    ProbeState before_;
    uint32_t slot_;
    bool spilled_ = false;
  };

  struct Address {
    uint8_t base = x86::no_register, index = x86::no_register, scale = 1;
    int32_t disp = 0;
    Memory memory() const { return instrument::address(base, index, scale, disp); }
  };
  void lea(x86::Gpr t, const Address& a, bool cuts = false) { cuts ? e_.lea32(t, a.memory()) : e_.lea(t, a.memory()); }

  x86::Gpr temp(Temp t) const { return s_.temp[static_cast<int>(t)]; }
  Memory place(const Op& op) const {
    return Address{.base = temp(op.other), .disp = static_cast<int32_t>(op.value)}.memory();
  }
  const x86::MemoryOperand& operand_of(const Op& op) const;
  void want_target(bool& wants_flags);
  x86::Gpr take(bool& spilled);
  void exclude(x86::Gpr r);

  // Registers of the program, wherever they wait.
  uint32_t slot_of(x86::Gpr r) const;
  void get_register(x86::Gpr t, x86::Gpr r);
  x86::Gpr have_register(x86::Gpr t, x86::Gpr r);

  void operate(const Op& op);
  void set(x86::Gpr t, const Op& op);
  void add(x86::Gpr t, const Op& op);
  void arithmetic(Emitter::Arithmetic kind, x86::Gpr t, const Op& op);
  void and_mask(x86::Gpr t, uint64_t mask);
  void multiply(x86::Gpr t, const Op& op);
  void shift(Emitter::Shift kind, x86::Gpr t, const Op& op);
  void add_to_cell(uint32_t cell, const Op& op);
  void add_indexed(x86::Gpr index, const Op& op);
  void begin_record(x86::Gpr t, uint32_t size);

  void address(x86::Gpr t, const x86::MemoryOperand& o, uint8_t by);
  void get_address(x86::Gpr t, const x86::MemoryOperand& o);
  void get_count(x86::Gpr t, const x86::MemoryOperand& o);
  void get_direction(x86::Gpr r);
  void get_extent(x86::Gpr t, const x86::MemoryOperand& o);
  void get_state_size(x86::Gpr t);
  void get_selected(x86::Gpr t, const x86::MemoryOperand& o);
  void get_element(x86::Gpr t, const x86::MemoryOperand& o, uint32_t element);
  void get_target(x86::Gpr t);

  Lowering& l_;
  Emitter& e_;
  ProbeState s_;
  std::span<const std::byte> bytes_;  // of the instruction
  x86::MemoryOperands operands_;
  uint32_t borrowed_ = 0;
  x86::Gpr borrowed_regs_[most_borrowed] = {};  // RSP: it was a dead one
};

// How long what an operation becomes can be, with its part out of line.
uint32_t operation_bound(const Op& op);

}  // namespace weir::instrument
