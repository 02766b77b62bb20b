// The walker with random stacks, tables and registers: whatever they are, it ends, reads nothing but through its memory, never writes
// outside its own, and the incremental walk is the full one.
//
// Input: the rest of the bytes is made into a table and a stack; each sample changes some words of the stack, or the registers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/result.h"
#include "sample/call_tree.h"

using namespace weir::rt;
using namespace weir::sample;

namespace {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool is_empty() const { return size_ == 0; }
  uint8_t byte() { return size_ ? (--size_, *data_++) : 0; }
  uint16_t half() { return static_cast<uint16_t>(byte() | byte() << 8); }

 private:
  const uint8_t* data_;
  size_t size_;
};

constexpr uint64_t text = 0x400000, text_size = 2048, stack_begin = 0x7000'0000;
constexpr uint32_t words = 256, frames = 96;

// The stack, and the code, whose bytes guesses look at.
struct Memory {
  std::vector<uint64_t> stack = std::vector<uint64_t>(words);
  std::vector<uint8_t> code = std::vector<uint8_t>(text_size);
  bool read(uint64_t address, uint64_t& word) const {
    if (address - stack_begin <= (words - 1) * 8) {
      memcpy(&word, reinterpret_cast<const char*>(stack.data()) + (address - stack_begin), 8);
      return true;
    }
    if (address - text > text_size - 8) return false;
    memcpy(&word, code.data() + (address - text), 8);
    return true;
  }
};

// A table as broken as the input wants it, in a block of exactly its size.
std::vector<uint64_t> table_from(Input& in) {
  constexpr uint32_t rules = 24, rows = 41;  // (a multiple of 8 bytes)
  TableHead head{table_magic, table_version, 0, text_size, 2, rules, rows, 0, 0};
  std::vector<uint64_t> out(table_bytes(head) / 8);
  CHECK(out.size() * 8 == table_bytes(head));
  memcpy(out.data(), &head, sizeof head);
  auto* first = reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(out.data()) + sizeof head);
  bool is_broken = in.byte() % 8 == 0;
  first[0] = is_broken ? in.half() : 0, first[1] = is_broken ? in.half() : 20, first[2] = is_broken ? in.half() : rows;
  auto* rule = reinterpret_cast<Rule*>(first + 3);
  for (uint32_t i = 1; i < rules; i++) {
    rule[i].kind = static_cast<Rule::Kind>(in.byte() % (is_broken ? 32 : static_cast<int>(Rule::KindCount)));
    rule[i].offset = in.byte() % 4 ? in.byte() % 16 * 8 : static_cast<int16_t>(in.half());
    rule[i].add = static_cast<int16_t>(in.byte() % 16 ? 0 : in.half());
    rule[i].rbp = in.byte() % Rule::RbpCount, rule[i].rbp_offset = -8 * (in.byte() % 8);
    rule[i].rbx_offset = static_cast<int16_t>(in.byte() % 3 ? 0 : in.byte() % 8 ? -8 * (in.byte() % 8) : Rule::rbx_lost);
    rule[i].is_interrupted = in.byte() % 16 == 0;
    rule[i].reg = in.byte() % 16, rule[i].scale = in.byte() % 9;
  }
  auto* row = reinterpret_cast<Row*>(rule + rules);
  for (uint32_t i = 0; i < rows; i++) {
    row[i].offset = static_cast<uint16_t>(is_broken ? in.half() : i % 20 * 50);
    row[i].rule = is_broken ? in.half() : in.byte() % rules;
  }
  return out;
}

uint64_t word_from(Input& in) {
  switch (in.byte() % 8) {
    case 0: return 0;
    case 1: return in.half() * 0x1'0001'0001;
    case 2:
    case 3: return stack_begin + in.byte() % words * 8;
    default: return text + in.half() % (text_size + 16);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  std::vector<uint64_t> table = table_from(in);
  CHECK(is_table(table.data(), table.size() * 8));
  CodeRange ranges[2] = {{text, text + text_size / 2, text, reinterpret_cast<const TableHead*>(table.data())},
                         {text + text_size / 2, text + text_size, text, in.byte() % 2 ? ranges[0].table : nullptr}};
  Code code{ranges, 2, 1};
  Memory memory;
  for (uint64_t& w : memory.stack) w = word_from(in);
  for (uint8_t& b : memory.code) b = static_cast<uint8_t>(&b - memory.code.data()) % 7 ? 0 : 0xe8;
  Options options;
  uint8_t use = in.byte();
  options.use = {(use & 1) != 0 || !(use & 6), (use & 2) != 0, (use & 4) != 0};
  options.confidence = 100;  // below, guesses may differ
  Stack stack = use & 8 ? Stack{stack_begin, stack_begin + words * 8} : Stack{};

  uint32_t capacity = use & 16 ? 64 : frames, nodes = 128;
  // Blocks of exactly their size: sanitizers see what is written behind them.
  std::vector<uint64_t> maps(Trace::bytes_for(capacity) / 8), queue_memory(words_of(capacity) * 2),
      tree_memory(CallTree::bytes_for(nodes, capacity) / 8);
  Trace trace = Trace::make(maps.data(), capacity);
  CallTree tree = CallTree::make(tree_memory.data(), nodes, capacity);
  Records::Queue queue{};
  Records records(queue, queue_memory.data(), queue_memory.size());
  uint64_t read = 0, taken = 0;
  uint64_t samples = 0;
  do {
    for (int i = in.byte() % 8; i > 0; i--) memory.stack[in.byte() % words] = word_from(in);
    if (in.byte() % 64 == 0) code.generation++;
    SavedRegisters registers;
    for (uint64_t& w : registers.words) w = word_from(in);
    State top{text + in.half() % text_size, stack_begin + in.byte() % words * 8, word_from(in), in.byte() % 16 != 0,
              in.byte() % 4 ? &registers : nullptr};
    Sample s = restore(trace, code, stack, top, options, memory);
    CHECK(verify(trace, s, code, stack, top, options, memory) == Difference::None);
    CHECK(s.map->count <= capacity && s.known <= s.map->count);
    records.put(s, top.pc, 1);
    // Weir reads late, now and then.
    if (in.byte() % 4 == 0 || !records.has_room(capacity)) {
      uint32_t node = full_node;
      CHECK(records.take(read, [&](const Record& r, const uint64_t* callers) { node = tree.take(r, callers), taken++; }));
      uint32_t depth = 0;
      for (uint32_t n = node; tree.nodes()[n].parent != n; n = tree.nodes()[n].parent) {
        CHECK(tree.nodes()[n].parent < n);
        depth++;
      }
      CHECK(node == full_node || depth == s.depth);
    }
    samples++;
  } while (!in.is_empty() && samples < 64);
  records.take(read, [&](const Record& r, const uint64_t* callers) { tree.take(r, callers), taken++; });
  uint64_t counted = 0;
  for (uint32_t i = 0; i < tree.size(); i++) counted += tree.nodes()[i].samples;
  CHECK(counted == samples && taken == samples);
  return 0;
}
