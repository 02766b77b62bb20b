// At build time: from the list of common shapes to the table that is compiled into Weir.
//
//   make_common_shapes < common_shapes.txt > common_shapes.inc
//
// The list is what real programs have. Another one comes from their code:
//
//   objcopy -O binary --only-section=.text PROGRAM code && make_common_shapes CODE… > common_shapes.txt
//
// It has the shapes that most of the files have; every program has the loader and the C library, which for that reason are
// named ten times. The most frequent come first: they get the best places of the table, and lie close together. Bytes are
// decoded one instruction after the other, so that now and then data is taken for one: such shapes are rare.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "x86/shape.h"
#include "x86/slot.h"

using namespace weir::x86;

namespace {

constexpr size_t max_shapes = 14000;  // the table may be half full

uint64_t key_at(const uint8_t* bytes, const Layout& layout) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return key_of(value, layout.shape_end);
}

// Which shapes a file has, and how often.
std::map<uint64_t, int> shapes_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<uint8_t> code((std::istreambuf_iterator<char>(in)), {});
  size_t size = code.size();
  code.resize(size + 16);
  std::map<uint64_t, uint8_t> lengths;
  std::map<uint64_t, int> times;
  for (size_t at = 0; at < size;) {
    Layout layout = layout_of(&code[at]);
    if (layout.shape_end > max_key_bytes) {
      at++;
      continue;
    }
    uint64_t key = key_at(&code[at], layout);
    if (!lengths.contains(key)) {
      uint8_t shown[16] = {};
      memcpy(shown, &code[at], layout.shape_end);
      Shape s = make_shape(shown, layout).shape;
      lengths[key] = s.known ? s.length : 0;
    }
    times[key] += lengths[key] != 0;
    at += std::max<size_t>(1, lengths[key]);
  }
  std::erase_if(times, [](const auto& t) { return t.second < 2; });
  return times;
}

std::string hex_of(uint64_t key) {
  unsigned size = key & 0xff;
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    char byte[3];
    snprintf(byte, sizeof byte, "%02x", static_cast<unsigned>(key >> (64 - 8 * (size - i)) & 0xff));
    hex += byte;
  }
  return hex;
}

struct Rank {
  int files = 0;
  double share = 0;  // of the instructions of each file, added up
  uint64_t key = 0;
};

void list(const std::vector<std::string>& files) {
  std::map<uint64_t, Rank> ranks;
  for (const std::string& file : files) {
    auto times = shapes_of(file);
    double all = 0;
    for (auto [key, n] : times) all += n;
    for (auto [key, n] : times) ranks[key] = {ranks[key].files + 1, ranks[key].share + n / all, key};
  }
  std::vector<Rank> ranking;
  for (const auto& [key, rank] : ranks) ranking.push_back(rank);
  std::ranges::sort(ranking, std::ranges::greater(), &Rank::files);
  ranking.resize(std::min(ranking.size(), max_shapes));
  std::ranges::sort(ranking, std::ranges::greater(), &Rank::share);
  size_t column = 0;
  for (const Rank& rank : ranking) {
    std::string hex = hex_of(rank.key);
    bool fits = column + hex.size() < 124;
    std::cout << (column == 0 ? "" : fits ? " " : "\n") << hex;
    column = (fits ? column : 0) + hex.size() + 1;
  }
  std::cout << "\n";
}

std::string set_of(RegSet s) {
  char text[64];
  snprintf(text, sizeof text, "regs(%u,%u,%u,%uu)", s.gpr, s.flags, s.mask, s.vec);
  return text;
}

void write(const Shape& s) {
  std::cout << '{' << +s.length << ",Kind(" << static_cast<int>(s.kind) << ')';
  for (int n : {int(s.disp_offset), int(s.disp_size), int(s.imm_offset), int(s.imm_size), int(s.modrm_offset),
                int(s.condition), int(s.rip_relative), int(s.eip_relative), int(s.short_only), int(s.uses_fs),
                int(s.uses_gs), int(s.reads_memory), int(s.writes_memory), int(s.rep), int(s.known), int(s.xstate)})
    std::cout << ',' << n;
  std::cout << ',' << s.operands << 'u';
  std::cout << ',' << set_of(s.reads) << ',' << set_of(s.writes) << ',' << set_of(s.kills) << "},\n";
}

void write(const MemoryOperand& o) {
  std::cout << '{' << o.displacement << ',' << o.size;
  for (int n : {int(o.base), int(o.index), int(o.scale), int(o.index_size)}) std::cout << ',' << n;
  std::cout << ",Segment(" << int(o.segment) << "),Access(" << int(o.access) << "),Extent(" << int(o.extent) << ')';
  for (int n : {int(o.wraps_at_32_bits), int(o.is_rip_relative), int(o.is_implicit), int(o.element)}) std::cout << ',' << n;
  std::cout << ",MaskIn(" << int(o.mask_in) << ')';
  for (int n : {int(o.mask), int(o.mask_bits), int(o.bit_offset), int(o.displacement_scale)}) std::cout << ',' << n;
  std::cout << "},\n";
}

// The operands of all shapes, one behind the other; shapes with the same operands share them.
class Operands {
 public:
  uint32_t keep(const MemoryOperands& operands) {
    if (operands.size() == 0) return 0;
    std::vector<MemoryOperand> key(operands.begin(), operands.end());
    auto [at, is_new] = known_.emplace(std::move(key), static_cast<uint32_t>(all_.size()));
    if (is_new) all_.insert(all_.end(), operands.begin(), operands.end());
    return at->second << Shape::operand_count_bits | static_cast<uint32_t>(operands.size());
  }
  const std::vector<MemoryOperand>& all() const { return all_; }

 private:
  std::vector<MemoryOperand> all_;
  std::map<std::vector<MemoryOperand>, uint32_t> known_;
};

void make_table() {
  std::vector<Slot> slots((1 << common_bits) + overhang);
  size_t count = 0;
  Operands operands;
  std::cout << "const Shape common_shapes[] = {\n";
  for (std::string hex; std::cin >> hex;) {
    uint8_t bytes[16] = {};
    for (size_t i = 0; i + 1 < hex.size() && i < 30; i += 2)
      bytes[i / 2] = static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16));
    Layout layout = layout_of(bytes);
    uint64_t key = key_at(bytes, layout);
    size_t at = home_index(key, 64 - common_bits);
    while (slots[at].key && slots[at].key != key) ++at;
    bool has_room = count < max_shapes && at + 1 < slots.size();
    if (layout.shape_end > max_key_bytes || slots[at].key || !has_room) continue;
    auto [s, made] = make_shape(bytes, layout);
    s.operands = operands.keep(made);
    slots[at] = slot_of(key, s, static_cast<int64_t>(count++ * sizeof(Shape)));
    write(s);
  }
  std::cout << "};\nconst Slot common_slots[(1 << common_bits) + overhang] = {\n";
  for (const Slot& slot : slots) std::cout << '{' << slot.key << "u," << slot.packed << "u},\n";
  std::cout << "};\nconst MemoryOperand common_operands[] = {\n";
  for (const MemoryOperand& o : operands.all()) write(o);
  std::cout << "};\nconst uint32_t common_operand_count = " << operands.all().size() << ";\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) list({argv + 1, argv + argc});
  else make_table();
}
