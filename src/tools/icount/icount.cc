#include "tools/icount/icount.h"

namespace weir::icount {

using instrument::Op;
using instrument::Where;

namespace {
bool is_same(const Block& a, const Block& b) {
  return a.begin == b.begin && a.end == b.end && a.instructions == b.instructions && a.image == b.image;
}
// A function that had no room for its counters never ran.
uint64_t at(std::span<const uint64_t> cells, uint32_t index) { return index < cells.size() ? cells[index] : 0; }
}  // namespace

// Every block has a counter of its own: additions to different cells do not wait for one another. A block that is translated again
// (its memory was unmapped meanwhile, or written to) keeps its counter, if that stands for the same.
void Icount::plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) {
  const auto& blocks = subject.function.blocks;
  for (x86::BlockId b = 0; b < blocks.size(); b++) {
    bool ends_elsewhere = blocks[b].ends == x86::BlockEnd::Undecodable;  // its last instruction is not executed here
    Block block{blocks[b].begin, blocks[b].end, blocks[b].count - ends_elsewhere, subject.image, {}};
    uint32_t& known = block_at_[block.begin];
    if (!known || !is_same(blocks_[known - 1], block)) {
      block.counter = counters.allocate();
      blocks_.push_back(block);
      known = static_cast<uint32_t>(blocks_.size());
    }
    plan.insert(Where::Block, b, {Op{.kind = Op::AddCounter, .counter = blocks_[known - 1].counter, .value = 1}});
  }
  blocks_.publish();
}

void Icount::collect(const instrument::ThreadData& data) {
  Program& program = programs_[data.pid];
  program.block_counts.resize(blocks_.size());
  Thread thread{data.tid, {}};
  auto add = [&](size_t i) {
    uint64_t n = at(data.cells, blocks_[i].counter.index);
    if (!n) return;
    Count count{n * blocks_[i].instructions, n};
    if (program.images.size() <= blocks_[i].image) program.images.resize(blocks_[i].image + 1);
    program.images[blocks_[i].image] += count;
    program.block_counts[i] += n;
    thread.count += count;
  };
  auto cell_of = [](const Block& b) { return b.counter.index; };  // ascending, as they were handed out
  for (auto [begin, end] : data.written)
    for (const Block& b : std::ranges::subrange(std::ranges::lower_bound(blocks_, begin, {}, cell_of),
                                                std::ranges::lower_bound(blocks_, end, {}, cell_of)))
      add(static_cast<size_t>(&b - blocks_.data()));
  if (program.threads.size() <= kept_threads) program.threads.push_back(thread);
  else program.threads.back() = {0, program.threads.back().count += thread.count};
}

Program Icount::take(uint32_t pid) {
  auto node = programs_.extract(pid);
  return node ? std::move(node.mapped()) : Program{};
}

}  // namespace weir::icount
