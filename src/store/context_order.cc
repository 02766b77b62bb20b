#include "store/context_order.h"

#include <algorithm>

#include "base/result.h"

namespace weir::store {

using profile::Context;
using profile::none;

std::vector<OrderedContext> order_contexts(const std::vector<Context>& contexts) {
  uint32_t n = static_cast<uint32_t>(contexts.size());

  // Totals, from the leaves up: a parent comes before its children.
  struct Node {
    profile::Cycles total, os_time_total, waited_total;
    uint32_t first_child = none, next_sibling = none;
  };
  std::vector<Node> nodes(n);
  uint32_t first_root = none;
  for (uint32_t i = 0; i < n; i++) nodes[i] = {contexts[i].self, contexts[i].os_time, contexts[i].waited};
  for (uint32_t i = n; i-- > 0;) {
    uint32_t parent = contexts[i].parent;
    CHECK(parent == none || parent < i);
    uint32_t& first = parent == none ? first_root : nodes[parent].first_child;
    nodes[i].next_sibling = first;
    first = i;
    if (parent == none) continue;
    nodes[parent].total += nodes[i].total;
    nodes[parent].os_time_total += nodes[i].os_time_total;
    nodes[parent].waited_total += nodes[i].waited_total;
  }

  std::vector<OrderedContext> order;
  order.reserve(n);
  auto append_siblings = [&](uint32_t first, uint32_t parent) {
    size_t begin = order.size();
    for (uint32_t i = first; i != none; i = nodes[i].next_sibling)
      order.push_back({i, parent, 0, 0, nodes[i].total, nodes[i].os_time_total, nodes[i].waited_total});
    std::ranges::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(begin), order.end(), std::ranges::greater(),
                             [](const OrderedContext& c) { return c.total + c.os_time_total; });
    return static_cast<uint32_t>(order.size() - begin);
  };
  append_siblings(first_root, none);
  for (uint32_t i = 0; i < order.size(); i++) {
    order[i].first_child = static_cast<uint32_t>(order.size());
    order[i].children = append_siblings(nodes[order[i].original].first_child, i);
  }
  return order;
}

}  // namespace weir::store
