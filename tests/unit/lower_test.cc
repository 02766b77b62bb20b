// Lowering: what is written is decoded again and held against the function; and probes are executed, here, against a model.
#include <asm/prctl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "instrument/lower.h"
#include "instrument/lowering.h"
#include "rt/abi.h"
#include "x86/encoding.h"

namespace weir::instrument {
namespace {

using x86::Block;
using x86::BlockEnd;
using x86::BlockId;
using x86::Insn;
using x86::Kind;
using x86::no_block;
using Random = std::mt19937_64;

constexpr uint64_t app_base = 0x1000'0000;

// ---- Functions, made by chance -------------------------------------------------------------------------------------

using Bytes = std::vector<uint8_t>;

void append_u32(Bytes& b, uint64_t v) {
  for (int i = 0; i < 4; i++) b.push_back(uint8_t(v >> 8 * i));
}

struct Piece {
  enum End { Fall, Branch, Jump, BranchOut, JumpOut, CallOut, CallIn, Other, ShortOnly };
  Bytes body;
  End end;
  size_t target = 0;  // of Branch, Jump, CallIn, ShortOnly: a piece, or the end
  bool is_short = false;
  Bytes other;
};

Bytes filler(Random& random, size_t size) {
  static const std::vector<Bytes> forms = {{0x90},
                                           {0x89, 0xc8},
                                           {0x01, 0xd0},
                                           {0xb8, 1, 0, 0, 0},
                                           {0x0f, 0x94, 0xc0},
                                           {0x48, 0x8d, 0x05, 0, 1, 0, 0},
                                           {0x66, 0x0f, 0x1f, 0x44, 0, 0},
                                           {0x65, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0},
                                           {0x65, 0x48, 0x89, 0x14, 0x3b},
                                           {0xf3, 0xa4},
                                           {0xc5, 0xf8, 0x28, 0xc1},
                                           {0x48, 0x31, 0xc9},
                                           {0x11, 0xd3}};
  Bytes b;
  while (b.size() < size) {
    const Bytes& form = forms[random() % forms.size()];
    b.insert(b.end(), form.begin(), form.end());
  }
  return b;
}

Bytes other_end(Random& random) {
  static const std::vector<Bytes> forms = {{0xff, 0xd0},          {0xff, 0x15, 0, 1, 0, 0},
                                           {0xff, 0x54, 0x24, 8}, {0x41, 0xff, 0xd3},
                                           {0xff, 0xe0},          {0xff, 0x24, 0xc5, 0, 0, 1, 0},
                                           {0x3e, 0xff, 0xe1},    {0xc3},
                                           {0xc2, 8, 0},          {0xf3, 0xc3},
                                           {0x0f, 0x05},          {0xcc},
                                           {0x0f, 0x0b},          {0x06}};
  return forms[random() % forms.size()];
}

size_t end_size(const Piece& p) {
  switch (p.end) {
    case Piece::Fall: return 0;
    case Piece::Branch: return p.is_short ? 2 : 6;
    case Piece::ShortOnly: return p.is_short ? 2 : 6;
    case Piece::Jump: return p.is_short ? 2 : 5;
    case Piece::BranchOut: return 6;
    case Piece::JumpOut:
    case Piece::CallOut:
    case Piece::CallIn: return 5;
    default: return p.other.size();
  }
}

std::vector<uint64_t> lay_out(const std::vector<Piece>& pieces) {
  std::vector<uint64_t> at{0};
  for (const Piece& p : pieces) at.push_back(at.back() + p.body.size() + end_size(p));
  return at;
}

Bytes random_function(Random& random, size_t count, size_t max_size, std::vector<uint64_t>& begins) {
  std::vector<Piece> pieces(count);
  for (size_t i = 0; i < count; i++) {
    Piece& p = pieces[i];
    p.body = filler(random, random() % max_size + 1);
    static constexpr Piece::End ends[] = {Piece::Branch,    Piece::Branch,    Piece::Branch,   Piece::Branch,
                                          Piece::Branch,    Piece::Fall,      Piece::Fall,     Piece::Jump,
                                          Piece::BranchOut, Piece::BranchOut, Piece::JumpOut,  Piece::CallOut,
                                          Piece::CallIn,    Piece::Other,     Piece::ShortOnly};
    p.end = ends[random() % std::size(ends)];
    p.target = random() % 3 ? std::clamp<int64_t>(int64_t(i) + int64_t(random() % 12) - 5, 0, int64_t(count))
                            : random() % (count + 1);
    if (i < count / 5) p.end = Piece::Branch, p.target = random() % count;  // leads to all of it
    p.other = other_end(random);
  }
  auto at = lay_out(pieces);
  for (size_t i = 0; i < count; i++) {  // shorter ones only bring the others nearer
    int64_t distance = int64_t(at[pieces[i].target]) - int64_t(at[i + 1]);
    bool inside = pieces[i].end == Piece::Branch || pieces[i].end == Piece::Jump || pieces[i].end == Piece::ShortOnly;
    pieces[i].is_short = inside && distance > -120 && distance < 120 && (random() % 2 || pieces[i].end == Piece::ShortOnly);
  }
  at = lay_out(pieces);
  Bytes all;
  for (size_t i = 0; i < count; i++) {
    const Piece& p = pieces[i];
    all.insert(all.end(), p.body.begin(), p.body.end());
    bool out = p.end == Piece::BranchOut || p.end == Piece::JumpOut || p.end == Piece::CallOut;
    uint64_t target = out ? (random() % 2 ? at[count] + 0x100 + random() % 64 : -0x1000 + random() % 64) : at[p.target];
    uint64_t distance = target - at[i + 1];
    uint8_t condition = random() % 16;
    switch (p.end) {
      case Piece::Fall: break;
      case Piece::ShortOnly:
        if (p.is_short) {
          all.insert(all.end(), {uint8_t(0xe0 + random() % 4), uint8_t(distance)});
          break;
        }
        [[fallthrough]];
      case Piece::Branch:
      case Piece::BranchOut:
        if (p.is_short) all.insert(all.end(), {uint8_t(0x70 | condition), uint8_t(distance)});
        else all.insert(all.end(), {0x0f, uint8_t(0x80 | condition)}), append_u32(all, distance);
        break;
      case Piece::Jump:
      case Piece::JumpOut:
        if (p.is_short) all.insert(all.end(), {0xeb, uint8_t(distance)});
        else all.push_back(0xe9), append_u32(all, distance);
        break;
      case Piece::CallIn:
      case Piece::CallOut: all.push_back(0xe8), append_u32(all, distance); break;
      default: all.insert(all.end(), p.other.begin(), p.other.end());
    }
  }
  begins.assign(at.begin(), at.end() - 1);
  return all;
}

// ---- Lowered, and looked at ----------------------------------------------------------------------------------------

struct Subjects {
  Bytes bytes;
  x86::ReadMemory read;
  x86::Function f;
  x86::Liveness live;

  Subjects(Bytes code, uint64_t entry) : bytes(std::move(code)) {
    read = [this](AppPc pc, size_t size) -> std::span<const std::byte> {
      uint64_t offset = pc.value - app_base;
      if (offset >= bytes.size()) return {};
      return std::as_bytes(std::span(bytes)).subspan(offset).first(std::min(size, bytes.size() - offset));
    };
    f = x86::lift({app_base + entry}, {{app_base}, {app_base + bytes.size()}}, read, read);
    live = x86::liveness(f);
  }
};

Lowered lowered(const Subjects& s, const Plan& plan, std::span<std::byte> code, CachePc base,
                std::function<CachePc(AppPc)> find, uint64_t table = rt::table_base) {
  Lowered out;
  lower({.function = s.f,
         .liveness = s.live,
         .plan = plan,
         .code = s.read,
         .out = code,
         .base = base,
         .table = table,
         .first_exit = 1000,
         .find = std::move(find)},
        out);
  return out;
}

class View {
 public:
  View(const Subjects& s, const Plan& plan, CachePc base) : s_(s), base_(base) {
    size_t bound = size_bound(s.f, plan);
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

// A plan that says where its counters are to be found.
struct Counting {
  Plan plan;
  Counters counters;
  View::Expected expected;

  void insert(Where where, uint32_t index, View::Seen& into) {
    Counter c = counters.allocate();
    plan.insert(where, index, {Op{.kind = Op::AddCounter, .counter = c, .value = 1}});
    into.insert(c.index);
  }
};

enum Places : unsigned { Entries = 1, Blocks = 2, Befores = 4, Afters = 8, Edges = 16, Sites = 32, All = 63 };

Counting count(const x86::Function& f, unsigned places, Random& random, unsigned one_in = 1) {
  Counting c;
  std::vector<std::function<void()>> todo;
  auto add = [&](Where where, uint32_t index, View::Seen& into) {
    if (random() % one_in == 0) todo.push_back([&c, where, index, &into] { c.insert(where, index, into); });
  };
  if (places & Entries) add(Where::Entry, 0, c.expected.entry);
  for (BlockId b = 0; b < f.blocks.size(); b++) {
    const Block& block = f.blocks[b];
    bool follows_call = false;
    if (places & Blocks) add(Where::Block, b, c.expected.block[b]);
    for (uint32_t n = block.first; n < block.first + block.count; n++) {
      if (places & Befores) add(Where::Before, n, c.expected.before[n]);
      if ((places & Afters) && (block.ends == BlockEnd::FallThrough || n + 1 < block.first + block.count))
        add(Where::After, n, c.expected.after[n]);
    }
    if (places & Edges) {
      if (block.ends == BlockEnd::Branch || block.ends == BlockEnd::Jump) add(Where::Taken, b, c.expected.taken[b]);
      if (block.ends == BlockEnd::Branch || block.ends == BlockEnd::FallThrough ||
          (block.ends == BlockEnd::Call && block.fallthrough != no_block))
        add(Where::FallThrough, b, c.expected.fall[b]);
    }
    for (const Block& other : f.blocks) {
      if (f.blocks.size() > 300) break;
      follows_call |= other.ends == BlockEnd::Call && other.fallthrough == b;
    }
    if ((places & Sites) && follows_call) add(Where::ReturnSite, b, c.expected.site[b]);
  }
  std::shuffle(todo.begin(), todo.end(), random);  // a tool may ask in any order
  for (auto& t : todo) t();
  return c;
}

void check_random(Random& random, size_t blocks, size_t max_size, unsigned places, unsigned one_in = 1) {
  std::vector<uint64_t> begins;
  Bytes bytes = random_function(random, blocks, max_size, begins);
  Subjects s(bytes, begins[random() % std::min<size_t>(begins.size(), 4)]);
  if (random() % 2)
    for (BlockId b = 0; b < s.f.blocks.size(); b += 7)
      if (s.f.blocks[b].begin != s.f.entry) s.f.jump_targets.push_back(s.f.blocks[b].begin);
  if (blocks > 1000) {
    ASSERT_GT(s.f.blocks.size(), blocks / 2);
  }
  Counting c = count(s.f, places, random, one_in);
  View v(s, c.plan, {0x2000'0000 + random() % 64 * 16});
  v.expected = c.expected;
  v.check();
}

TEST(Lower, RandomFunctions) {
  Random random(1);
  for (int round = 0; round < 1500 && !HasFailure(); round++) {
    SCOPED_TRACE(fmt::format("round {}", round));
    check_random(random, random() % 40 + 1, random() % 3 ? 20 : 200, round % 3 ? unsigned(random()) & All : 0);
  }
}

TEST(Lower, ProbesHereAndThere) {
  Random random(2);
  for (int round = 0; round < 1000 && !HasFailure(); round++) {
    SCOPED_TRACE(fmt::format("round {}", round));
    check_random(random, random() % 30 + 1, random() % 60 + 1, All, 4);
  }
}

TEST(Lower, LargeFunctions) {
  Random random(3);
  for (unsigned places :
       {0u, unsigned(Blocks), unsigned(Blocks | Entries), unsigned(Befores | Afters), unsigned(Edges), unsigned(All)}) {
    SCOPED_TRACE(fmt::format("places {}", places));
    check_random(random, 3000, 200, places);
    check_random(random, 3000, 10, places);
    check_random(random, 20'000, 4, places);
    if (HasFailure()) return;
  }
}

// Near branches must stay near enough, with the longest of probes between them, and nothing may be longer than foretold.
TEST(Lower, LongProbesStayWithinTheirBounds) {
  Random random(4);
  for (int round = 0; round < 4000 && !HasFailure(); round++) {
    std::vector<uint64_t> begins;
    Bytes bytes = random_function(random, random() % 30 + 1, random() % 40 + 1, begins);
    Subjects s(bytes, begins[0]);
    Plan plan;
    auto op = [&] {
      static constexpr int64_t values[] = {1, -1, 1000, int64_t{1} << 40, INT64_MIN, INT32_MIN};
      int64_t value = values[random() % 6];
      auto kind = static_cast<Op::Kind>(random() % (Op::Call + 1));
      if (kind == Op::Load || kind == Op::Store) value = 16;
      return Op{.kind = kind,
                .temp = Temp(random() % 2),
                .other = Temp(random() % 2),
                .reg = x86::Gpr(random() % 16),
                .count = 1,
                .counter = {uint32_t(random() % 1000)},
                .value = value};
    };
    for (BlockId b = 0; b < s.f.blocks.size(); b++) {
      auto where = static_cast<Where>(round % 2 ? random() % 7
                                                : 1 + random() % 3);  // without probes of edges, branches may be short
      uint32_t index = where == Where::Before || where == Where::After ? s.f.blocks[b].first : b;
      for (int n = random() % 3; n >= 0; n--) {
        if (random() % 3 == 0)
          plan.insert(where, index, {op(), op(), op(), op(), op(), op(), op(), op(), op(), op(), op(), op()});
        else plan.insert(where, index, {op()});
      }
    }
    View(s, plan, {0x2000'0000 + random() % 64 * 16}).check_sizes();
  }
}

// ---- Probes, executed ----------------------------------------------------------------------------------------------

}  // namespace

// void weir_test_enter(Registers*, void* code): as a program that is at `code` with these registers; the code leaves through
// weir_test_leave, which keeps what it had.
extern "C" {
void weir_test_enter(rt::Registers* registers, const void* code);
extern const char weir_test_leave[];
uint64_t weir_test_host_rsp, weir_test_code;
rt::Registers weir_test_result;
}
asm(R"(
        .text
weir_test_enter:
        push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
        mov %rsp, weir_test_host_rsp(%rip)
        mov %rsi, weir_test_code(%rip)
        pushq 128(%rdi); popfq
        mov %rdi, %rsp
        mov 0(%rsp), %rax; mov 8(%rsp), %rcx; mov 16(%rsp), %rdx; mov 24(%rsp), %rbx
        mov 40(%rsp), %rbp; mov 48(%rsp), %rsi; mov 56(%rsp), %rdi; mov 64(%rsp), %r8
        mov 72(%rsp), %r9; mov 80(%rsp), %r10; mov 88(%rsp), %r11; mov 96(%rsp), %r12
        mov 104(%rsp), %r13; mov 112(%rsp), %r14; mov 120(%rsp), %r15; mov 32(%rsp), %rsp
        jmp *weir_test_code(%rip)
weir_test_leave:
        mov %rsp, 32+weir_test_result(%rip)
        lea 144+weir_test_result(%rip), %rsp
        mov %rax, -144(%rsp); mov %rcx, -136(%rsp); mov %rdx, -128(%rsp); mov %rbx, -120(%rsp)
        mov %rbp, -104(%rsp); mov %rsi, -96(%rsp); mov %rdi, -88(%rsp); mov %r8, -80(%rsp)
        mov %r9, -72(%rsp); mov %r10, -64(%rsp); mov %r11, -56(%rsp); mov %r12, -48(%rsp)
        mov %r13, -40(%rsp); mov %r14, -32(%rsp); mov %r15, -24(%rsp)
        lea -8(%rsp), %rsp
        pushfq
        cld
        mov weir_test_host_rsp(%rip), %rsp
        pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
        ret
)");

namespace {

constexpr uint32_t cells = 64, all_cells = 1 << 16;
constexpr uint64_t flag_bits[6] = {1, 4, 16, 64, 128, 2048};  // CF PF AF ZF SF OF, as x86::Flag has them
constexpr uint64_t DF_bit = 1024;

// A thread block, some memory, and code that leaves to weir_test_leave and has a routine to call.
struct Machine {
  rt::ThreadBlock* block;
  uint64_t* counters;
  std::byte* code;
  uint64_t memory[cells];
  uint64_t stack[64];

  Machine() {
    auto map = [](size_t size) {
      return static_cast<char*>(
          mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    };
    char* p = map(rt::counters_offset + 8 * all_cells);
    block = reinterpret_cast<rt::ThreadBlock*>(p);
    counters = reinterpret_cast<uint64_t*>(p + rt::counters_offset);
    code = reinterpret_cast<std::byte*>(map(room + 4096));
    Emitter e({leave(), 256}, {});
    e.bytes(0xff, 0x25, 0, 0, 0, 0);  // jmp [rip]
    e.u64(reinterpret_cast<uint64_t>(weir_test_leave));
    block->enter_routine = block->enter_probe = reinterpret_cast<uint64_t>(leave() + e.offset());
    e.store_gs(x86::RAX, gs_spill(3));
    e.load_gs(x86::RAX, offsetof(rt::ThreadBlock, target));
    e.lea(x86::RAX, x86::RAX, 1);
    e.store_gs(x86::RAX, offsetof(rt::ThreadBlock, target));  // counts the calls
    e.load_gs(x86::RAX, gs_spill(3));
    e.bytes(0xff, 0xe1);  // jmp rcx
    use_gs(block);
  }
  std::byte* leave() const { return code + room; }
  // To `code`; what leaves the function leaves.
  Lowered lower(const Subjects& s, const Plan& plan) const {
    return lowered(s, plan, {code, room}, {reinterpret_cast<uint64_t>(code)},
                   [&](AppPc) { return CachePc{reinterpret_cast<uint64_t>(leave())}; });
  }
  static void use_gs(const void* base) { syscall(SYS_arch_prctl, ARCH_SET_GS, base); }

  static constexpr size_t room = 4 << 20;
};

// What the operations mean.
struct Model {
  uint64_t temp[2] = {}, counters[cells], memory[cells], arguments[2] = {};
  uint64_t calls = 0;
  bool is_valid = true;  // all accesses are to the memory, and aligned

  void run(std::span<const Op> ops, const rt::Registers& r, const uint64_t* memory_base, AppPc app) {
    for (size_t k = 0; k < ops.size(); k++) {
      const Op& op = ops[k];
      uint64_t& t = temp[int(op.temp)];
      uint64_t offset = temp[int(op.other)] + uint64_t(op.value) - reinterpret_cast<uint64_t>(memory_base);
      uint64_t index = offset % 8 ? cells : offset / 8;
      auto value = uint64_t(op.value);
      switch (op.kind) {
        case Op::PushFrame:
        case Op::PopFrame:
        case Op::BeginLeaf:
        case Op::EndLeaf:
        case Op::ArriveFrame:
        case Op::ResyncFrames:
        case Op::SetJumpSite:
        case Op::CallWith: FAIL() << "not modelled: tests/run/profile-*.sh"; break;
        case Op::AddCounter: counters[op.counter.index] += value; break;
        case Op::AddClock: counters[(app.value >> 2) % Counters::clock_cells] += value; break;
        case Op::Set: t = value; break;
        case Op::GetRegister: t = r.gpr[op.reg]; break;
        case Op::LoadCounter: t = counters[op.counter.index]; break;
        case Op::StoreCounter: counters[op.counter.index] = t; break;
        case Op::Load: index < cells ? void(t = memory[index]) : void(is_valid = false); break;
        case Op::Store: index < cells ? void(memory[index] = t) : void(is_valid = false); break;
        case Op::Add: t += value; break;
        case Op::SkipUnless: k += t == value ? 0 : op.count; break;
        case Op::Call: calls++, arguments[0] = temp[0], arguments[1] = temp[1]; break;
      }
      if (!is_valid) return;
    }
  }
};

int64_t random_value(Random& random) {
  switch (random() % 6) {
    case 0: return 1;
    case 1: return int64_t(random() % 256) - 128;
    case 2: return int32_t(random());
    case 3: return int64_t(random());
    case 4: return int64_t{1} << random() % 64;
    default: return -(int64_t{1} << random() % 63);
  }
}

Op random_op(Random& random, const uint64_t* memory) {
  Op op{.kind = static_cast<Op::Kind>(random() % (Op::Call + 1)),
        .temp = Temp(random() % 2),
        .other = Temp(random() % 2),
        .reg = x86::Gpr(random() % 16),
        .count = uint8_t(random() % 6),
        .counter = {uint32_t(random() % cells)},
        .value = random_value(random)};
  if (op.kind == Op::Load || op.kind == Op::Store) op.value = int64_t(random() % 8) * 8;
  if (op.kind == Op::Set && random() % 2) op.value = reinterpret_cast<int64_t>(memory + random() % cells);
  if (op.kind == Op::SkipUnless && random() % 2) op.value = 7;
  if (op.kind == Op::Set && random() % 3 == 0) op.value = 7;
  if (op.kind == Op::Call && random() % 2) op.kind = Op::AddCounter;
  return op;
}

// Plan::insert() takes a list that is written down: this makes one of any length.
template <size_t n = 0>
void insert(Plan& plan, Where where, uint32_t index, std::span<const Op> ops) {
  if (ops.size() == n)
    [&]<size_t... i>(std::index_sequence<i...>) { plan.insert(where, index, {ops[i]...}); }(std::make_index_sequence<n>{});
  else if constexpr (n < 48) insert<n + 1>(plan, where, index, ops);
}

// One probe before one instruction, with any registers live: the tool gets what it asked for, and the program sees nothing.
void execute(Machine& m, Random& random, std::span<const Op> ops, x86::RegSet live) {
  Subjects s({0x90, 0xe9, 0, 0, 1, 0}, 0);  // nop; jmp out
  s.live.live_in[0] = live;
  Plan plan;
  insert(plan, Where::Before, 0, ops);
  Lowered out = m.lower(s, plan);
  ASSERT_LE(out.size, size_bound(s.f, plan));

  rt::Registers before{};
  for (uint64_t& r : before.gpr) r = random() % 4 ? random() : reinterpret_cast<uint64_t>(m.memory + random() % cells);
  before.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  before.flags = 0x202 | (random() % 2 ? DF_bit : 0);
  for (uint64_t f : flag_bits) before.flags |= random() % 2 ? f : 0;
  for (uint32_t i = 0; i < cells; i++) m.counters[i] = random() % 2 ? random() : 7, m.memory[i] = random();
  for (uint64_t& w : m.stack) w = random();
  m.block->target = 0;
  Model model;
  memcpy(model.counters, m.counters, sizeof model.counters);
  memcpy(model.memory, m.memory, sizeof model.memory);
  model.run(ops, before, m.memory, {app_base});
  if (!model.is_valid) return;
  uint64_t stack[64];
  memcpy(stack, m.stack, sizeof stack);

  weir_test_enter(&before, m.code + out.entry);

  const rt::Registers& after = weir_test_result;
  for (uint32_t i = 0; i < cells; i++) {
    ASSERT_EQ(m.counters[i], model.counters[i]) << "counter " << i;
    ASSERT_EQ(m.memory[i], model.memory[i]) << "word " << i;
  }
  for (unsigned r = 0; r < 16; r++)
    ASSERT_TRUE(after.gpr[r] == before.gpr[r] || !(live.gpr >> r & 1) || r == x86::RSP) << "register " << r;
  ASSERT_EQ(after.gpr[x86::RSP], before.gpr[x86::RSP]);
  for (int f = 0; f < 6; f++)
    ASSERT_TRUE(!((after.flags ^ before.flags) & flag_bits[f]) || !(live.flags >> f & 1)) << "flag " << f;
  ASSERT_EQ(after.flags & DF_bit, before.flags & DF_bit);
  ASSERT_EQ(memcmp(stack, m.stack, sizeof stack), 0) << "the stack was written to";
  ASSERT_EQ(m.block->target, model.calls);
  if (model.calls) {
    ASSERT_EQ(m.block->routine_args[0], model.arguments[0]);
    ASSERT_EQ(m.block->routine_args[1], model.arguments[1]);
  }
}

std::string show(std::span<const Op> ops, x86::RegSet live) {
  static const char* const names[] = {"AddCounter", "AddClock", "Set", "GetRegister", "LoadCounter", "StoreCounter",
                                      "Load",       "Store",    "Add", "SkipUnless",  "Call"};
  std::string text = fmt::format("live {:04x}, flags {:02x}", live.gpr, live.flags);
  for (const Op& o : ops)
    text += fmt::format("\n  {} {} {} r{} count {} counter {} value {:#x}", names[o.kind], "AB"[int(o.temp)],
                        "AB"[int(o.other)], int(o.reg), o.count, o.counter.index, uint64_t(o.value));
  return text;
}

x86::RegSet random_live(Random& random) {
  x86::RegSet live = x86::RegSet::all();
  if (random() % 3) live.gpr = random() % 2 ? uint16_t(random()) : uint16_t(random() | random() | random());
  if (random() % 2) live.flags = random() % 2 ? 0 : uint8_t(random() % 64);
  return live;
}

// The longest of probes between a short branch and its target, where everything is live: the branch must still reach.
TEST(Lower, BranchesOverLongProbes) {
  Op call{.kind = Op::Call}, add{.kind = Op::AddCounter, .value = int64_t{1} << 40},
      skip{.kind = Op::SkipUnless, .count = 1, .value = INT64_MIN}, load{.kind = Op::Load};
  for (std::vector<Op> ops : std::vector<std::vector<Op>>{{call}, {add}, {load}, {skip, skip}, {load, load}, {call, add}})
    for (uint8_t size = 1; size < 120; size++) {
      Bytes bytes{0x74, size};  // je over nops
      bytes.resize(2 + size, 0x90);
      bytes.insert(bytes.end(), {0xe9, 0, 0, 1, 0});
      Subjects s(bytes, 0);
      Plan plan;
      insert(plan, Where::Block, 1, ops);
      ASSERT_NO_FATAL_FAILURE(View(s, plan, {0x2000'0000}).check_sizes());  // lower() itself checks every short branch
    }
}

TEST(Lower, SystemCallNumberFromGs) {
  // mov eax, 39; mov rax, gs:[0]; syscall; jmp to itself: it may be any call
  Subjects s({0xb8, 39, 0, 0, 0, 0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xfe}, 0);
  std::vector<std::byte> code(size_bound(s.f, {}));
  Lowered out = lowered(s, {}, code, {0x2000'0000}, [](AppPc) { return CachePc{}; });
  uint8_t jump[] = {0x65, 0xff, 0x24, 0x25, offsetof(rt::ThreadBlock, enter_syscall)};
  EXPECT_NE(memmem(code.data(), out.size, jump, sizeof jump), nullptr);
}

TEST(Probe, RandomOperations) {
  Machine m;
  Random random(5);
  for (int round = 0; round < 40'000; round++) {
    std::vector<Op> ops;
    Op a = random_op(random, m.memory), b = random_op(random, m.memory);  // no temporary is read before it is set
    a.temp = Temp::A, b.temp = Temp::B;
    a.kind = random() % 2   ? Op::Set
             : random() % 2 ? Op::GetRegister
                            : Op::LoadCounter,
    b.kind = random() % 2 ? Op::Set : Op::GetRegister;
    ops = {a, b};
    for (uint64_t n = random() % 12; n > 0; n--) ops.push_back(random_op(random, m.memory));
    x86::RegSet live = random_live(random);
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(ops, live)));
    ASSERT_NO_FATAL_FAILURE(execute(m, random, ops, live));
  }
}

TEST(Probe, AdditionsOfAnyValue) {
  Machine m;
  Random random(6);
  for (int round = 0; round < 10'000; round++) {
    std::vector<Op> ops;
    for (uint64_t n = random() % 4 + 1; n > 0; n--)
      ops.push_back({.kind = random() % 2 ? Op::AddCounter : Op::AddClock,
                     .counter = {uint32_t(random() % cells)},
                     .value = random_value(random)});
    x86::RegSet live = random_live(random);
    SCOPED_TRACE(fmt::format("round {}: {}", round, show(ops, live)));
    ASSERT_NO_FATAL_FAILURE(execute(m, random, ops, live));
  }
}

TEST(Probe, AllRegistersAtOnce) {
  Machine m;
  Random random(7);
  for (int round = 0; round < 100; round++) {
    std::vector<Op> ops;
    for (uint32_t r = 0; r < 16; r++) {
      Temp t = Temp(random() % 2);
      ops.push_back({.kind = Op::GetRegister, .temp = t, .reg = x86::Gpr(r)});
      ops.push_back({.kind = Op::AddCounter, .counter = {40}, .value = 1});
      ops.push_back({.kind = Op::StoreCounter, .temp = t, .counter = {10 + r}});
    }
    ASSERT_NO_FATAL_FAILURE(execute(m, random, ops, random_live(random)));
  }
}

// A dead register is not dead for a tool that reads it: not for other probes, and not for what comes through the table.
TEST(Probe, ReadsOfDeadRegisters) {
  Machine m;
  Subjects s({0x90, 0x90, 0xb8, 0, 0, 0, 0, 0xb9, 0, 0, 0, 0, 0x31, 0xd2, 0xe9, 0, 0, 1, 0},
             0);  // nop; nop; mov eax, 0; mov ecx, 0; xor edx, edx; jmp out
  Plan plan;
  for (uint32_t n : {0, 1})
    plan.insert(Where::Before, n,
                {{.kind = Op::Set, .temp = Temp::A, .value = 1}, {.kind = Op::Set, .temp = Temp::B, .value = 2}});
  uint32_t cell = 10;
  for (x86::Gpr r : {x86::RAX, x86::RCX, x86::RDX})
    plan.insert(Where::Before, 2, {{.kind = Op::GetRegister, .reg = r}, {.kind = Op::StoreCounter, .counter = {cell++}}});
  Lowered out = m.lower(s, plan);
  rt::Registers r{};
  r.gpr[x86::RAX] = 100, r.gpr[x86::RDX] = 102, r.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  m.block->rcx = 101;
  weir_test_enter(&r, m.code + out.table[0].offset);
  EXPECT_EQ(m.counters[10], 100u);
  EXPECT_EQ(m.counters[11], 101u);
  EXPECT_EQ(m.counters[12], 102u);
}

// A probe that looks at the program stays at the begin of its block, be the flags dead or not.
TEST(Probe, BlockProbesThatReadStayAtTheBegin) {
  Machine m;
  Subjects s({0x48, 0x89, 0xf7, 0x19, 0xc8, 0x31, 0xd2, 0xe9, 0, 0, 1, 0},
             0);  // mov rdi, rsi; sbb eax, ecx; xor edx, edx; jmp out
  Plan plan;
  plan.insert(Where::Block, 0, {{.kind = Op::GetRegister, .reg = x86::RDI}, {.kind = Op::StoreCounter, .counter = {10}}});
  plan.insert(Where::Block, 0, {{.kind = Op::AddCounter, .counter = {11}, .value = 1}});
  Lowered out = m.lower(s, plan);
  rt::Registers r{};
  r.gpr[x86::RDI] = 1, r.gpr[x86::RSI] = 2, r.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
  m.counters[11] = 0;
  weir_test_enter(&r, m.code + out.entry);
  EXPECT_EQ(m.counters[10], 1u);
  EXPECT_EQ(m.counters[11], 1u);
}

// ---- Whole functions, executed -------------------------------------------------------------------------------------

// Plain instructions that leave rsp alone, and touch no memory but the red zone and the program's own gs.
void append_plain(Random& random, Bytes& b) {
  auto any = [&] {
    uint8_t r = random() % 16;
    return r == x86::RSP ? uint8_t{x86::RDX} : r;
  };
  auto two = [&](Bytes opcode, uint8_t reg, uint8_t rm) {  // REX.W, both registers
    b.push_back(0x48 | (reg >> 3) << 2 | rm >> 3);
    b.insert(b.end(), opcode.begin(), opcode.end());
    b.push_back(0xc0 | (reg & 7) << 3 | (rm & 7));
  };
  uint8_t r = any(), q = any(), slot = uint8_t(-8 * int(random() % 8 + 1));
  switch (random() % 23) {
    case 0:
    case 1:
    case 2:
    case 3: return two({uint8_t(0x01 + 8 * (random() % 8))}, q, r);  // add or adc sbb and sub xor cmp
    case 4: two({0x83}, uint8_t(random() % 8), r); return b.push_back(uint8_t(random()));
    case 5: return two({0xff}, uint8_t(random() % 2), r);      // inc, dec
    case 6: return two({0xf7}, uint8_t(2 + random() % 2), r);  // not, neg
    case 7: two({0xc1}, uint8_t(random() % 8), r); return b.push_back(uint8_t(random() % 70));
    case 8: return two({0xd3}, uint8_t(random() % 8), r);                                            // shifts by cl
    case 9: two({0x0f, 0xba}, uint8_t(4 + random() % 4), r); return b.push_back(uint8_t(random()));  // bt, bts, btr, btc
    case 10: return two({0x89}, q, r);
    case 11: return two({0x0f, uint8_t(0x40 + random() % 16)}, q, r);  // cmov
    case 12: return two({0x0f, uint8_t(0x90 + random() % 16)}, 0, r);  // set
    case 13: return two({0x0f, 0xaf}, q, r), two({0x39}, q, r);        // imul, cmp: it leaves flags undefined
    case 14: return two({0x87}, q, r);                                 // xchg
    case 15: return two({0x0f, 0xb6}, q, r);                           // movzx
    case 16:
      b.push_back(std::array<uint8_t, 5>{0xf5, 0xf8, 0xf9, 0x9e, 0x9f}[random() % 5]);
      return;  // cmc clc stc sahf lahf
    case 17: b.insert(b.end(), {uint8_t(0x48 | (r >> 3) << 2), 0x89, uint8_t(0x44 | (r & 7) << 3), 0x24, slot}); return;
    case 18:
      b.insert(b.end(), {uint8_t(0x48 | (r >> 3) << 2), 0x13, uint8_t(0x44 | (r & 7) << 3), 0x24, slot});
      return;  // adc r, [rsp - n]
    case 19:   // and q, 56; then add r, gs:[q + 8] or mov gs:[q*2 + disp32], r
    case 20: {
      b.insert(b.end(), {uint8_t(0x48 | q >> 3), 0x83, uint8_t(0xe0 | (q & 7)), 56});
      bool store = random() % 2, index = random() % 2;
      uint8_t rex = 0x48 | (r >> 3) << 2, reg = (r & 7) << 3;
      b.push_back(0x65);
      if (index)
        b.insert(b.end(), {uint8_t(rex | (q >> 3) << 1), uint8_t(store ? 0x89 : 0x03), uint8_t(0x04 | reg),
                           uint8_t(0x45 | (q & 7) << 3), 8, 0, 0, 0});
      else if ((q & 7) == 4)
        b.insert(b.end(), {uint8_t(rex | q >> 3), uint8_t(store ? 0x11 : 0x8b), uint8_t(0x44 | reg), 0x24, 8});
      else b.insert(b.end(), {uint8_t(rex | q >> 3), uint8_t(store ? 0x11 : 0x8b), uint8_t(0x40 | reg | (q & 7)), 8});
      return;
    }
    case 21:  // rdgsbase r64, r32; wrgsbase of what it was
      b.insert(b.end(), {0xf3, uint8_t(0x48 | r >> 3), 0x0f, 0xae, uint8_t(0xc8 | (r & 7)), 0xf3, uint8_t(0x48 | r >> 3),
                         0x0f, 0xae, uint8_t(0xd8 | (r & 7))});
      b.insert(b.end(), {0xf3, uint8_t(0x40 | q >> 3), 0x0f, 0xae, uint8_t(0xc8 | (q & 7))});
      return;
    default:
      b.insert(b.end(), {0x65, uint8_t(0x48 | (r >> 3) << 2), uint8_t(random() % 2 ? 0x8b : 0x01),
                         uint8_t(0x04 | (r & 7) << 3), 0x25, uint8_t(random() % 16 * 8), 0, 0, 0});
  }
}

// Blocks with branches ahead, and some back while bits are left in a word of the red zone. All ends are a jump out.
Bytes running_function(Random& random, size_t count) {
  std::vector<Bytes> bodies(count);
  std::vector<uint64_t> at{0};
  std::vector<int> kind(count);
  for (size_t i = 0; i < count; i++) {
    for (uint64_t n = random() % 8 + (i == 0); n > 0; n--) append_plain(random, bodies[i]);
    kind[i] = i + 1 == count ? 2 : int(random() % 5);
    if (kind[i] == 3)
      bodies[i].insert(bodies[i].end(),
                       {0xd1, 0x6c, 0x24, uint8_t(-68 - 4 * int(random() % 8))});  // shr dword [rsp - n], 1
    at.push_back(at.back() + bodies[i].size() + (kind[i] == 2 ? 5 : kind[i] == 4 ? 0 : 6));
  }
  Bytes all;
  for (size_t i = 0; i < count; i++) {
    all.insert(all.end(), bodies[i].begin(), bodies[i].end());
    size_t target = kind[i] == 3 ? random() % (i + 1) : i + 1 < count ? i + 1 + random() % (count - i - 1) : 0;
    uint64_t to = kind[i] == 2 && (i + 1 == count || random() % 8 == 0) ? at[count] + 0x100 : at[target];
    if (kind[i] == 4) continue;
    if (kind[i] == 2) all.push_back(0xe9);
    else all.insert(all.end(), {0x0f, uint8_t(kind[i] == 3 ? 0x85 : 0x80 | random() % 16)});
    append_u32(all, to - at[i + 1]);
  }
  return all;
}

struct State {
  rt::Registers registers;
  uint64_t stack[64], gs[64];
};

// Counters that tell whether flow is kept: what comes into a block is what goes out of it.
struct Flow {
  struct OfBlock {
    uint32_t block, first_insn, last_insn, taken, fall;
  };
  std::vector<OfBlock> blocks;
  uint32_t entry = 0;
};

Flow plan_flow(const x86::Function& f, Random& random, Plan& plan, const uint64_t* memory) {
  Flow flow;
  uint32_t next = cells;
  auto count = [&](Where where, uint32_t index) {
    plan.insert(where, index, {{.kind = Op::AddCounter, .counter = {next}, .value = 1}});
    return next++;
  };
  auto disturb = [&](Where where, uint32_t index) {
    std::vector<Op> ops{{.kind = Op::GetRegister, .temp = Temp::A, .reg = x86::Gpr(random() % 16)},
                        {.kind = Op::Set, .temp = Temp::B, .value = reinterpret_cast<int64_t>(memory)}};
    for (uint64_t n = random() % 4; n > 0; n--) {
      Op op = random_op(random, memory);
      if (op.temp == Temp::B && op.kind != Op::Store && op.kind != Op::StoreCounter)
        op.temp = Temp::A;  // B stays an address
      op.other = Temp::B;
      ops.push_back(op);
    }
    insert(plan, where, index, ops);
  };
  flow.entry = count(Where::Entry, 0);
  for (BlockId b = 0; b < f.blocks.size(); b++) {
    const Block& block = f.blocks[b];
    uint32_t last = block.first + block.count - 1;
    if (random() % 2) disturb(Where::Block, b);
    flow.blocks.push_back({count(Where::Block, b), count(Where::Before, block.first), count(Where::Before, last),
                           count(Where::Taken, b), count(Where::FallThrough, b)});
    for (uint32_t n = block.first; n <= last; n++) {
      if (random() % 2) disturb(Where::Before, n);
      if (n != last && random() % 2) disturb(Where::After, n);
    }
    if (random() % 2) disturb(Where::Taken, b);
    if (random() % 2) disturb(Where::FallThrough, b);
  }
  return flow;
}

TEST(Probe, RandomFunctionsRunAsTheyWould) {
  if (!(getauxval(AT_HWCAP2) & 2)) GTEST_SKIP() << "no rdgsbase";
  Machine m;
  Random random(8);
  char* app = static_cast<char*>(mmap(reinterpret_cast<void*>(app_base), 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  ASSERT_EQ(reinterpret_cast<uint64_t>(app), app_base);
  for (int round = 0; round < 10'000; round++) {
    SCOPED_TRACE(fmt::format("round {}", round));
    Subjects s(running_function(random, random() % 30 + 1), 0);
    Plan plan;
    Flow flow = plan_flow(s.f, random, plan, m.memory);
    size_t bound = size_bound(s.f, plan);
    ASSERT_LT(bound, m.room);
    Lowered out = m.lower(s, plan);
    ASSERT_LE(out.size, bound);
    ASSERT_EQ(out.not_supported, 0u);
    State before, native, ours;
    for (uint64_t& w : before.stack) w = random();
    for (uint64_t& w : before.gs) w = random();
    for (uint64_t& r : before.registers.gpr) r = random();
    before.registers.gpr[x86::RSP] = reinterpret_cast<uint64_t>(m.stack + 32);
    before.registers.flags = 0x202;
    memcpy(app, s.bytes.data(), s.bytes.size());
    Emitter e({reinterpret_cast<std::byte*>(app) + s.bytes.size() + 0x100, 16}, {});
    e.bytes(0xff, 0x25, 0, 0, 0, 0);  // jmp [rip]
    e.u64(reinterpret_cast<uint64_t>(weir_test_leave));
    uint64_t gs[64];
    auto run = [&](const void* code, State& after, bool native_gs) {
      memcpy(gs, before.gs, sizeof gs);
      memcpy(m.stack, before.stack, sizeof m.stack);
      m.block->app_gs = reinterpret_cast<uint64_t>(gs);
      if (native_gs) m.use_gs(gs);
      weir_test_enter(&before.registers, code);
      m.use_gs(m.block);
      after.registers = weir_test_result;
      memcpy(after.stack, m.stack, sizeof m.stack);
      memcpy(after.gs, gs, sizeof gs);
    };
    run(app, native, true);
    memset(m.counters, 0, 8 * all_cells);
    run(m.code + out.entry, ours, false);
    for (int r = 0; r < 16; r++) ASSERT_EQ(ours.registers.gpr[r], native.registers.gpr[r]) << "register " << r;
    ASSERT_EQ(ours.registers.flags, native.registers.flags);
    ASSERT_EQ(memcmp(ours.stack, native.stack, sizeof native.stack), 0);
    ASSERT_EQ(memcmp(ours.gs, native.gs, sizeof native.gs), 0);

    std::vector<uint64_t> in(s.f.blocks.size());
    in[s.f.block_at(s.f.entry)] = 1;
    uint64_t left = 0;
    ASSERT_EQ(m.counters[flow.entry], 1u);
    for (BlockId b = 0; b < s.f.blocks.size(); b++) {
      const Block& block = s.f.blocks[b];
      uint64_t n = m.counters[flow.blocks[b].block], taken = m.counters[flow.blocks[b].taken],
               fall = m.counters[flow.blocks[b].fall];
      ASSERT_EQ(m.counters[flow.blocks[b].first_insn], n);
      ASSERT_EQ(m.counters[flow.blocks[b].last_insn], n);
      ASSERT_EQ(taken + fall, n) << "block " << b;
      block.taken != no_block ? in[block.taken] += taken : left += taken;
      block.fallthrough != no_block ? in[block.fallthrough] += fall : left += fall;
    }
    for (BlockId b = 0; b < s.f.blocks.size(); b++) ASSERT_EQ(m.counters[flow.blocks[b].block], in[b]) << "block " << b;
    ASSERT_EQ(left, 1u);
  }
}

}  // namespace
}  // namespace weir::instrument
