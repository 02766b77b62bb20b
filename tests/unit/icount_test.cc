// Counters that did not fit are not read: what is behind the cells is another's.
#include "tools/icount/icount.h"

#include <gtest/gtest.h>

namespace weir::icount {

TEST(Icount, ReadsNoCellsThatAThreadDoesNotHave) {
  x86::Function function;
  for (uint64_t i = 0; i < 2; i++) {
    x86::Block block{};
    block.begin = {0x1000 + 16 * i}, block.end = {0x1010 + 16 * i}, block.count = 3;
    function.blocks.push_back(block);
  }
  x86::ReadMemory code = [](AppPc, size_t) { return std::span<const std::byte>(); };
  std::function<AppRange(AppPc)> bounds = [](AppPc at) { return AppRange{at, at}; };
  std::function<instrument::IsPart(AppPc)> is_part = [](AppPc) { return instrument::IsPart::No; };
  Icount tool;
  instrument::Counters counters;
  instrument::Plan plan;
  tool.plan({function, 0, 0, code, code, bounds, is_part, true, false}, counters, plan);
  std::vector<uint64_t> cells(counters.size(), 5);
  instrument::CellRange all{0, counters.size()};
  tool.collect({1, 1, std::span(cells).first(cells.size() - 1), nullptr, {&all, 1}});
  Program program = tool.take(1);
  EXPECT_EQ(program.block_counts, (std::vector<uint64_t>{5, 0}));
  EXPECT_EQ(program.threads[0].count.instructions, 15u);
}

}  // namespace weir::icount
