#include "tools/memory/memory.h"

#include <elf.h>
#include <bit>

#include "elf/image.h"
#include "tools/memory/kind.h"
#include "tools/memory/operands.h"

namespace weir::memory {

using instrument::Condition, instrument::Counter, instrument::Op, instrument::Temp, instrument::Where;
using x86::Extent, x86::MemoryOperand;

// For one function.
class Memory::Planner {
 public:
  Planner(Memory& tool, const instrument::Subject& s, instrument::Counters& counters, instrument::Plan& plan)
      : tool_(tool), s_(s), counters_(counters), plan_(plan) {}

  void block(x86::BlockId b) {
    const x86::Block& block = s_.function.blocks[b];
    std::map<uint32_t, int64_t> known;  // accesses whose kind is known, by cell
    uint32_t end = block.first + block.count - (block.ends == x86::BlockEnd::Undecodable);
    for (uint32_t i = block.first; i < end; i++) {
      const x86::Insn& insn = s_.function.insns[i];
      if (!insn.shape->operand_count()) continue;
      auto operands = x86::memory_operands(insn, s_.code(insn.pc, insn.shape->length));
      for (uint8_t n = 0; n < operands.size(); n++) {
        const MemoryOperand& o = operands[n];
        if (o.access == x86::Access::None) continue;
        auto kind = kind_before_run(o);
        for (bool writes : {false, true}) {
          if (!(writes ? x86::writes(o.access) : x86::reads(o.access))) continue;
          Counter c = counter_of(o, writes);
          if (kind) known[c.index + *kind]++;
          else at_run(insn, i, n, o, c);
        }
      }
    }
    for (auto [cell, n] : known) plan_.insert(Where::Block, b, {Op{.kind = Op::AddCounter, .counter = {cell}, .value = n}});
  }

 private:
  Counter counter_of(const MemoryOperand& o, bool writes) {
    auto addressed = has_known_address(o) ? Addressed::Known : is_by_frame(o) ? Addressed::ByFrame : Addressed::Otherwise;
    return tool_.counter_of({s_.image, size_of(o), writes, addressed, {}}, counters_);
  }
  std::optional<runtime::Kind> kind_before_run(const MemoryOperand& o) const {
    if (o.base == x86::RSP && is_by_frame(o)) return runtime::Stack;
    if (!has_known_address(o) || !s_.file || !s_.is_pristine) return {};
    uint64_t vaddr = static_cast<uint64_t>(o.displacement) - s_.bias;
    for (const elf::Segment& s : s_.file->segments())
      if (s.type == PT_LOAD && vaddr - s.vaddr.value < s.memory_size && s.memory_size - (vaddr - s.vaddr.value) >= o.size)
        return s.flags & PF_X ? runtime::Code : runtime::Static;
    return {};
  }
  // Counted as often as D says, if `number` sets it, or once with D bytes; the kind is that of the address that `address` leaves in A.
  enum Number { Times, Bytes };
  void count(Where where, uint32_t i, std::vector<Op> number, std::initializer_list<Op> address, Counter c,
             Number d = Times) {
    bool is_one = number.empty();
    if (!is_one) number.push_back({.kind = Op::SkipIf, .temp = Temp::D, .count = 255, .condition = Condition::Equal});
    append_kind(number, address);
    Op add{.kind = Op::AddIndexed,
           .temp = Temp::A,
           .other = Temp::D,
           .by_temp = !is_one && d == Times,
           .counter = c,
           .value = 1};
    number.push_back(add);
    if (d == Bytes) add.by_temp = true, add.counter.index += Group::bytes, number.push_back(add);
    plan_.insert(where, i, number);
  }
  void at_run(const x86::Insn& insn, uint32_t i, uint8_t n, const MemoryOperand& o, Counter c) {
    using enum Temp;
    const Op address{.kind = Op::GetAddress, .temp = A, .count = n}, extent{.kind = Op::GetExtent, .temp = D, .count = n},
        selected{.kind = Op::GetSelected, .temp = D, .count = n},
        get_rcx{.kind = Op::GetRegister, .temp = D, .reg = x86::RCX},
        cut{.kind = Op::And, .temp = D, .value = o.wraps_at_32_bits ? 0xffffffff : -1};
    auto shifted = [](int64_t by) { return Op{.kind = Op::ShiftRight, .temp = D, .value = by}; };
    if (size_of(o) == state_size && instrument::has_extent(o))
      return count(Where::Before, i, {extent}, {address}, c, Bytes);
    for (uint32_t e = 0; o.extent == Extent::Indexed && e < o.size / o.element; e++)
      count(Where::Before, i, {selected, shifted(e), {.kind = Op::And, .temp = D, .value = 1}},
            {{.kind = Op::GetElement, .temp = A, .count = n, .value = e}}, c);
    if (o.extent == Extent::Indexed) return;
    if (has_elements(o)) return count(Where::Before, i, {extent, shifted(std::countr_zero(o.element))}, {address}, c);
    if (o.extent != Extent::Repeated) return count(Where::Before, i, {}, {address}, c);
    count(Where::Before, i, {get_rcx, cut}, {address}, c);
    if (may_stop_early(insn))  // what is left was not accessed; the last element that was is just below
      count(Where::After, i, {get_rcx, cut, {.kind = Op::Multiply, .temp = D, .value = -1}},
            {{.kind = Op::GetRegister, .temp = A, .reg = x86::Gpr(o.base)}, {.kind = Op::Add, .temp = A, .value = -1}}, c);
  }

  Memory& tool_;
  const instrument::Subject& s_;
  instrument::Counters& counters_;
  instrument::Plan& plan_;
};

void Memory::plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) {
  Planner planner(*this, subject, counters, plan);
  for (x86::BlockId b = 0; b < subject.function.blocks.size(); b++) planner.block(b);
  groups_.publish();
}

Counter Memory::counter_of(Group group, instrument::Counters& counters) {
  uint32_t& known = group_at_[{group.image, group.size, group.writes, group.addressed}];
  if (!known) {
    group.counter = counters.allocate(Group::counters);
    groups_.push_back(group);
    known = static_cast<uint32_t>(groups_.size());
  }
  return groups_[known - 1].counter;
}

// Its own table of kinds is empty, and so its first access asks: see runtime/kinds.cc.
void Memory::begin_thread(const instrument::ThreadStart& start) {
  auto* block = reinterpret_cast<rt::ThreadBlock*>(start.memory);
  block->tool[runtime::TableWord] = reinterpret_cast<uint64_t>(block->self) + runtime::table_offset;
}

rt::ToolAnswer Memory::answer(const instrument::Asking& thread, const rt::ToolRequest& request) {
  rt::ToolAnswer answer{};
  rt::to_words(regions_.find(thread.pid, thread.tid, rt::from_words<runtime::Question>(request.words)), answer.words);
  return answer;
}

void Memory::collect(const instrument::ThreadData& data) {
  regions_.forget_thread(data.tid);
  std::vector<Totals>& images = programs_[data.pid];
  for (const Group& g : groups_) {
    if (g.counter.index + Group::counters > data.cells.size()) continue;  // a function that had no room for it never ran
    auto cells = data.cells.subspan(g.counter.index, Group::counters);
    if (images.size() <= g.image) images.resize(g.image + 1);
    for (uint32_t k = 0; k < runtime::known_kinds; k++) {  // (what was nowhere has faulted)
      uint64_t n = cells[k], bytes = g.size == state_size ? cells[Group::bytes + k] : n * g.size;
      if (n)
        images[g.image].add(g, k == runtime::Stack && g.addressed == Addressed::ByFrame ? Frame : Kind(k + 1), n, bytes);
    }
  }
}

std::vector<Totals> Memory::take(uint32_t pid) {
  auto node = programs_.extract(pid);
  return node ? std::move(node.mapped()) : std::vector<Totals>{};
}

}  // namespace weir::memory
