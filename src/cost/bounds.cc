#include "cost/bounds.h"

namespace weir::cost {

namespace {

uint32_t rounded(uint32_t n, uint32_t divisor) { return (2 * n + divisor) / (2 * divisor); }

// bound = max(bound, rounded(n, divisor)); it seldom grows, and a multiplication tells.
void raise(uint32_t& bound, uint32_t n, uint32_t divisor) {
  if (2 * n >= divisor * (2 * bound + 1)) bound = rounded(n, divisor);
}

}  // namespace

void BlockSum::clear() {
  bounds_ = {};
  micro_ops_ = held_ = 0;
  std::fill_n(load_.begin(), cpu_->capacity.size(), 0);
  begin_ = latest_;
  if (begin_ < 1u << 30) return;
  begin_ = latest_ = 0;
  ready_.fill(0);
}

void BlockSum::add(const Descriptor& d, std::span<const Figure> figures) {
  micro_ops_ += d.micro_ops;
  raise(bounds_.dispatch, micro_ops_, cpu_->width);

  auto start = static_cast<int32_t>(held_);
  for (Figure read : figures.first(d.reads))
    if (uint32_t ready = ready_[read.of]; ready > begin_)
      start = std::max(start, static_cast<int32_t>(ready - begin_) - read.cycles);
  bool executes = d.uses > 0;  // a nop, an eliminated move or a zero idiom does not
  for (Figure write : figures.subspan(d.reads, d.writes)) {
    ready_[write.of] = begin_ + static_cast<uint32_t>(std::max(0, start + write.cycles));
    latest_ = std::max(latest_, ready_[write.of]);
    executes |= write.cycles > 0;
  }
  if (d.holds) held_ = static_cast<uint32_t>(start) + d.holds;
  bounds_.chain = std::max({bounds_.chain, executes ? static_cast<uint32_t>(start) + 1 : 0, held_});

  for (Figure use : figures.last(d.uses)) {
    uint32_t load = load_[use.of] += static_cast<uint32_t>(use.cycles);
    raise(bounds_.ports, load, cpu_->capacity[use.of]);
  }
}

}  // namespace weir::cost
