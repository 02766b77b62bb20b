// Functions for tests of lowering, made by chance or of given bytes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "instrument/cache_placement.h"
#include "instrument/lower.h"
#include "instrument/lowering.h"
#include "rt/abi.h"
#include "x86/encoding.h"

namespace weir::instrument {

using x86::Block;
using x86::BlockEnd;
using x86::BlockId;
using x86::Insn;
using x86::Kind;
using x86::no_block;
using Random = std::mt19937_64;

constexpr uint64_t app_base = 0x1000'0000;

using Bytes = std::vector<uint8_t>;

inline void append_u32(Bytes& b, uint64_t v) {
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

inline Bytes filler(Random& random, size_t size) {
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

inline Bytes other_end(Random& random) {
  static const std::vector<Bytes> forms = {{0xff, 0xd0},          {0xff, 0x15, 0, 1, 0, 0},
                                           {0xff, 0x54, 0x24, 8}, {0x41, 0xff, 0xd3},
                                           {0xff, 0xe0},          {0xff, 0x24, 0xc5, 0, 0, 1, 0},
                                           {0x3e, 0xff, 0xe1},    {0xc3},
                                           {0xc2, 8, 0},          {0xf3, 0xc3},
                                           {0x0f, 0x05},          {0xcc},
                                           {0x0f, 0x0b},          {0x06}};
  return forms[random() % forms.size()];
}

inline size_t end_size(const Piece& p) {
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

inline std::vector<uint64_t> lay_out(const std::vector<Piece>& pieces) {
  std::vector<uint64_t> at{0};
  for (const Piece& p : pieces) at.push_back(at.back() + p.body.size() + end_size(p));
  return at;
}

inline Bytes random_function(Random& random, size_t count, size_t max_size, std::vector<uint64_t>& begins) {
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

// A function, lifted from its bytes.
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

constexpr uint32_t first_exit = 1000;
inline Lowered lowered(const Subjects& s, const Plan& plan, std::span<std::byte> code, CachePc base,
                       std::function<CachePc(AppPc)> find, uint64_t table = rt::table_base) {
  Lowered out;
  CachePlacement placement(table, first_exit, std::move(find));
  lower({.function = s.f,
         .liveness = s.live,
         .plan = plan,
         .code = s.read,
         .out = code,
         .base = base,
         .placement = placement},
        out);
  return out;
}

// Plan::insert() takes a list that is written down: this makes one of any length.
template <size_t n = 0>
void insert(Plan& plan, Where where, uint32_t index, std::span<const Op> ops) {
  if (ops.size() == n)
    [&]<size_t... i>(std::index_sequence<i...>) { plan.insert(where, index, {ops[i]...}); }(std::make_index_sequence<n>{});
  else if constexpr (n < 48) insert<n + 1>(plan, where, index, ops);
}

}  // namespace weir::instrument
