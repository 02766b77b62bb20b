#include "instrument/clock.h"

#include <algorithm>

#include "instrument/lowering.h"

namespace weir::instrument {

namespace {

constexpr uint32_t gs_away = offsetof(rt::ThreadBlock, clock) + offsetof(rt::ClockState, away),
                   gs_zmm31 = offsetof(rt::ThreadBlock, clock) + offsetof(rt::ClockState, zmm31);

constexpr Zmm zmm31{31};

}  // namespace

uint32_t clock_register_offset(const Processor& processor) {
  uint32_t area = processor.high_zmm_offset;
  return area ? area + (31 - 16) * 64 : 0;
}

void begin_clock(std::byte* memory) {
  rt::ClockState& clock = reinterpret_cast<rt::ThreadBlock*>(memory)->clock;
  clock.zmm31_offset = clock_register_offset();
  clock.is_in_register = clock.zmm31_offset != 0;
  auto* steps = reinterpret_cast<int64_t*>(memory + rt::steps_offset);
  for (int64_t i = 0; clock.is_in_register && i < rt::step_count; i++) steps[i] = rt::min_step + i;
}

// u = the clock.
void Lowering::read_clock(x86::Gpr u) {
  if (register_clock_) return e_.vmovq(u, clock_register);
  e_.mov(u, thread(gs_counter({0})));
  e_.add(u, thread(gs_counter({1})));
}

void Lowering::advance_clock(int64_t by) {
  if (by >= rt::min_step && by < rt::min_step + rt::step_count) {
    uint32_t step = rt::steps_offset + 8 * static_cast<uint32_t>(by - rt::min_step);
    return e_.vpaddq(clock_register, clock_register, thread(step));
  }
  e_.vpaddq(clock_register, clock_register, relative(0));
  literals_.push_back({static_cast<uint64_t>(by), e_.offset() - 4});
}

void Lowering::emit_literals() {
  if (literals_.empty()) return;
  std::ranges::sort(literals_, {}, &Literal::value);
  e_.align(8);
  for (size_t i = 0; i < literals_.size(); i++) {
    if (i == 0 || literals_[i].value != literals_[i - 1].value) e_.quad(literals_[i].value);
    e_.leads_to(literals_[i].displacement, e_.offset() - 8);
  }
}

// zmm31 becomes the program's, and the clock's again.
void Lowering::take_vector31() {
  e_.vmovdqu64(thread(gs_away), clock_register);
  e_.vmovdqu64(zmm31, thread(gs_zmm31));
}
void Lowering::give_vector31_back() {
  e_.vmovdqu64(thread(gs_zmm31), zmm31);
  e_.vmovdqu64(clock_register, thread(gs_away));
}

// Instructions that use zmm31. A fault among them finds the clock in the thread block.
void Lowering::lend_clock_register(std::span<const x86::Insn> insns, std::span<const std::byte> bytes, bool wants_rax) {
  uint32_t begin = e_.offset();
  AppPc first = insns.front().pc;
  mark(Mark::Exact, first, 0, begin);
  take_vector31();
  for (const x86::Insn& i : insns) {
    mark(Mark::Middle, i.pc, rt::RestoreClock);
    copy(std::span(&i, 1), bytes.subspan(static_cast<size_t>(i.pc - first), i.shape->length), wants_rax);
  }
  mark(Mark::Middle, insns.back().next(), rt::RestoreClock);
  give_vector31_back();
  mark(Mark::Run, insns.back().next());
}

}  // namespace weir::instrument
