#include "sample/context_tree.h"

#include <utility>

#include "profile/sums.h"

namespace weir::sample {

using profile::Context;
using profile::none;

uint32_t ContextTree::child(uint32_t parent, uint32_t site, uint32_t function) {
  auto next = static_cast<uint32_t>(contexts_.size());
  uint32_t id = known_.find_or_add(hash_of(parent, uint64_t{site} << 32 | function), next, [&](uint32_t i) {
    const Context& c = contexts_[i];
    return c.parent == parent && c.site == site && c.function == function;
  });
  if (id == next) contexts_.push_back({parent, site, function});
  return id;
}

// A5: what lies below a frame of a function is not counted again for a frame of the same function further in. So no total is more
// than the program's, and those of the calls of a function add up to its own.
void ContextTree::give(profile::Thread& out, size_t functions) {
  auto root = static_cast<uint32_t>(contexts_.size());
  std::vector<uint64_t> totals(root);
  std::vector<uint32_t> first_child(root + 1, none), next_sibling(root, none);
  for (uint32_t i = root; i-- > 0;) {  // parents come before their children
    const Context& c = contexts_[i];
    totals[i] += c.self;
    if (c.parent != none) totals[c.parent] += totals[i];
    next_sibling[i] = std::exchange(first_child[c.parent == none ? root : c.parent], i);
  }
  // Depth first, without a stack: programs may recurse deeply.
  std::vector<uint32_t> open(functions);  // frames of the path, by function
  for (uint32_t at = first_child[root]; at != none;) {
    const Context& c = contexts_[at];
    uint64_t total = open[c.function]++ ? 0 : totals[at];
    profile::FunctionCount& f = out.functions.emplace_back();
    f.function = c.function, f.self = c.self, f.total = total;
    profile::CallCount& call = out.calls.emplace_back();
    call.site = c.site, call.callee = c.function, call.total = total;
    uint32_t next = first_child[at];
    for (; next == none && at != none; at = contexts_[at].parent) {
      open[contexts_[at].function]--;
      next = next_sibling[at];
    }
    at = next;
  }
  profile::add_up(out.functions, &profile::FunctionCount::function,
                  [](auto& sum, const auto& c) { sum.self += c.self, sum.total += c.total; });
  auto key = [](const profile::CallCount& c) { return uint64_t{c.site} << 32 | c.callee; };
  profile::add_up(out.calls, key, [](auto& sum, const auto& c) { sum.total += c.total; });
  out.contexts = std::move(contexts_);
}

}  // namespace weir::sample
