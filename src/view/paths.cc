#include "view/paths.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace weir::view {
namespace {

constexpr uint64_t finest = 4000;         // what is smaller than this part of a picture has no pixel
constexpr size_t most_steps = 5'000'000;  // towards callers: some seconds

}  // namespace

Result<Paths> Paths::load(const store::Reader& now, const store::Reader* before, const Model& model, double scale) {
  Paths paths;
  paths.nodes_.emplace_back();
  TRY_VOID(paths.add(now, model, false, 1));
  if (before) {
    TRY(store::Totals totals, before->totals());
    paths.compared_ = totals.contexts > 0;
    TRY_VOID(paths.add(*before, model, true, scale));
  }
  paths.finish();
  return paths;
}

Result<> Paths::add(const store::Reader& reader, const Model& model, bool of_before, double scale) {
  TRY(store::Totals totals, reader.totals());
  std::vector<uint32_t> node_of(totals.contexts, 0);  // by context
  std::unordered_map<uint64_t, uint32_t> known;       // by parent and function
  for (uint32_t i = 1; i < nodes_.size(); i++) known[uint64_t{nodes_[i].parent} << 32 | nodes_[i].function] = i;
  known.reserve(totals.contexts + nodes_.size());
  double exact = 0;      // so far, multiplied
  Cycles given_out = 0;  // of that: what is too little for one path is given to the next, or scaled sums would be too small
  return reader.contexts([&](const store::ContextRow& c) {
    if (c.id >= node_of.size()) return;
    uint32_t parent = c.parent < c.id ? node_of[c.parent] : 0;
    uint32_t function = of_before ? model.id_of_before(c.function) : c.function;
    auto [it, added] = known.try_emplace(uint64_t{parent} << 32 | function, static_cast<uint32_t>(nodes_.size()));
    if (added) nodes_.push_back({parent, function});
    node_of[c.id] = it->second;
    Node& node = nodes_[it->second];
    Cycles self = c.self + c.os_time;
    if (scale != 1) {
      exact += static_cast<double>(self) * scale;
      self = static_cast<Cycles>(exact) - given_out;
      given_out += self;
    }
    (of_before ? node.self_before : node.self) += self;
    if (of_before) return;
    node.calls += c.calls;
    calls_ += c.calls;
  });
}

void Paths::finish() {
  for (Node& n : nodes_) {
    n.total = n.self;
    n.before = n.self_before;
  }
  for (size_t i = nodes_.size(); i-- > 1;) {
    nodes_[nodes_[i].parent].total += nodes_[i].total;
    nodes_[nodes_[i].parent].before += nodes_[i].before;
  }
  first_.assign(nodes_.size() + 1, 0);
  for (size_t i = 1; i < nodes_.size(); i++) first_[nodes_[i].parent + 1]++;
  for (size_t i = 1; i < first_.size(); i++) first_[i] += first_[i - 1];
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  children_.resize(nodes_.size() - 1);
  for (uint32_t i = 1; i < nodes_.size(); i++) children_[next[nodes_[i].parent]++] = i;
  for (size_t i = 0; i < nodes_.size(); i++)
    std::sort(children_.begin() + first_[i], children_.begin() + first_[i + 1],
              [&](uint32_t a, uint32_t b) { return nodes_[a].size() > nodes_[b].size(); });
}

std::optional<Cut> Paths::cut(const std::vector<uint32_t>& path, size_t most) const {
  uint32_t root = 0;
  for (uint32_t function : path) {
    auto begin = children_.begin() + first_[root], end = children_.begin() + first_[root + 1];
    auto child = std::find_if(begin, end, [&](uint32_t i) { return nodes_[i].function == function; });
    if (child == end) return std::nullopt;
    root = *child;
  }
  // The least size so that not more than `most` are larger; of those that have it, as many as there is room for.
  Cycles least = nodes_[root].size() / finest + 1;
  std::vector<Cycles> sizes;
  std::vector<uint32_t> stack = {root};
  while (!stack.empty()) {
    uint32_t at = stack.back();
    stack.pop_back();
    sizes.push_back(nodes_[at].size());
    for (uint32_t i = first_[at]; i < first_[at + 1] && nodes_[children_[i]].size() >= least; i++)
      stack.push_back(children_[i]);
  }
  size_t room = sizes.size();
  if (sizes.size() > most) {
    std::ranges::nth_element(sizes, sizes.begin() + static_cast<ptrdiff_t>(most), std::greater());
    least = sizes[most];
    room = most - static_cast<size_t>(std::ranges::count_if(sizes, [&](Cycles size) { return size > least; }));
  }
  auto fits = [&](uint32_t node) {
    Cycles size = nodes_[node].size();
    return size > least || (size == least && room > 0 && room-- > 0);
  };
  Cut cut;
  std::vector<std::pair<uint32_t, uint32_t>> walk = {{root, 0}};  // a node, and its parent in the cut
  fits(root);
  while (!walk.empty()) {
    auto [at, parent] = walk.back();
    walk.pop_back();
    const Node& n = nodes_[at];
    auto place = static_cast<uint32_t>(cut.nodes.size());
    cut.nodes.push_back({parent, n.function, n.total, n.self, n.before, n.calls});
    for (uint32_t i = first_[at + 1]; i-- > first_[at];) {
      if (fits(children_[i])) walk.emplace_back(children_[i], place);
      else cut.left_out++;
    }
  }
  return cut;
}

Paths::Below Paths::below(uint32_t function) const {
  Below below;
  std::unordered_map<uint32_t, uint32_t> open;  // calls of each function on the path that is walked
  auto add = [](Figures& to, const Node& n, bool outermost) {
    if (outermost) to.total += n.total, to.before += n.before;
    to.self += n.self;
    to.self_before += n.self_before;
    to.calls += n.calls;
  };
  struct Step {
    uint32_t node, next;  // child
  };
  std::vector<Step> walk;
  auto enter = [&](uint32_t at) {
    const Node& n = nodes_[at];
    bool outermost = open[n.function]++ == 0;
    add(below.functions[n.function], n, outermost);
    if (!walk.empty()) add(below.calls[{nodes_[walk.back().node].function, n.function}], n, outermost);
    walk.push_back({at, first_[at]});
  };
  std::vector<bool> within(nodes_.size());
  for (uint32_t i = 1; i < nodes_.size(); i++) {  // (a parent before its children)
    within[i] = within[nodes_[i].parent] || nodes_[i].function == function;
    if (!within[i] || within[nodes_[i].parent]) continue;
    enter(i);
    while (!walk.empty()) {
      Step& step = walk.back();
      if (step.next < first_[step.node + 1]) {
        enter(children_[step.next++]);
      } else {
        open[nodes_[step.node].function]--;
        walk.pop_back();
      }
    }
  }
  return below;
}

// One step towards the callers: by function, the largest first.
std::vector<std::pair<uint32_t, std::vector<Paths::Share>>> Paths::callers(const std::vector<Share>& shares) const {
  std::unordered_map<uint32_t, Share> by_node;  // leaves with the same caller are one
  for (const Share& s : shares) {
    uint32_t parent = nodes_[s.at].parent;
    if (parent == 0 || parent == store::none) continue;
    Share& sum = by_node.try_emplace(parent, Share{parent, 0, 0}).first->second;
    sum.self += s.self;
    sum.before += s.before;
  }
  std::map<uint32_t, std::vector<Share>> by_function;
  for (auto& [node, share] : by_node) by_function[nodes_[node].function].push_back(share);
  return {std::make_move_iterator(by_function.begin()), std::make_move_iterator(by_function.end())};
}

std::optional<Cut> Paths::inverted(const std::vector<uint32_t>& path, size_t most) const {
  Leaves leaves;
  for (uint32_t i = 1; i < nodes_.size(); i++)
    if (nodes_[i].self || nodes_[i].self_before)
      leaves[nodes_[i].function].push_back({i, nodes_[i].self, nodes_[i].self_before});
  return upwards(std::move(leaves), path, most);
}

std::optional<Cut> Paths::callers_of(const std::vector<uint32_t>& path, size_t most) const {
  Leaves leaves;
  std::vector<bool> within(nodes_.size());  // a call of the function
  for (uint32_t i = 1; i < nodes_.size(); i++) {
    bool outer = within[nodes_[i].parent], here = nodes_[i].function == path[0];
    if (here && !outer && nodes_[i].size()) leaves[path[0]].push_back({i, nodes_[i].total, nodes_[i].before});
    within[i] = outer || here;
  }
  return upwards(std::move(leaves), path, most);
}

namespace {

// In the order of a walk, the largest first, of nodes each of which stands behind its parent; node 0 is the root.
std::vector<Cut::Node> in_walk_order(const std::vector<Cut::Node>& nodes) {
  std::vector<std::vector<uint32_t>> children(nodes.size());
  for (uint32_t i = 1; i < nodes.size(); i++) children[nodes[i].parent].push_back(i);
  std::vector<Cut::Node> ordered;
  std::vector<std::pair<uint32_t, uint32_t>> walk = {{0, 0}};  // a node, and its parent's new place
  while (!walk.empty()) {
    auto [at, parent] = walk.back();
    walk.pop_back();
    auto place = static_cast<uint32_t>(ordered.size());
    ordered.push_back(nodes[at]);
    ordered.back().parent = parent;
    auto size = [&](uint32_t i) { return std::max(nodes[i].total, nodes[i].before); };
    std::ranges::stable_sort(children[at], {}, size);
    for (uint32_t child : children[at]) walk.emplace_back(child, place);
  }
  return ordered;
}

}  // namespace

// The largest branch is followed first, as far as there is room; and time: of a deep recursion every frame of a path is a leaf, and each
// has all those above it.
std::optional<Cut> Paths::upwards(Leaves leaves, const std::vector<uint32_t>& path, size_t most) const {
  struct Branch {
    uint32_t function, parent;  // the parent's place in the cut
    std::vector<Share> shares;
    Cycles total = 0, before = 0;
    size_t number = 0;  // of equal ones the first comes first
    auto rank() const { return std::pair(std::max(total, before), ~number); }
  };
  auto branch = [](uint32_t function, uint32_t parent, std::vector<Share> shares) {
    Branch b{function, parent, std::move(shares)};
    for (const Share& s : b.shares) b.total += s.self, b.before += s.before;
    return b;
  };
  std::vector<Branch> heap;
  Cut cut;
  Cycles least = 0;
  size_t numbers = 0;
  auto push = [&](Branch b) {
    if (b.rank().first < least) return static_cast<void>(cut.left_out++);
    b.number = numbers++;
    heap.push_back(std::move(b));
    std::ranges::push_heap(heap, {}, &Branch::rank);
  };
  if (path.empty()) {
    cut.nodes.push_back({0, store::none, nodes_[0].total, 0, nodes_[0].before, 0});
    least = std::max(nodes_[0].total, nodes_[0].before) / finest + 1;
    for (auto& [function, shares] : leaves) push(branch(function, 0, std::move(shares)));
  } else {
    auto at = leaves.find(path[0]);
    if (at == leaves.end()) return std::nullopt;
    Branch root = branch(path[0], 0, std::move(at->second));
    for (size_t i = 1; i < path.size(); i++) {
      auto above = callers(root.shares);
      auto next = std::ranges::find(above, path[i], [](auto& a) { return a.first; });
      if (next == above.end()) return std::nullopt;
      root = branch(path[i], 0, std::move(next->second));
    }
    least = root.rank().first / finest + 1;
    push(std::move(root));
  }
  for (size_t steps = 0; !heap.empty() && cut.nodes.size() < most && steps < most_steps + 4 * nodes_.size();) {
    std::ranges::pop_heap(heap, {}, &Branch::rank);
    Branch b = std::move(heap.back());
    heap.pop_back();
    steps += b.shares.size();
    auto place = static_cast<uint32_t>(cut.nodes.size());
    cut.nodes.push_back({b.parent, b.function, b.total, 0, b.before, 0});
    Cycles passed_on = 0;
    for (auto& [function, shares] : callers(b.shares)) {
      Branch above = branch(function, place, std::move(shares));
      passed_on += above.total;
      push(std::move(above));
    }
    cut.nodes[place].self = b.total - std::min(b.total, passed_on);  // what began there
  }
  cut.left_out += heap.size();
  cut.nodes = in_walk_order(cut.nodes);
  return cut;
}

}  // namespace weir::view
