#include "tools/icount/icount.h"

namespace weir::icount {

using instrument::Op;
using instrument::Where;

// Every block has a counter of its own: additions to different cells do not wait for one another.
void Icount::plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) {
  const auto& blocks = subject.function.blocks;
  for (x86::BlockId b = 0; b < blocks.size(); b++) {
    instrument::Counter counter = counters.allocate();
    plan.insert(Where::Block, b, {Op{.kind = Op::AddCounter, .counter = counter, .value = 1}});
    bool ends_elsewhere = blocks[b].ends == x86::BlockEnd::Undecodable;  // its last instruction is not executed here
    blocks_.push_back({blocks[b].begin, blocks[b].end, blocks[b].count - ends_elsewhere, subject.image, counter});
  }
  blocks_.publish();
}

void Icount::collect(const instrument::ThreadData& data) {
  Program& program = programs_[data.pid];
  program.block_counts.resize(blocks_.size());
  Thread thread{data.tid, {}};
  for (size_t i = 0; i < blocks_.size(); i++) {
    uint64_t n = data.cells[blocks_[i].counter.index];
    if (!n) continue;
    Count count{n * blocks_[i].instructions, n};
    if (program.images.size() <= blocks_[i].image) program.images.resize(blocks_[i].image + 1);
    program.images[blocks_[i].image] += count;
    program.block_counts[i] += n;
    thread.count += count;
  }
  program.threads.push_back(thread);
}

Program Icount::take(uint32_t pid) {
  auto node = programs_.extract(pid);
  return node ? std::move(node.mapped()) : Program{};
}

}  // namespace weir::icount
