// Bytes as code: lifting, liveness and operands of anything must end, stay inside the bytes, and hold what function.h promises.
//
// Input: two bytes say where the entry is, two how many bytes are inside the bounds of the function; the rest is the code.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/result.h"
#include "x86/function.h"
#include "x86/liveness.h"
#include "x86/operands.h"

using namespace weir;
using namespace weir::x86;

namespace {

constexpr AppPc base{0x400000};
constexpr LiftOptions options{.max_insns = 20'000};

bool within(RegSet part, RegSet whole) { return (part | whole) == whole; }

void check_insns(const Function& f, const Block& block) {
  AppPc pc = block.begin;
  for (const Insn& insn : f.insns_of(block)) {
    CHECK(insn.pc == pc);
    CHECK(insn.shape != nullptr);
    CHECK(insn.shape->length <= 15);
    CHECK(insn.shape->disp_size == 0 || insn.shape->disp_offset + insn.shape->disp_size <= insn.shape->length);
    CHECK(insn.shape->imm_size == 0 || insn.shape->imm_offset + insn.shape->imm_size <= insn.shape->length);
    CHECK(within(insn.shape->kills, insn.shape->writes));
    pc = insn.next();
  }
  CHECK(block.end == pc);
}

// Of the instruction in `bytes`, which hold nothing else.
void check_operands(const Insn& insn, std::span<const std::byte> bytes) {
  MemoryOperands operands = memory_operands(insn, bytes);
  CHECK(operands.size() <= insn.shape->operand_count());
  for (const MemoryOperand& o : operands) {
    CHECK(o.base == no_register || o.base < 16);
    CHECK(o.index == no_register || o.index < (o.extent == Extent::Indexed ? 32 : 16));
    CHECK(o.scale == 1 || o.scale == 2 || o.scale == 4 || o.scale == 8);
    CHECK(!o.is_rip_relative || AppPc{static_cast<uint64_t>(o.displacement)} == insn.target);
    CHECK(o.mask_in == MaskIn::Nothing ||
          (o.element != 0 && o.size % o.element == 0 && o.mask_bits % (o.size / o.element) == 0));
  }
}

void check_successor(const Function& f, BlockId id) { CHECK(id == no_block || id < f.blocks.size()); }

void check_function(const Function& f, AppRange bytes) {
  AppPc previous{};
  for (const Block& block : f.blocks) {
    CHECK(previous < block.begin);
    previous = block.begin;
    CHECK(f.bounds.contains(block.begin));
    CHECK(block.begin <= block.end && block.end <= bytes.end);
    CHECK(size_t{block.first} + block.count <= f.insns.size());
    check_insns(f, block);
    check_successor(f, block.fallthrough);
    check_successor(f, block.taken);
    if (block.fallthrough != no_block) CHECK(f.blocks[block.fallthrough].begin == block.end);
    CHECK(f.blocks[f.block_at(block.begin)].begin == block.begin);
  }
  for (AppPc target : f.jump_targets) {
    if (BlockId id = f.block_at(target); id != no_block) CHECK(f.blocks[id].is_entry);
  }
}

void check_liveness(const Function& f, const Liveness& live) {
  CHECK(live.live_in.size() == f.blocks.size() && live.live_out.size() == f.blocks.size());
  for (BlockId id = 0; id < f.blocks.size(); id++) {
    const Block& block = f.blocks[id];
    std::vector<RegSet> inside = live.inside(f, id);
    CHECK(inside.size() == block.count + size_t{1});
    CHECK(inside.front() == live.live_in[id] && inside.back() == live.live_out[id]);
    for (size_t i = 0; i < block.count; i++) {
      CHECK(within(f.insns_of(block)[i].shape->reads, inside[i]));
      CHECK(within(inside[i + 1].without(f.insns_of(block)[i].shape->kills), inside[i]));
    }
    for (BlockId next : {block.fallthrough, block.taken})
      if (next != no_block) CHECK(within(live.live_in[next], live.live_out[id]));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint16_t header[2];
  if (size <= sizeof header) return 0;
  memcpy(header, data, sizeof header);
  std::span<const std::byte> code{reinterpret_cast<const std::byte*>(data) + sizeof header, size - sizeof header};

  // The bounds may end before the bytes do, inside an instruction too.
  AppRange bytes{base, base + static_cast<int64_t>(code.size())};
  AppRange bounds{base, base + static_cast<int64_t>(1 + header[1] % code.size())};
  AppPc entry = base + static_cast<int64_t>(header[0] % bounds.size());
  auto read = [&](AppPc pc, size_t count) -> std::span<const std::byte> {
    if (!bytes.contains(pc)) return {};
    return code.subspan(pc - base).first(std::min<size_t>(count, bytes.end - pc));
  };

  Function f = lift(entry, bounds, read, read, options);
  CHECK(f.entry == entry);
  check_function(f, bytes);
  for (const Insn& insn : f.insns) {
    std::vector<std::byte> alone(insn.shape->length);
    std::ranges::copy(code.subspan(insn.pc - base, alone.size()), alone.begin());
    check_operands(insn, alone);
  }
  check_liveness(f, liveness(f));
  return 0;
}
