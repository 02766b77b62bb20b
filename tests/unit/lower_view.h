// What lowering has written is decoded again, and held against the function and what the plan asked for.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lower_subject.h"

namespace weir::instrument {

class View {
 public:
  View(const Subjects& s, const Plan& plan, CachePc base) : s_(s), base_(base) {
    size_t bound = size_bound(s.f, plan, base);
    code_.assign(bound + 64, std::byte{0x06});
    uint64_t table = base.value % 128 < 64 ? rt::table_base : rt::high_table_base;
    out = lowered(s, plan, std::span(code_).first(bound), base, [&](AppPc a) { return find(a); }, table);
    for (BlockId b = 0; b < out.blocks.size(); b++) body_[out.blocks[b].offset] = b;
    for (const Exit& e : out.exits)
      if (e.kind == Exit::Direct) direct_[e.offset] = e;
  }

  // Half of the places outside are translated already.
  CachePc find(AppPc a) const { return a.value % 2 ? CachePc{base_.value + 0x100'0000 + a.value % 4096} : CachePc{}; }

  void check_sizes() const {
    ASSERT_LE(out.size, code_.size() - 64);
    for (size_t i = out.size; i < code_.size(); i++) ASSERT_EQ(code_[i], std::byte{0x06}) << "written behind the end";
    check_exits();
  }

  void check() const {
    check_sizes();
    ASSERT_EQ(out.blocks.size(), s_.f.blocks.size());
    ASSERT_EQ(body_.size(), s_.f.blocks.size()) << "two blocks at one place";
    ASSERT_TRUE(std::is_sorted(out.marks.begin(), out.marks.end(),
                               [](const Mark& a, const Mark& b) { return a.offset < b.offset; }));
    for (const Mark& m : out.marks) {
      ASSERT_LE(m.offset, out.size);
      ASSERT_LE(m.resume, out.size);
    }
    check_table();
    for (BlockId b = 0; b < out.blocks.size() && !testing::Test::HasFatalFailure(); b++) {
      SCOPED_TRACE(fmt::format("block {} of {} at {:#x}", b, out.blocks.size(), s_.f.blocks[b].begin.value));
      check_block(b);
    }
  }

  // Counters that are touched on the way.
  using Seen = std::multiset<uint32_t>;
  struct Expected {
    std::map<uint32_t, Seen> before, after;  // by instruction
    std::map<uint32_t, Seen> block, taken, fall, site;
    Seen entry;
  };
  Expected expected;
  Lowered out;

 private:
  struct Where {
    bool exact, run;
    AppPc app;
  };
  Where where(uint32_t offset) const {
    auto m = std::upper_bound(out.marks.begin(), out.marks.end(), offset,
                              [](uint32_t o, const Mark& x) { return o < x.offset; });
    if (m == out.marks.begin()) return {false, false, {}};
    --m;
    AppPc app = s_.f.bounds.begin + m->app;
    if (m->kind == Mark::Run) return {true, true, app + (offset - m->offset)};
    return {m->kind == Mark::Exact && m->offset == offset, false, app};
  }
  Insn insn(uint32_t offset) const { return x86::decode(std::span(code_).subspan(offset, 16), {base_.value + offset}); }
  uint32_t offset_of(AppPc pc) const { return static_cast<uint32_t>(pc.value - base_.value); }
  uint32_t u32(uint32_t offset) const {
    uint32_t v;
    memcpy(&v, &code_[offset], 4);
    return v;
  }
  // The counter that an instruction writes: add, inc or mov to gs:[disp32].
  void note(uint32_t offset, const Insn& i, Seen& seen) const {
    const x86::Shape& s = *i.shape;
    if (!s.uses_gs || !s.writes_memory || s.disp_size != 4) return;
    uint32_t disp = u32(offset + s.disp_offset);
    if (disp >= rt::counters_offset) seen.insert((disp - rt::counters_offset) / 8);
  }

  // Where control goes from `offset`: to a block's body, or out.
  struct End {
    BlockId block = no_block;
    AppPc out = {};
    Seen seen;
  };
  End follow(uint32_t offset) const {
    End end;
    for (int steps = 0; steps < 1000; steps++) {
      if (auto b = body_.find(offset); b != body_.end()) return end.block = b->second, end;
      Insn i = insn(offset);
      if (i.kind() == Kind::Jump) {
        uint32_t displacement = offset + i.shape->imm_offset;
        if (auto d = direct_.find(displacement); d != direct_.end()) return end.out = d->second.target, end;
        if (offset_of(i.target) >= out.size) break;
        offset = offset_of(i.target);
        continue;
      }
      if (i.kind() != Kind::Plain || !i.shape->known) break;
      note(offset, i, end.seen);
      offset += i.shape->length;
    }
    ADD_FAILURE() << "leads nowhere: " << offset;
    return end;
  }
  void leads_to(uint32_t offset, BlockId block, AppPc target, const Seen& counters) const {
    End end = follow(offset);
    ASSERT_EQ(end.block, block);
    if (block == no_block) {
      ASSERT_EQ(end.out.value, target.value);
    }
    ASSERT_EQ(end.seen, counters);
  }

  void check_exits() const {
    uint32_t indirect = 0;
    for (const Exit& e : out.exits) {
      if (e.kind != Exit::Direct) {
        indirect++;
        continue;
      }
      ASSERT_LE(e.offset + 4, out.size);
      ASSERT_LT(e.stub, out.size);
      ASSERT_LE((base_.value + e.offset) % 64, 60u) << "the displacement of an exit crosses a line";
      uint64_t to = base_.value + e.offset + 4 + int64_t(int32_t(u32(e.offset)));
      if (e.stub) {
        ASSERT_EQ(to, base_.value + e.stub);
      } else if (e.target == s_.f.entry) {
        ASSERT_EQ(to, base_.value + out.entry);
      } else {
        ASSERT_EQ(to, find(e.target).value);
      }
    }
    for (const Block& b : s_.f.blocks) {
      Kind k = s_.f.insns[b.first + b.count - 1].kind();
      if (b.ends != BlockEnd::Undecodable)
        indirect -= k == Kind::CallIndirect || k == Kind::JumpIndirect || k == Kind::Return;
    }
    ASSERT_EQ(indirect, 0u);
  }

  void check_table() const {
    std::set<uint64_t> known;
    for (const TableEntry& t : out.table) {
      known.insert(t.app.value);
      ASSERT_LT(t.offset, out.size);
      BlockId b = s_.f.block_at(t.app);
      ASSERT_NE(b, no_block);
      End end = follow(t.offset);
      ASSERT_EQ(end.block, b);
      if (s_.live.live_in[b].gpr >> x86::RCX & 1) {  // mov rcx, gs:[rcx] comes first
        ASSERT_EQ(u32(t.offset), 0x0c8b4865u);
      }
    }
    ASSERT_TRUE(known.contains(s_.f.entry.value));
    ASSERT_EQ(follow(out.entry).seen, expected.entry);
    for (AppPc pc : s_.f.jump_targets) ASSERT_TRUE(known.contains(pc.value));
    for (const Block& b : s_.f.blocks)
      ASSERT_TRUE(b.ends != BlockEnd::Call || b.fallthrough == no_block || known.contains(b.end.value));
  }

  template <class Map>
  static Seen get(const Map& map, uint32_t key) {
    auto i = map.find(key);
    return i == map.end() ? Seen{} : i->second;
  }

  bool same(uint32_t offset, const Insn& i) const {
    Insn here = insn(offset);
    if (here.shape->length != i.shape->length) return false;
    if (i.shape->rip_relative) return here.shape->rip_relative && here.target == i.target;
    return !memcmp(&code_[offset], s_.read(i.pc, i.shape->length).data(), i.shape->length);
  }

  void check_block(BlockId b) const {
    const Block& block = s_.f.blocks[b];
    uint32_t at = out.blocks[b].offset;
    ASSERT_EQ(out.blocks[b].app.value, block.begin.value);
    ASSERT_TRUE(where(at).exact);
    ASSERT_EQ(where(at).app.value, block.begin.value);
    Seen in_block;  // less what stands before or behind a certain instruction
    bool transfers = block.ends != BlockEnd::FallThrough;
    for (uint32_t n = 0; n < block.count; n++) {
      const Insn& i = s_.f.insns[block.first + n];
      bool is_last = transfers && n + 1 == block.count;
      Seen seen, wanted = get(expected.before, block.first + n);
      if (n) wanted.merge(get(expected.after, block.first + n - 1));
      auto is_here = [&] {
        Where w = where(at);
        Kind k = insn(at).kind();
        if (!is_last && i.shape->uses_gs) return w.exact && w.app == i.next();  // it is made of several: behind them
        if (!is_last) return w.run && w.app == i.pc && same(at, i);
        if (block.ends == BlockEnd::Branch) return k == Kind::Branch;
        if (block.ends == BlockEnd::Jump || block.ends == BlockEnd::Undecodable)
          return k == Kind::Jump || body_.contains(at);
        if (block.ends == BlockEnd::Trap) return w.run && w.app == i.pc && same(at, i);
        return k != Kind::Plain;
      };
      for (int steps = 0; !is_here(); steps++) {
        ASSERT_LT(steps, 1000) << "instruction " << n << " is not there";
        Insn glue = insn(at);
        ASSERT_TRUE(glue.kind() == Kind::Plain && glue.shape->known) << "instruction " << n << " is not there";
        note(at, glue, seen);
        at += glue.shape->length;
        if (is_last && block.ends == BlockEnd::Jump && body_.contains(at)) break;
      }
      bool edge_here = is_last && block.ends == BlockEnd::Jump;  // its probes stand before the jump
      if (edge_here) wanted.merge(get(expected.taken, b));
      for (uint32_t c : wanted) {
        auto found = seen.find(c);
        ASSERT_NE(found, seen.end()) << "a probe of instruction " << n << " is missing: counter " << c;
        seen.erase(found);
      }
      in_block.merge(seen);
      if (!is_last && !i.shape->uses_gs) at += i.shape->length;
    }
    ASSERT_EQ(in_block, get(expected.block, b));
    check_block_end(b, at);
  }

  void check_block_end(BlockId b, uint32_t at) const {
    const Block& block = s_.f.blocks[b];
    uint32_t last = block.first + block.count - 1;
    const Insn& i = s_.f.insns[last];
    Insn here = insn(at);
    switch (block.ends) {
      case BlockEnd::FallThrough: {
        Seen wanted = get(expected.fall, b);
        wanted.merge(get(expected.after, last));
        return leads_to(at, block.fallthrough, block.end, wanted);
      }
      case BlockEnd::Jump: return leads_to(at, block.taken, i.target, {});
      case BlockEnd::Undecodable: return leads_to(at, no_block, i.pc, {});
      case BlockEnd::Trap: return leads_to(at + i.shape->length, block.fallthrough, block.end, get(expected.fall, b));
      case BlockEnd::Branch: {
        if (i.shape->short_only) {
          ASSERT_EQ(code_[at], s_.read(i.pc, 1)[0]);
          leads_to(offset_of(here.target), block.taken, i.target, get(expected.taken, b));
        } else {
          ASSERT_EQ(here.shape->condition, i.shape->condition);
          if (auto d = direct_.find(at + here.shape->imm_offset); d != direct_.end()) {
            ASSERT_EQ(d->second.target.value, i.target.value);
            ASSERT_EQ(block.taken, no_block);
          } else {
            leads_to(offset_of(here.target), block.taken, i.target, get(expected.taken, b));
          }
        }
        return leads_to(at + here.shape->length, block.fallthrough, block.end, get(expected.fall, b));
      }
      case BlockEnd::Call: {
        ASSERT_EQ(here.kind(), Kind::Call);
        uint32_t thunk = offset_of(here.target);
        ASSERT_EQ(u32(thunk) & 0xffffff, 0x2404c7u);
        ASSERT_EQ(u32(thunk + 3), uint32_t(i.next().value));
        if (i.kind() == Kind::Call) leads_to(thunk, no_block, i.target, {});
        Seen wanted = get(expected.fall, b);
        wanted.merge(get(expected.site, block.fallthrough));
        if (block.fallthrough != no_block) leads_to(at + 5, block.fallthrough, block.end, wanted);
        return;
      }
      default: return;
    }
  }

  const Subjects& s_;
  CachePc base_;
  std::vector<std::byte> code_;
  std::map<uint32_t, BlockId> body_;
  std::map<uint32_t, Exit> direct_;
};

}  // namespace weir::instrument
