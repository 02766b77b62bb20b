// What a caller may know of its callee. A function that calls nobody needs no frame: nothing can begin between call and return but a
// signal handler. One that overwrites the flags before it reads them leaves them to the caller's probe.

#include <algorithm>
#include <cstring>
#include <optional>

#include "tools/count/count.h"

namespace weir::count {

namespace {

constexpr int64_t max_size = 512;  // larger ones would be lifted for little

// What push, pop, leave, add and sub, which a function does with its own stack, take from it. Who does anything else may go to another
// stack: nothing.
std::optional<int64_t> taken_from_stack(std::span<const std::byte> insn) {
  auto b = [&](size_t i) { return i < insn.size() ? static_cast<uint8_t>(insn[i]) : uint8_t{0}; };
  size_t i = (b(0) & 0xf0) == 0x40;
  if (b(i) >= 0x50 && b(i) <= 0x57) return 8;
  if (b(i) >= 0x58 && b(i) <= 0x5f && (b(i) != 0x5c || i)) return -8;  // (with a prefix it is r12)
  if (b(i) == 0x68 || b(i) == 0x6a) return 8;
  bool is_short = b(i) == 0x83, is_sub = b(i + 1) == 0xec;
  if ((b(i) != 0x81 && !is_short) || (b(i + 1) != 0xc4 && !is_sub)) return std::nullopt;
  int64_t n = is_short ? static_cast<int8_t>(b(i + 2))
                       : static_cast<int32_t>(b(i + 2) | b(i + 3) << 8 | b(i + 4) << 16 | uint32_t{b(i + 5)} << 24);
  return is_sub ? n : -n;
}

// Is [rsp + `offset`] its operand in memory? (r12 may be taken for rsp.)
bool has_operand(const x86::Shape& s, std::span<const std::byte> insn, int64_t offset) {
  if (!s.modrm_offset || !(s.reads_memory || s.writes_memory) || insn.size() < s.length) return false;
  auto b = [&](size_t i) { return static_cast<uint8_t>(insn[i]); };
  uint8_t modrm = b(s.modrm_offset);
  if (modrm >= 0xc0 || (modrm & 7) != 4 || (b(s.modrm_offset + 1u) & 7) != 4) return false;
  int32_t displacement = 0;
  if (s.disp_size == 1) displacement = static_cast<int8_t>(b(s.disp_offset));
  if (s.disp_size == 4) memcpy(&displacement, &insn[s.disp_offset], 4);
  return displacement == offset;
}

// Does every way to a return leave the stack as it was at the entry? `push rax ; ret` is a jump. And is what it returns to left alone?
// Who reads it may return once more (setjmp), who writes it goes elsewhere.
bool is_balanced(const x86::Function& f, const x86::ReadMemory& code, bool& may_return_twice) {
  std::vector<std::optional<int64_t>> taken(f.blocks.size());  // when a block is entered
  std::vector<x86::BlockId> reached{f.block_at(f.entry)};
  if (reached[0] == x86::no_block) return false;
  taken[reached[0]] = 0;
  while (!reached.empty()) {
    x86::BlockId b = reached.back();
    reached.pop_back();
    int64_t now = *taken[b];
    for (const x86::Insn& i : f.insns_of(f.blocks[b])) {
      auto bytes = code(i.pc, i.shape->length);
      may_return_twice |= has_operand(*i.shape, bytes, now);
      if ((i.kind() == x86::Kind::Return && now) || may_return_twice) return false;
      if (!(i.shape->writes.gpr >> x86::RSP & 1) || i.kind() == x86::Kind::Return) continue;
      bool is_leave = bytes.size() == 1 && bytes[0] == std::byte{0xc9};  // (what rbp was set to is what it is)
      std::optional<int64_t> more = is_leave ? -now : taken_from_stack(bytes);
      if (!more) return false;
      now += *more;
    }
    for (x86::BlockId next : {f.blocks[b].fallthrough, f.blocks[b].taken}) {
      if (next == x86::no_block) continue;
      if (taken[next] && *taken[next] != now) return false;
      if (!taken[next]) taken[next] = now, reached.push_back(next);
    }
  }
  return true;
}

bool stays(const x86::Block& b) {
  switch (b.ends) {
    case x86::BlockEnd::Return: return true;
    case x86::BlockEnd::FallThrough: return b.fallthrough != x86::no_block;
    case x86::BlockEnd::Jump: return b.taken != x86::no_block;
    case x86::BlockEnd::Branch: return b.fallthrough != x86::no_block && b.taken != x86::no_block;
    default: return false;
  }
}

}  // namespace

bool Count::is_leaf(const instrument::Subject& subject, uint32_t function) {
  Function& f = functions_[function];
  if (!subject.is_pristine) return false;
  if (f.is_leaf != Known::NotYet) return f.is_leaf == Known::Yes;
  f.is_leaf = Known::No;
  AppRange bounds = subject.bounds_of(f.begin);
  if (bounds.begin != f.begin || bounds.end - bounds.begin > max_size) return false;
  auto bytes = subject.image_code(bounds.begin, static_cast<size_t>(bounds.end - bounds.begin));
  x86::ReadMemory code = [&](AppPc at, size_t size) -> std::span<const std::byte> {
    auto offset = static_cast<size_t>(at - bounds.begin);
    return at < bounds.begin || offset >= bytes.size() ? std::span<const std::byte>{}
                                                       : bytes.subspan(offset, std::min(size, bytes.size() - offset));
  };
  x86::Function lifted = x86::lift(f.begin, bounds, code, code);
  bool is_leaf =
      !lifted.blocks.empty() && std::ranges::all_of(lifted.blocks, stays) && is_balanced(lifted, code, f.may_return_twice);
  if (is_leaf) f.is_leaf = Known::Yes;
  return is_leaf;
}

bool Count::overwrites_flags(const instrument::Subject& subject, uint32_t function) {
  constexpr uint8_t arithmetic = x86::AllFlags & ~x86::DF;
  Function& f = functions_[function];
  if (!subject.is_pristine) return false;
  if (f.overwrites_flags != Known::NotYet) return f.overwrites_flags == Known::Yes;
  f.overwrites_flags = Known::No;
  auto bytes = subject.image_code(f.begin, 64);
  uint8_t left = arithmetic;
  while (left && bytes.size() >= 16) {
    x86::Insn i = x86::decode(bytes, f.begin);
    if (!i.shape->known || i.kind() != x86::Kind::Plain || i.shape->reads.flags & left) return false;
    left &= static_cast<uint8_t>(~i.shape->kills.flags);
    bytes = bytes.subspan(i.shape->length);
  }
  if (!left) f.overwrites_flags = Known::Yes;
  return !left;
}

}  // namespace weir::count
