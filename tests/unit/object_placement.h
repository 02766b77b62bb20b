// A test double of the second placement: code for an object file. Calls, returns and jumps are the program's own, a thread's memory is
// thread-local storage (%fs), and what is named outside of the code gets a relocation.
#pragma once

#include <vector>

#include "instrument/lowering.h"
#include "instrument/placement.h"

namespace weir::instrument {

struct Relocation {
  enum Kind : uint8_t {
    Address,  // of the program: address - `end`, in the place of the displacement
    Door,     // of the runtime, by its offset in the thread block: the same
    Thread,   // where the thread has what its thread block, or what is behind it, has at this offset: from %fs
  };
  Kind kind;
  uint32_t offset;  // of the 32 bits to complete
  uint32_t end;     // that the distance counts from
  uint64_t target;
};

class ObjectPlacement : public Placement {
 public:
  // Plain x86-64: nobody knows where an object file will run.
  static inline const Processor plain;
  ObjectPlacement() : Placement({.processor = plain}) {}

  void begin(Lowering& code) override {
    relocations_.clear(), places_.clear();
    code.emitter().reach_thread(fs, places_);
  }
  void call(Lowering& code, const x86::Insn& insn) override {
    uint32_t displacement = code.emitter().call();
    names(code, displacement, displacement + 4, insn.target);
  }
  void indirect_call(Lowering& code, const x86::Insn& insn, Bytes bytes) override { copy(code, insn, bytes); }
  void indirect_jump(Lowering& code, const x86::Insn& insn, Bytes bytes) override { copy(code, insn, bytes); }
  void return_(Lowering& code, const x86::Insn& insn, Bytes bytes) override { copy(code, insn, bytes); }
  void far_return(Lowering& code, const x86::Insn& insn, Bytes bytes) override { copy(code, insn, bytes); }
  void system_call(Lowering& code, const x86::Insn&, int64_t, bool) override { code.emitter().syscall(); }
  void leads_out(Lowering& code, uint32_t displacement, AppPc target) override {
    names(code, displacement, displacement + 4, target);
  }
  void names(Lowering&, uint32_t displacement, uint32_t end, AppPc target) override {
    relocations_.push_back({Relocation::Address, displacement, end, target.value});
  }
  void enter(Lowering& code, uint32_t door) override {
    uint32_t displacement = code.emitter().jmp();
    relocations_.push_back({Relocation::Door, displacement, displacement + 4, door});
  }

  // When the function is lowered: all relocations of its code.
  std::vector<Relocation> take(std::span<const std::byte> code) {
    for (uint32_t place : places_) {
      uint32_t offset;
      memcpy(&offset, &code[place], 4);
      relocations_.push_back({Relocation::Thread, place, 0, offset});
    }
    return std::move(relocations_);
  }

 private:
  static constexpr uint8_t fs = 0x64;
  static void copy(Lowering& code, const x86::Insn& insn, Bytes bytes) {
    code.copy(std::span(&insn, 1), bytes.first(insn.shape->length));
  }

  std::vector<Relocation> relocations_;
  std::vector<uint32_t> places_;
};

}  // namespace weir::instrument
