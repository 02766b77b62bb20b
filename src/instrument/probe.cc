// Probes: abstract operations in the cheapest registers. Dead ones first; when there is none, one is spilled to the thread
// block. Additions write flags only where the flags are dead.

#include <bit>

#include "instrument/lowering.h"

namespace weir::instrument {

using x86::Gpr;

namespace {

constexpr uint8_t arithmetic_flags = 0x3f;

// Where the two temporaries of a probe live.
struct Places {
  Gpr reg[2] = {x86::RAX, x86::RAX};
  bool used[2] = {false, false};
  bool spilled[2] = {false, false};
};

bool uses_temp(const Op& op, int n) {
  bool a = n == 0;
  switch (op.kind) {
    case Op::AddCounter:
    case Op::AddClock: return false;
    case Op::Call: return true;
    case Op::Load:
    case Op::Store: return (op.temp == Temp::A) == a || (op.other == Temp::A) == a;
    default: return (op.temp == Temp::A) == a;
  }
}

// Registers that the probe itself wants to read may not be overwritten before.
uint16_t wanted_registers(std::span<const Op> ops) {
  uint16_t wanted = 0;
  for (const Op& op : ops)
    if (op.kind == Op::GetRegister) wanted |= uint16_t(1 << op.reg);
  return wanted;
}

Gpr lowest(uint16_t set) { return static_cast<Gpr>(std::countr_zero(set)); }

}  // namespace

void Lowering::probe(std::span<const Op> ops, x86::RegSet live, AppPc app) {
  bool flags_free = !(live.flags & arithmetic_flags);
  Places at;
  for (const Op& op : ops) {
    for (int n = 0; n < 2; n++) at.used[n] |= uses_temp(op, n);
    bool adds = op.kind == Op::AddCounter || op.kind == Op::AddClock;
    if (adds && (!flags_free || op.value != int32_t(op.value))) at.used[0] = true;
  }
  constexpr uint16_t not_rsp = uint16_t(~(1 << x86::RSP));
  uint16_t wanted = wanted_registers(ops);
  uint16_t dead = uint16_t(~live.gpr) & not_rsp & uint16_t(~wanted), others = not_rsp & uint16_t(~wanted);
  uint32_t begin = e_.offset();
  mark(Mark::Exact, app, 0, begin);
  uint8_t restore = 0, numbers = 0;
  for (int n = 0; n < 2; n++) {
    if (!at.used[n]) continue;
    at.spilled[n] = dead == 0;
    at.reg[n] = lowest(dead ? dead : others);
    dead &= uint16_t(~(1 << at.reg[n])), others &= uint16_t(~(1 << at.reg[n]));
    if (!at.spilled[n]) continue;
    e_.store_gs(at.reg[n], gs_spill(n));
    restore |= n ? rt::RestoreSpill1 : rt::RestoreSpill0;
    numbers |= uint8_t(at.reg[n] << 4 * n);
  }
  mark(Mark::Middle, app, restore, begin, numbers);
  auto reg = [&](Temp t) { return at.reg[static_cast<int>(t)]; };
  std::vector<std::pair<uint32_t, size_t>> skips;  // displacement, operation to continue at
  for (size_t k = 0; k < ops.size(); k++) {
    for (auto [displacement, to] : skips)
      if (to == k) e_.patch_u8(displacement, static_cast<uint8_t>(e_.offset() - displacement - 1));
    const Op& op = ops[k];
    switch (op.kind) {
      case Op::AddCounter:
      case Op::AddClock: {
        // The clock takes turns over its cells: an addition would wait for the one before it in the same cell.
        uint32_t cell = gs_counter(op.kind == Op::AddClock ? Counter{static_cast<uint32_t>(app.value >> 2) % Counters::clock_cells} : op.counter);
        if (flags_free && op.value == int32_t(op.value)) {
          e_.add_gs(cell, int32_t(op.value));
        } else {
          e_.load_gs(at.reg[0], cell);
          e_.lea(at.reg[0], at.reg[0], int32_t(op.value));
          e_.store_gs(at.reg[0], cell);
        }
        break;
      }
      case Op::Set: e_.mov_imm64(reg(op.temp), uint64_t(op.value)); break;
      case Op::GetRegister: e_.mov(reg(op.temp), op.reg); break;
      case Op::LoadCounter: e_.load_gs(reg(op.temp), gs_counter(op.counter)); break;
      case Op::StoreCounter: e_.store_gs(reg(op.temp), gs_counter(op.counter)); break;
      case Op::Load: e_.load(reg(op.temp), reg(op.other), int32_t(op.value)); break;
      case Op::Store: e_.store(reg(op.temp), reg(op.other), int32_t(op.value)); break;
      case Op::Add: e_.lea(reg(op.temp), reg(op.temp), int32_t(op.value)); break;
      case Op::SkipUnless: {
        // No flags: rcx tells. lea rcx, [temp - value]; jrcxz go on; jmp short over
        e_.store_gs(x86::RCX, gs_spill(2));
        e_.lea(x86::RCX, reg(op.temp), int32_t(-op.value));
        e_.bytes(0xe3, 11);
        e_.load_gs(x86::RCX, gs_spill(2));
        e_.bytes(0xeb);
        skips.push_back({e_.offset(), k + 1 + op.count});
        e_.bytes(0);
        e_.load_gs(x86::RCX, gs_spill(2));
        break;
      }
      case Op::Call: {
        e_.store_gs(reg(Temp::A), offsetof(rt::ThreadBlock, routine_args));
        e_.store_gs(reg(Temp::B), offsetof(rt::ThreadBlock, routine_args) + 8);
        e_.store_gs_imm(offsetof(rt::ThreadBlock, exit_id), static_cast<uint32_t>(op.value));
        e_.store_gs(x86::RCX, gs_rcx);
        e_.bytes(0x48, 0x8d, 0x0d);  // lea rcx, [behind the jump]
        e_.u32(8);
        e_.jump_gs(offsetof(rt::ThreadBlock, enter_routine));
        e_.load_gs(x86::RCX, gs_rcx);
        break;
      }
    }
  }
  for (auto [displacement, to] : skips)
    if (to >= ops.size()) e_.patch_u8(displacement, static_cast<uint8_t>(e_.offset() - displacement - 1));
  for (int n = 0; n < 2; n++)
    if (at.spilled[n]) e_.load_gs(at.reg[n], gs_spill(n));
  mark(Mark::Run, app);
}

}  // namespace weir::instrument
