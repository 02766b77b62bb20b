// cost_blocks CPU: costs the blocks on stdin, one a line in hexadecimal. Each gives a line "cycles dispatch ports chain
// unknown"; on stderr, how long that took.

#include <chrono>
#include <iostream>

#include "cost/model.h"

namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::byte> from_hex(const std::string& line) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < line.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(line.substr(i, 2), nullptr, 16)));
  return bytes;
}

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  auto begin = Clock::now();
  auto model = weir::cost::Model::create(argc > 1 ? argv[1] : "", argc > 2);
  if (!model) {
    weir::say("{}", model.error().what);
    return 1;
  }
  double create = microseconds_since(begin);
  std::vector<std::vector<std::byte>> blocks;
  for (std::string line; std::getline(std::cin, line);) blocks.push_back(from_hex(line));
  begin = Clock::now();
  for (const auto& block : blocks) model->cost(block);
  double first = microseconds_since(begin);
  begin = Clock::now();
  for (const auto& block : blocks) model->cost(block);
  double again = microseconds_since(begin);
  for (const auto& block : blocks) {
    weir::cost::Cost c = model->cost(block);
    fmt::print("{} {} {} {} {}\n", c.cycles, c.bounds.dispatch, c.bounds.ports, c.bounds.chain, c.unknown);
  }
  auto n = static_cast<double>(std::max<size_t>(1, blocks.size()));
  fmt::print(stderr,
             "{}: {:.2f} ms to create; {} blocks of {} different instructions, {} asked of LLVM; {:.2f} us a block, {:.2f} "
             "again\n",
             model->cpu(), create / 1000, blocks.size(), model->known(), model->asked(), first / n, again / n);
  model->save();
}
