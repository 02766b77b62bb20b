// Where probes go.

#include <algorithm>
#include <numeric>

#include "cost/strings.h"
#include "tools/count/count.h"
#include "tools/count/flow.h"
#include "tools/count/frequency.h"
#include "x86/stack.h"

namespace weir::count {

using instrument::Counter;
using instrument::IsPart;
using instrument::Op;
using instrument::Where;
using profile::SiteKind;
using x86::BlockEnd;
using x86::BlockId;
using x86::no_block;

namespace {

bool starts(std::span<const std::byte> code, std::initializer_list<uint8_t> bytes) {
  if (code.size() < bytes.size()) return false;
  auto i = code.begin();
  return std::all_of(bytes.begin(), bytes.end(), [&](uint8_t b) { return *i++ == std::byte{b}; });
}

std::span<const std::byte> behind_endbr(std::span<const std::byte> code) {
  return starts(code, {0xf3, 0x0f, 0x1e, 0xfa}) ? code.subspan(4) : code;
}

// `jmp [rip + …]`, behind an endbr64 or a bnd: an entry of a procedure linkage table. The first one begins with `push [rip + …]`.
bool is_stub(std::span<const std::byte> code) {
  code = behind_endbr(code);
  if (starts(code, {0xff, 0x35}) && code.size() > 6) code = code.subspan(6);
  return starts(code, {0xff, 0x25}) || starts(code, {0xf2, 0xff, 0x25});
}

// The dynamic linker's function that the entries of linkage tables lead to until they are bound. An entry pushes two words for it, and it is the one
// kind of function that takes two words of its caller's off the stack before it jumps to what the one call that it makes has returned:
//     push rbx ; mov rbx, rsp ; … ; call … ; mov r11, rax ; … ; mov rsp, rbx ; mov rbx, [rsp] ; add rsp, 24 ; jmp r11
// (glibc: sysdeps/x86_64/dl-trampoline.h. After the x86-64 ABI supplement, "Procedure Linkage Table".)
bool is_resolver(const x86::Function& f, const x86::ReadMemory& code) {
  if (f.entry != f.bounds.begin || !starts(behind_endbr(code(f.entry, 8)), {0x53, 0x48, 0x89, 0xe3})) return false;
  constexpr size_t end_size = 14, prefix_size = 1;
  size_t calls = 0, jumps = 0;
  bool keeps_result = false, ends_so = false;
  for (const x86::Block& b : f.blocks) {
    if (b.ends == BlockEnd::Call) {
      calls += f.insns_of(b).back().kind() == x86::Kind::Call;
      keeps_result = starts(code(b.end, 3), {0x49, 0x89, 0xc3});
    } else if (b.ends == BlockEnd::IndirectJump) {
      auto bytes = code(b.begin, static_cast<size_t>(b.end - b.begin));
      for (size_t prefix = 0; prefix <= prefix_size && bytes.size() >= end_size + prefix; prefix++) {
        auto end = bytes.last(end_size + prefix);
        ends_so |= starts(end, {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x1c, 0x24, 0x48, 0x83, 0xc4, 0x18}) &&
                   starts(end.last(3), {0x41, 0xff, 0xe3});
      }
      jumps++;
    } else if (b.ends != BlockEnd::FallThrough) {
      return false;
    }
  }
  return calls == 1 && jumps == 1 && keeps_result && ends_so;
}

Op call(runtime::Routine routine, Counter a = {}, uint32_t b = 0) {
  return {.kind = Op::CallWith, .counter = a, .value = static_cast<int64_t>(routine), .callee = {b}};
}

}  // namespace

// One function at a time.
class Count::Planner {
 public:
  Planner(Count& tool, const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan)
      : tool_(tool), s_(subject), f_(subject.function), counters_(counters), plan_(plan) {}

  void run() {
    first_block_ = static_cast<uint32_t>(tool_.blocks_.size());
    tool_.units_.push_back({first_block_, tool_.points_, static_cast<uint32_t>(tool_.sites_.size()), counters_.size()});
    function_ = tool_.function_at(s_, f_.bounds.begin, counters_, whole_of_this());
    bool stub = tool_.functions_[function_].is_stub;
    add_blocks(stub);
    count_blocks();
    if (stub) return;
    Op arrive{.kind = Op::ArriveFrame, .callee = cell_of(function_)},
        resync{.kind = Op::ResyncFrames, .callee = cell_of(function_)};
    if (tool_.full_paths_)
      arrive = call(runtime::Arrival, cell_of(function_)), resync = call(runtime::Resync, cell_of(function_));
    if (s_.is_volatile) plan_.insert(Where::Entry, 0, {resync});
    else
      plan_.insert(Where::Arrival, 0,
                   {f_.entry == f_.bounds.begin && !tool_.functions_[function_].whole ? arrive : resync});
    is_resolver_ = is_resolver(f_, s_.code);
    if (!is_resolver_ && goes_elsewhere()) plan_.insert(Where::Entry, 0, {call(runtime::Leaving)});
    for (BlockId b = 0; b < f_.blocks.size(); b++) watch_end(b);
    for (BlockId b = 0; b < f_.blocks.size() && tool_.options_.clock == Clock::Cycles; b++) watch_repetitions(b);
  }

 private:
  Counter cell_of(uint32_t function) const { return tool_.functions_[function].cell; }
  Block& block(BlockId b) { return tool_.blocks_[first_block_ + b]; }

  void add_blocks(bool free) {
    Pool& pool = tool_.pool_;
    for (const x86::Block& b : f_.blocks) {
      auto bytes = s_.code(b.begin, static_cast<size_t>(b.end - b.begin));
      Block block{b.begin, function_};
      block.size = static_cast<uint32_t>(bytes.size()), block.code = static_cast<uint32_t>(pool.code.size());
      block.instructions = b.count, block.insn = static_cast<uint32_t>(pool.lengths.size());
      pool.code.append(bytes);
      for (const x86::Insn& i : f_.insns_of(b)) pool.lengths.push_back(i.shape->length);
      BlockCost cost = free ? BlockCost{} : (*tool_.cost_)(bytes, f_.insns_of(b));
      block.cycles = cost.cycles;
      auto known = cost.so_far.first(std::min<size_t>(cost.so_far.size(), b.count));
      pool.so_far.append(known);
      pool.so_far.resize(pool.lengths.size(), block.cycles);
      tool_.blocks_.push_back(block);
    }
  }

  // The points before and behind each block: where control goes from one block to another, they are the same.
  void find_points() {
    auto n = static_cast<uint32_t>(f_.blocks.size());
    std::vector<uint32_t> parent(2 * n + 1);  // the point before block b is 2b + 1, the one behind it 2b + 2
    std::iota(parent.begin(), parent.end(), 0);
    auto find = [&](uint32_t p) {
      for (; parent[p] != p; p = parent[p]) parent[p] = parent[parent[p]];
      return p;
    };
    auto join = [&](uint32_t a, uint32_t b) {
      a = find(a), b = find(b);
      parent[std::max(a, b)] = std::min(a, b);
    };
    for (BlockId b = 0; b < n; b++) {
      const x86::Block& block = f_.blocks[b];
      auto leads_to = [&](BlockId s) { join(2 * b + 2, s == no_block ? outside : 2 * s + 1); };
      if (block.is_entry) join(2 * b + 1, outside);
      bool falls = block.ends == BlockEnd::FallThrough || block.ends == BlockEnd::Branch;
      bool jumps = block.ends == BlockEnd::Jump || block.ends == BlockEnd::Branch;
      if (falls) leads_to(block.fallthrough);
      if (jumps) leads_to(block.taken);
      if (!falls && !jumps) leads_to(no_block);
    }
    std::vector<uint32_t> number(2 * n + 1);
    auto numbered = [&](uint32_t p) {
      p = find(p);
      if (p != outside && !number[p]) number[p] = tool_.points_++;
      return number[p];
    };
    for (BlockId b = 0; b < n; b++) block(b).from = numbered(2 * b + 1), block(b).to = numbered(2 * b + 2);
  }

  void count_blocks() {
    uint32_t before = tool_.points_ - 1;
    find_points();
    std::vector<Flow> flows;
    auto frequency = guess_frequencies(f_);
    for (BlockId b = 0; b < f_.blocks.size(); b++) {
      auto local = [&](uint32_t point) { return point == outside ? outside : point - before; };
      flows.push_back({local(block(b).from), local(block(b).to), frequency[b], block(b).cycles});
    }
    place_counters(flows, tool_.points_ - before);
    for (BlockId b = 0; b < f_.blocks.size(); b++) {
      if (!flows[b].is_counted) continue;
      Op count{.kind = Op::AddCounter, .counter = block(b).counter = counters_.allocate(), .value = 1};
      if (!flows[b].advance || tool_.is_by_wall()) plan_.insert(Where::Block, b, {count});
      else plan_.insert(Where::Block, b, {count, {.kind = Op::AddClock, .value = flows[b].advance}});
    }
  }

  // Does it leave for another stack or frame at its end, as longjmp does, an unwinder, or who switches coroutines? Then control may come to a
  // place behind another call of the same caller, with the same rsp, which would take the frame for its own.
  bool goes_elsewhere() const {
    for (const x86::Block& b : f_.blocks) {
      if (b.ends != BlockEnd::Return && b.ends != BlockEnd::IndirectJump) continue;
      for (const x86::Insn& i : f_.insns_of(b))
        if (i.shape->writes.gpr >> x86::RSP & 1 && i.kind() == x86::Kind::Plain &&
            x86::moves_stack(s_.code(i.pc, i.shape->length)))
          return true;
    }
    return false;
  }

  // A call site: its record, and the callee where that is known (an entry of a linkage table only leads to one).
  struct Target {
    Counter record, callee;
    bool is_begin = false;  // of the callee
  };
  AppPc begin_of(AppPc target) const {
    // (Entries of a linkage table may be known as one piece: each leads to a function of its own.)
    return is_stub(s_.image_code(target, 16)) ? target : s_.bounds_of(target).begin;
  }
  // Is what stands at `target`, where control goes, this function's own? There begins a part of it that the compiler put elsewhere, or that
  // follows it without a name, or it is where that goes back to.
  enum class Way : uint8_t { Falls, Branches, Jumps };
  bool is_own(AppPc target, Way way) {
    AppPc begin = begin_of(target);
    if (const uint32_t* known = tool_.function_by_begin_.find(begin); known && *known)
      return cell_of(*known).index == cell_of(function_).index;
    if (begin != target || is_stub(s_.image_code(target, 16))) return false;
    IsPart is_part = s_.is_part(begin);
    if (is_part == IsPart::No) return false;
    bool is_sure = is_part == IsPart::Yes || (is_part == IsPart::Hole && way == Way::Falls);
    if (!is_sure && (way == Way::Jumps || !goes_back_from(begin))) return false;
    tool_.function_at(s_, begin, counters_, whole_of(function_));
    return true;
  }
  uint32_t whole_of(uint32_t function) const {
    uint32_t whole = tool_.functions_[function].whole;
    return whole ? whole : function;
  }
  // A part that nobody was seen to jump to (an exception was caught there) belongs to the function whose middle it jumps to.
  uint32_t whole_of_this() {
    AppPc own = f_.bounds.begin;
    if (const uint32_t* known = tool_.function_by_begin_.find(own); (known && *known) || s_.is_part(own) != IsPart::Yes)
      return 0;
    for (const x86::Insn& i : f_.insns) {
      bool is_jump = i.kind() == x86::Kind::Jump || i.kind() == x86::Kind::Branch;
      if (!is_jump || f_.bounds.contains(i.target)) continue;
      if (AppPc begin = begin_of(i.target); begin < i.target && s_.is_part(begin) != IsPart::Yes)
        return whole_of(tool_.function_at(s_, begin, counters_));
    }
    return 0;
  }
  // Does what begins there jump into the middle of this function?
  bool goes_back_from(AppPc begin) const {
    constexpr int64_t most = 4096;  // bytes that are looked at
    AppRange bounds = s_.bounds_of(begin);
    if (bounds.begin != begin || s_.is_volatile) return false;
    bounds.end = std::min(bounds.end, begin + most);
    x86::ReadMemory code = [&](AppPc at, size_t size) {
      return bounds.contains(at) ? s_.image_code(at, std::min(size, static_cast<size_t>(bounds.end - at)))
                                 : std::span<const std::byte>{};
    };
    x86::Function part = x86::lift(begin, bounds, code, code);
    return std::ranges::any_of(part.insns, [&](const x86::Insn& i) {
      bool is_jump = i.kind() == x86::Kind::Jump || i.kind() == x86::Kind::Branch;
      return is_jump && f_.bounds.contains(i.target) && i.target != f_.bounds.begin;
    });
  }

  uint32_t callee_at(AppPc target) {
    const uint32_t* known = tool_.function_by_begin_.find(target);
    return known && *known ? *known : tool_.function_at(s_, begin_of(target), counters_);
  }
  Target site(BlockId b, AppPc pc, SiteKind kind, AppPc target) {
    // (A call into the middle of the function itself, as of retpolines, is one of the function.)
    bool is_inside = f_.bounds.contains(target) && !s_.is_volatile;
    uint32_t callee = is_inside ? function_ : target ? callee_at(target) : profile::none;
    if (callee != profile::none && tool_.functions_[callee].is_stub) callee = profile::none;
    bool known = callee != profile::none;
    Counter record = counters_.allocate(known ? uint32_t{runtime::record_cells} : uint32_t{runtime::indirect_record_cells});
    tool_.sites_.push_back({pc, function_, kind, callee, first_block_ + b, record});
    if (!known) return {record, {}};
    return {record, cell_of(callee), target == tool_.functions_[callee].begin};
  }

  void watch_end(BlockId b) {
    const x86::Block& block = f_.blocks[b];
    if (!block.count) return;
    const x86::Insn& last = f_.insns_of(block).back();
    uint32_t index = block.first + block.count - 1;
    // Functions that call each other at their ends without end: one of those calls goes back, and looks how many there are.
    auto push = [&](Target t, bool is_tail, bool goes_back = false) {
      if (!tool_.full_paths_)
        return Op{.kind = Op::PushFrame,
                  .flags_are_dead = t.is_begin && tool_.overwrites_flags(s_, tool_.sites_.back().callee),
                  .goes_back = goes_back,
                  .counter = t.record,
                  .value = is_tail ? int64_t{8 | rt::FrameIsTail} : 0,
                  .callee = t.callee};
      uint32_t site = t.record.index | (t.callee.index ? rt::direct_site : 0);
      return call(is_tail ? runtime::EnterTail : runtime::Enter, {site}, t.callee.index ? t.callee.index : rt::not_arrived);
    };
    auto leaves = [&](BlockId to, AppPc target, Way way) {
      return to == no_block && !f_.bounds.contains(target) && !is_own(target, way);
    };
    if (block.ends == BlockEnd::FallThrough || block.ends == BlockEnd::Branch || block.ends == BlockEnd::Trap) {
      // (Nobody goes on behind a trap as a rule: what stands there is another function.)
      Way way = block.ends == BlockEnd::Trap ? Way::Jumps : Way::Falls;
      if (leaves(block.fallthrough, block.end, way)) fall_out(b, last.pc, push);
    }
    switch (block.ends) {
      case BlockEnd::Call: {
        bool direct = last.kind() == x86::Kind::Call;
        Target t = site(b, last.pc, direct ? SiteKind::Call : SiteKind::IndirectCall, direct ? last.target : AppPc{});
        // Where it returns to is entered like a function: it is still this one.
        if (s_.is_volatile && !tool_.function_by_begin_[last.next()]) tool_.function_by_begin_[last.next()] = function_;
        if (t.is_begin && !tool_.full_paths_ && tool_.is_leaf(s_, tool_.sites_.back().callee)) {
          plan_.insert(Where::Before, index, {{.kind = Op::Own, .counter = t.record, .value = BeginLeaf}});
          if (block.fallthrough != no_block)
            plan_.insert(Where::ReturnSite, block.fallthrough, {{.kind = Op::Own, .counter = t.record, .value = EndLeaf}});
          break;
        }
        plan_.insert(Where::Before, index, {push(t, false)});
        Op pop{.kind = Op::PopFrame, .counter = t.record, .value = cell_of(function_).index, .callee = t.callee};
        // (What returns there once more may be another call that this function made.)
        bool by_runtime =
            tool_.full_paths_ || (t.callee.index && tool_.functions_[tool_.sites_.back().callee].may_return_twice);
        if (block.fallthrough != no_block)
          plan_.insert(Where::ReturnSite, block.fallthrough, {by_runtime ? call(runtime::Leave, cell_of(function_)) : pop});
        break;
      }
      case BlockEnd::Jump:
      case BlockEnd::Branch: {
        if (!leaves(block.taken, last.target, block.ends == BlockEnd::Branch ? Way::Branches : Way::Jumps)) break;
        AppPc begin = begin_of(last.target);
        if (begin != last.target) {
          Counter callee = cell_of(tool_.function_at(s_, begin, counters_));
          Counter record = site(b, last.pc, SiteKind::TailCall, {}).record;
          plan_.insert(Where::Taken, b, {call(runtime::MiddleJump, callee, record.index)});
          break;
        }
        Target t = site(b, last.pc, SiteKind::TailCall, last.target);
        Op tail = push(t, true, last.target < last.pc);
        if (block.ends == BlockEnd::Jump) {
          plan_.insert(Where::Taken, b, {tail});
          break;
        }
        Counter taken = tool_.sites_.back().taken = counters_.allocate();
        plan_.insert(Where::Taken, b, {{.kind = Op::AddCounter, .counter = taken, .value = 1}, tail});
        break;
      }
      case BlockEnd::IndirectJump:
        if (is_resolver_) {
          plan_.insert(Where::Before, index, {call(runtime::Resolved, cell_of(function_))});
          break;
        }
        plan_.insert(Where::Before, index,
                     {{.kind = Op::SetJumpSite,
                       .counter = site(b, last.pc, SiteKind::TailCall, {}).record,
                       .callee = cell_of(function_)}});
        break;
      case BlockEnd::Syscall:
        plan_.insert(Where::Before, index, {call(runtime::OsEnter, cell_of(function_))});
        plan_.insert(Where::FallThrough, b, {call(runtime::OsLeave)});
        if (leaves(block.fallthrough, block.end, Way::Falls)) fall_out(b, last.pc, push);
        break;
      default: break;
    }
  }

  // Control goes on behind the function, in what the unwind tables or symbols have as another one: as with a tail call.
  void fall_out(BlockId b, AppPc pc, const auto& push) {
    AppPc next = f_.blocks[b].end;
    AppPc begin = s_.bounds_of(next).begin;
    if (begin != next) {
      Counter callee = cell_of(tool_.function_at(s_, begin, counters_));
      Counter record = site(b, pc, SiteKind::TailCall, {}).record;
      plan_.insert(Where::FallThrough, b, {call(runtime::MiddleJump, callee, record.index)});
      return;
    }
    Op tail = push(site(b, pc, SiteKind::TailCall, next), true);
    Counter passed = tool_.sites_.back().taken = counters_.allocate();
    plan_.insert(Where::FallThrough, b, {{.kind = Op::AddCounter, .counter = passed, .value = 1}, tail});
  }

  // T3: what a repeated string instruction costs depends on rcx.
  void watch_repetitions(BlockId b) {
    const x86::Block& block = f_.blocks[b];
    for (uint32_t i = 0; i < block.count; i++) {
      const x86::Insn& insn = f_.insns[block.first + i];
      if (!insn.shape->rep) continue;
      auto string = cost::string_instruction(s_.code(insn.pc, insn.shape->length));
      if (!string || !string->repeated) continue;
      if (!this->block(b).extra.index) this->block(b).extra = counters_.allocate();
      const cost::Repetition& r = string->repetition;
      uint32_t what = uint32_t{r.cycles} << 16 | r.elements;
      plan_.insert(Where::Before, block.first + i, {call(runtime::RepeatBegin)});
      plan_.insert(Where::After, block.first + i, {call(runtime::RepeatEnd, this->block(b).extra, what)});
    }
  }

  Count& tool_;
  const instrument::Subject& s_;
  const x86::Function& f_;
  instrument::Counters& counters_;
  instrument::Plan& plan_;
  uint32_t function_ = 0, first_block_ = 0;
  bool is_resolver_ = false;
};

namespace {
constexpr uint32_t planned_once = UINT32_MAX;

// Do they differ in nothing but numbers that instructions hold? (In the profile their blocks are the same.)
bool is_same(const x86::Function& f, const Planned& planned) {
  auto same_block = [](const x86::Block& a, const x86::Block& b) {
    return a.begin == b.begin && a.end == b.end && a.first == b.first && a.count == b.count && a.ends == b.ends &&
           a.fallthrough == b.fallthrough && a.taken == b.taken && a.is_entry == b.is_entry;
  };
  auto same_insn = [](const x86::Insn& a, const x86::Insn& b) {
    return a.pc == b.pc && a.shape == b.shape && (a.target == b.target || a.shape->rip_relative);
  };
  return std::ranges::equal(f.blocks, planned.blocks, same_block) && std::ranges::equal(f.insns, planned.insns, same_insn);
}
}  // namespace

const Planned* Count::find_planned(const x86::Function& f) const {
  const uint32_t* last = planned_by_entry_.find(f.entry);
  for (uint32_t n = last && *last != planned_once ? *last : 0; n; n = planned_[n - 1].previous)
    if (is_same(f, planned_[n - 1])) return &planned_[n - 1];
  return nullptr;
}

void Count::plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) {
  const x86::Function& f = subject.function;
  if (const Planned* known = find_planned(f)) {
    plan = known->plan;
    return;
  }
  Planner(*this, subject, counters, plan).run();
  publish();
  // Most code of files is translated once; what is unmapped and comes back is remembered the second time.
  uint32_t& last = planned_by_entry_[f.entry];
  if (subject.is_pristine && !last) {
    last = planned_once;
    return;
  }
  planned_.push_back({f.insns, f.blocks, plan, last == planned_once ? 0 : last});
  last = static_cast<uint32_t>(planned_.size());
}

// What refers to others comes behind them: whenever this is cut short, what was published is whole.
void Count::publish() {
  pool_.code.publish(), pool_.lengths.publish(), pool_.so_far.publish();
  cell_of_function_.publish(), functions_.publish();
  blocks_.publish(), sites_.publish(), units_.publish();
}

void Count::adopt() {
  units_.adopt(), sites_.adopt(), blocks_.adopt();
  functions_.adopt(), cell_of_function_.adopt();
  pool_.so_far.adopt(), pool_.lengths.adopt(), pool_.code.adopt();
  for (uint32_t i = 1; i < functions_.size(); i++) {
    function_by_begin_[functions_[i].begin] = i;
    if (uint32_t& first = first_of_place(functions_[i]); !first) first = i;
  }
  for (const Block& b : blocks_) points_ = std::max({points_, b.from + 1, b.to + 1});
}

uint32_t Count::function_at(const instrument::Subject& subject, AppPc pc, instrument::Counters& counters, uint32_t whole) {
  uint32_t& known = function_by_begin_[pc];
  if (known) return known;
  known = static_cast<uint32_t>(functions_.size());
  AppRange bounds = subject.bounds_of(pc);
  instrument::Counter own = counters.allocate();
  Function f{.begin = pc,
             .end = std::max(bounds.end, pc + 1),
             .image = subject.image,
             .bias = subject.bias,
             .cell = own,
             .is_stub = is_stub(subject.image_code(pc, 16))};
  // What is mapped twice (V8's builtins) is one function: it is on the stack as often as both together.
  uint32_t& first = first_of_place(f);
  f.whole = first ? functions_[first].whole : whole;
  if (uint32_t same = first ? first : whole) f.cell = functions_[same].cell;
  if (!first) first = known;
  functions_.push_back(f);
  cell_of_function_.push_back(own.index);
  return known;
}

uint32_t& Count::first_of_place(const Function& f) {
  return function_by_place_[{(f.begin.value - f.bias) ^ (uint64_t{f.image} + 1) << 48}];
}

}  // namespace weir::count
