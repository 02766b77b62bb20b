// icount: executed instructions and basic blocks, exactly: per thread, per image, in total. The model of a tool.
#pragma once

#include <map>

#include "base/flat_map.h"
#include "base/published.h"
#include "instrument/tool.h"

namespace weir::icount {

struct Count {
  uint64_t instructions = 0, blocks = 0;

  Count& operator+=(Count o) {
    instructions += o.instructions;
    blocks += o.blocks;
    return *this;
  }
};

struct Thread {
  uint32_t tid;
  Count count;
};

struct Block {
  AppPc begin, end;
  uint32_t instructions;
  uint32_t image;
  instrument::Counter counter;
};

constexpr size_t kept_threads = 1000;

// What one process counted.
struct Program {
  std::vector<Count> images;           // by image index
  std::vector<Thread> threads;         // beyond the first `kept_threads`, one for all others, with the tid 0
  std::vector<uint64_t> block_counts;  // by block index
};

class Icount : public instrument::Tool {
 public:
  std::unique_ptr<Tool> copy() const override { return std::make_unique<Icount>(*this); }
  void plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) override;
  void collect(const instrument::ThreadData& thread) override;
  void adopt() override { blocks_.adopt(); }

  std::span<const Block> blocks() const { return blocks_; }
  // The counts of a process that has ended.
  Program take(uint32_t pid);

 private:
  Published<Block> blocks_;
  FlatMap<uint32_t> block_at_;            // one more than the number of the last one that begins there
  std::map<uint32_t, Program> programs_;  // by pid
};

}  // namespace weir::icount
