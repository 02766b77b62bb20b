// Call paths, as a tree: each node is a function in one path of callers, over all selected threads.
//
// A node's total is never more than its parent's. So the `limit` largest nodes are found from the top, best first, and what is
// shown is every node that is as large as the smallest of them.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

#include "report/views.h"

namespace weir::report {
namespace {

using store::ContextRow;
using store::Cycles;

// Contexts of different threads (and, unless they are told apart, call sites) that have the same path.
struct Node {
  std::vector<ContextRow> members;
  uint32_t depth = 0;

  uint32_t function() const { return members.front().function; }
  uint32_t site() const { return members.front().site; }
  Cycles sum(Cycles ContextRow::* a, Cycles ContextRow::* b) const {
    Cycles total = 0;
    for (const ContextRow& c : members) total += c.*a + c.*b;
    return total;
  }
  Cycles total() const { return sum(&ContextRow::total, &ContextRow::os_time_total); }
};

class Tree {
 public:
  explicit Tree(View& v) : v_(v) {}

  // Without a filter the threads' first functions; otherwise the outermost functions that match.
  Result<std::vector<Node>> roots() {
    std::map<std::pair<uint32_t, uint32_t>, Node> nodes;
    auto add = [&](const ContextRow& c) { add_to(nodes, c, 0); };
    if (v_.options.filter.empty()) {
      TRY_VOID(v_.reader.roots(add));
    } else {
      std::set<uint32_t> matching;
      store::FunctionQuery query;
      query.filter = v_.options.filter;
      TRY_VOID(v_.reader.functions(query, [&](const store::FunctionRow& f) { matching.insert(f.id); }));
      std::vector<bool> inside;  // by id: a context that matches, or is below one
      TRY_VOID(v_.reader.contexts([&](const ContextRow& c) {
        if (c.id >= inside.size()) inside.resize(std::min<uint64_t>(uint64_t{c.id} + 1, v_.totals.contexts));
        bool below = c.parent < c.id && c.parent < inside.size() && inside[c.parent];
        bool root = !below && matching.contains(c.function);
        if (c.id < inside.size()) inside[c.id] = below || root;
        if (root) add(c);
      }));
    }
    return sorted(std::move(nodes));
  }

  Result<std::vector<Node>> children(const Node& node) {
    std::map<std::pair<uint32_t, uint32_t>, Node> nodes;
    for (const ContextRow& member : node.members) {
      // Who walks the tree comes to each context once, unless some have two parents, or are there twice.
      if (walked_ > v_.totals.contexts) return fail("{}: its call paths are damaged; profile again", v_.reader.path());
      TRY_VOID(v_.reader.children(member, [&](const ContextRow& c) {
        walked_++;
        add_to(nodes, c, node.depth + 1);
      }));
    }
    return sorted(std::move(nodes));
  }
  void begin_walk() { walked_ = 0; }

 private:
  void add_to(std::map<std::pair<uint32_t, uint32_t>, Node>& nodes, const ContextRow& c, uint32_t depth) {
    Node& node = nodes[{c.function, v_.options.sites ? c.site : 0}];
    node.depth = depth;
    node.members.push_back(c);
  }
  static std::vector<Node> sorted(std::map<std::pair<uint32_t, uint32_t>, Node> nodes) {
    std::vector<Node> result;
    for (auto& [key, node] : nodes) result.push_back(std::move(node));
    std::ranges::stable_sort(result, std::ranges::greater(), &Node::total);
    return result;
  }
  View& v_;
  uint64_t walked_ = 0;
};

// The total of the smallest node among the `count` largest.
Result<Cycles> smallest_shown(Tree& tree, const std::vector<Node>& roots, uint64_t count) {
  auto smaller = [](const Node& a, const Node& b) { return a.total() < b.total(); };
  std::priority_queue<Node, std::vector<Node>, decltype(smaller)> largest(smaller, roots);
  Cycles least = 0;
  tree.begin_walk();
  for (; count > 0 && !largest.empty(); count--) {
    Node node = largest.top();
    largest.pop();
    least = node.total();
    TRY(std::vector<Node> below, tree.children(node));
    for (Node& child : below) largest.push(std::move(child));
  }
  return largest.empty() ? 0 : least;
}

}  // namespace

Result<> tree(View& v) {
  if (v.totals.contexts == 0 && !v.is_sampled())
    return fail("{}: holds callers only, no call paths; profile again with: weir profile --paths=full -- {}",
                v.reader.path(), quoted_command(v.run.command));
  Tree tree(v);
  TRY(std::vector<Node> roots, tree.roots());
  uint64_t limit = v.limit(40);
  Cycles least = 0;
  if (limit != UINT64_MAX) {
    TRY(least, smallest_shown(tree, roots, limit));
  }

  std::unordered_map<uint32_t, std::string> names;
  auto name_of = [&](uint32_t id) -> const std::string& {
    auto [it, added] = names.try_emplace(id, "?");
    if (added)
      if (auto f = v.reader.function(id, v.options.os)) it->second = f->name;
    return it->second;
  };

  v.out.heading(fmt::format("call paths; shares of {}", v.amount(v.totals.all())));
  v.out.table("nodes", {{"", "total %", Kind::Share},
                        {"total", v.is_sampled() ? "samples" : "total", Kind::Cycles},
                        v.seconds_column("total_seconds", "seconds"),
                        {"", "self %", Kind::Share},
                        {"self", nullptr, Kind::Cycles},
                        v.seconds_column("self_seconds", nullptr),
                        {"calls", v.is_sampled() ? nullptr : "calls", Kind::Count},
                        {"os_time", nullptr, Kind::Cycles},
                        v.waited_column("waited"),
                        v.waited_column("waited_total"),
                        v.waited_seconds(),
                        {"depth", nullptr, Kind::Count},
                        {"name", "path", Kind::Name}});
  // Depth first; a stack of our own, for programs may recurse deeply.
  std::vector<Node> stack(std::make_move_iterator(roots.rbegin()), std::make_move_iterator(roots.rend()));
  uint64_t shown = 0, hidden = 0;
  size_t most_indent = v.is_terminal() ? v.out.style().width / 3 : SIZE_MAX;
  bool in_self = v.options.os == store::OsTime::InSelf;
  tree.begin_walk();
  while (!stack.empty()) {
    Node node = std::move(stack.back());
    stack.pop_back();
    if (node.total() < least || shown >= limit) {
      hidden++;
      continue;
    }
    shown++;
    uint64_t calls = 0;
    for (const ContextRow& c : node.members) calls += c.calls;
    Cycles os = 0;
    Cycles waited = 0, waited_total = 0;
    for (const ContextRow& c : node.members) os += c.os_time, waited += c.waited, waited_total += c.waited_total;
    Cycles self = node.sum(&ContextRow::self, &ContextRow::os_time) - (in_self ? 0 : os);
    v.out.row({v.share(node.total()), node.total(), v.in_seconds(node.total()), v.share(self), self, v.in_seconds(self),
               v.if_exact(calls), v.if_exact(os), v.if_exact(waited), v.if_exact(waited_total), v.if_waited(waited_total),
               uint64_t{node.depth}, name_of(node.function())},
              {std::min<size_t>(node.depth * 2, most_indent), false});
    TRY(std::vector<Node> below, tree.children(node));
    for (size_t i = below.size(); i-- > 0;) stack.push_back(std::move(below[i]));
  }
  if (hidden) v.out.row_line(fmt::format("… and {} smaller branches (--limit 0)", with_commas(hidden)));
  v.end_table(shown, shown);
  return {};
}

}  // namespace weir::report
