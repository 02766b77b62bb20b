#include "store/body.h"

#include <algorithm>
#include <cstring>

#include "x86/insn.h"

namespace weir::store {
namespace {

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

bool is_rex(std::byte b) { return (b & std::byte{0xf0}) == std::byte{0x40}; }

// A constant of four bytes may be an address, which every build changes. Small ones are numbers.
bool may_be_address(std::span<const std::byte> field) {
  if (field.size() < 4) return false;
  int32_t value;
  memcpy(&value, field.data(), sizeof value);
  return value > 0xffff || value < -0xffff;
}

struct Hashes {
  uint64_t exact = 0x57656972, loose = 0x57656972;
};

// Of one instruction. `exact` has all bytes but addresses; `loose` has the opcode, the form of its operands and small constants.
Hashes hashes_of(std::span<const std::byte> bytes, const x86::Shape& s) {
  Hashes h;
  size_t disp_end = s.disp_offset + s.disp_size, imm_end = s.imm_offset + s.imm_size;
  auto field = [&](size_t offset, size_t size) {
    return offset + size <= bytes.size() ? bytes.subspan(offset, size) : bytes.first(0);
  };
  bool is_transfer = s.kind == x86::Kind::Jump || s.kind == x86::Kind::Branch || s.kind == x86::Kind::Call;
  bool drop_disp = s.disp_size && (s.rip_relative || may_be_address(field(s.disp_offset, s.disp_size)));
  bool drop_imm = s.imm_size && (is_transfer || may_be_address(field(s.imm_offset, s.imm_size)));
  for (size_t i = 0; i < bytes.size(); i++) {
    auto byte = static_cast<uint64_t>(bytes[i]);
    bool in_disp = s.disp_size && i >= s.disp_offset && i < disp_end;
    bool in_imm = s.imm_size && i >= s.imm_offset && i < imm_end;
    if ((in_disp && drop_disp) || (in_imm && drop_imm)) continue;
    // Two lengths of one jump are the same jump.
    if (s.kind == x86::Kind::Jump) byte = 0xeb;
    if (s.kind == x86::Kind::Branch && !s.short_only) byte = 0x70u | s.condition;
    h.exact = mixed(h.exact, byte);
    if (s.kind == x86::Kind::Jump || (s.kind == x86::Kind::Branch && !s.short_only)) break;
    if (in_disp) continue;  // (a place on the stack, or in a struct)
    if (s.modrm_offset && i == s.modrm_offset) byte &= 0xc0;
    else if (s.modrm_offset && i > s.modrm_offset && !in_imm) continue;  // the SIB byte
    else if (i + 1 < bytes.size() && is_rex(bytes[i]) && i < 4 && !in_imm) byte &= 0x48;
    h.loose = mixed(h.loose, byte);
  }
  if (s.kind == x86::Kind::Jump || s.kind == x86::Kind::Branch) h.loose = h.exact;
  return h;
}

}  // namespace

void BodyReader::add(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    x86::Insn insn = x86::decode(bytes, AppPc{offset});
    size_t length = insn.shape->length;
    if (length == 0 || length > bytes.size()) return;
    if (offset >= next_) {
      Hashes h = hashes_of(bytes.first(length), *insn.shape);
      body_.instructions++;
      body_.whole = mixed(body_.whole, h.exact);
      body_.parts.push_back(h.loose);
      if (last_) body_.parts.push_back(mixed(last_, h.loose));
      last_ = h.loose;
      next_ = offset + length;
    }
    offset += length;
    bytes = bytes.subspan(length);
  }
}

Body BodyReader::end() {
  std::ranges::sort(body_.parts);
  return std::move(body_);
}

double similarity(const Body& a, const Body& b) {
  if (a.parts.empty() || b.parts.empty()) return 0;
  if (a.whole == b.whole && a.instructions == b.instructions) return 1;
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a.parts.size() && j < b.parts.size();) {
    if (a.parts[i] == b.parts[j]) common++, i++, j++;
    else if (a.parts[i] < b.parts[j]) i++;
    else j++;
  }
  return 2.0 * static_cast<double>(common) / static_cast<double>(a.parts.size() + b.parts.size());
}

}  // namespace weir::store
