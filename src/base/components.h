// Who leads to itself: the strongly connected components of a graph, by Tarjan's algorithm with a stack of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::base {

class Components {
 public:
  // `out` has the nodes that each node leads to.
  explicit Components(const std::vector<std::vector<uint32_t>>& out) : out_(out), of_(out.size(), none), seen_(out.size()) {
    for (uint32_t node = 0; node < out.size(); node++)
      if (!seen_[node].number) walk(node);
  }

  // Each is behind all that it leads to.
  const std::vector<std::vector<uint32_t>>& all() const { return all_; }
  uint32_t of(uint32_t node) const { return of_[node]; }
  bool leads_to_itself(uint32_t node) const {
    return all_[of_[node]].size() > 1 || std::ranges::find(out_[node], node) != out_[node].end();
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Seen {
    uint32_t number = 0, low = 0;
    size_t next = 0;
  };

  void walk(uint32_t start) {
    std::vector<uint32_t> way;
    auto enter = [&](uint32_t node) {
      seen_[node].number = seen_[node].low = ++last_;
      open_.push_back(node), way.push_back(node);
    };
    enter(start);
    while (!way.empty()) {
      uint32_t node = way.back();
      Seen& seen = seen_[node];
      if (seen.next < out_[node].size()) {
        uint32_t to = out_[node][seen.next++];
        if (!seen_[to].number) enter(to);
        else if (of_[to] == none) seen.low = std::min(seen.low, seen_[to].number);
        continue;
      }
      way.pop_back();
      if (!way.empty()) seen_[way.back()].low = std::min(seen_[way.back()].low, seen.low);
      if (seen.low == seen.number) close(node);
    }
  }

  void close(uint32_t first) {
    auto members = std::find(open_.rbegin(), open_.rend(), first).base() - 1;
    for (auto member = members; member != open_.end(); ++member) of_[*member] = static_cast<uint32_t>(all_.size());
    all_.emplace_back(members, open_.end());
    open_.erase(members, open_.end());
  }

  const std::vector<std::vector<uint32_t>>& out_;
  std::vector<uint32_t> of_;
  std::vector<Seen> seen_;
  std::vector<uint32_t> open_;
  std::vector<std::vector<uint32_t>> all_;
  uint32_t last_ = 0;
};

}  // namespace weir::base
