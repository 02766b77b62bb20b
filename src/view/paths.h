// Call paths as a tree, the threads laid over each other: of the run, and of the run before, whose functions are the page's.
//
// A picture shows some thousands of frames, whatever the tree holds: a *cut* is the part of it that is large enough to be seen.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "view/model.h"

namespace weir::view {

// Nodes in the order of a walk: a parent, then each child with all below it, the largest first. Node 0 is what was asked for.
struct Cut {
  struct Node {
    uint32_t parent = 0;
    uint32_t function = store::none;  // id; none: the whole run
    Cycles total = 0, self = 0, before = 0;
    uint64_t calls = 0;
  };
  std::vector<Node> nodes;
  uint64_t left_out = 0;  // branches
};

class Paths {
 public:
  // Times of the run before are multiplied by `scale`.
  static Result<Paths> load(const store::Reader& now, const store::Reader* before, const Model& model, double scale = 1);
  bool compared() const { return compared_; }  // the run before has call paths, too
  uint64_t calls() const { return calls_; }    // on all paths: fewer than were made where the table of call paths was full

  // Below the node that a path of function ids leads to; nothing where it leads nowhere. At most `most` nodes.
  std::optional<Cut> cut(const std::vector<uint32_t>& path, size_t most) const;
  // From the leaves: a node's children are the callers of it, weighted with the time of the leaf.
  std::optional<Cut> inverted(const std::vector<uint32_t>& path, size_t most) const;
  // The same of one function with all that it calls: path[0], whose outermost calls are taken for leaves.
  std::optional<Cut> callers_of(const std::vector<uint32_t>& path, size_t most) const;

  // What happened below the outermost calls of a function: functions by id, and calls by caller and callee. Totals are those of
  // calls that are not within one of the same function; nothing where it is on no path.
  struct Figures {
    Cycles total = 0, self = 0, before = 0, self_before = 0;
    uint64_t calls = 0;
  };
  struct Below {
    std::unordered_map<uint32_t, Figures> functions;
    std::map<std::pair<uint32_t, uint32_t>, Figures> calls;
  };
  Below below(uint32_t function) const;

 private:
  struct Node {
    uint32_t parent = store::none;
    uint32_t function = store::none;
    Cycles self = 0, self_before = 0, total = 0, before = 0;
    uint64_t calls = 0;
    Cycles size() const { return std::max(total, before); }
  };
  // Of a leaf's time, what came by way of a node.
  struct Share {
    uint32_t at;
    Cycles self, before;
  };
  Result<> add(const store::Reader& reader, const Model& model, bool of_before, double scale);
  void finish();
  using Leaves = std::map<uint32_t, std::vector<Share>>;  // by function
  std::optional<Cut> upwards(Leaves leaves, const std::vector<uint32_t>& path, size_t most) const;
  std::vector<std::pair<uint32_t, std::vector<Share>>> callers(const std::vector<Share>& shares) const;

  bool compared_ = false;
  uint64_t calls_ = 0;
  std::vector<Node> nodes_;  // a parent before its children; node 0: the whole run
  std::vector<uint32_t> first_,
      children_;  // the children of node i: children_[first_[i]] … children_[first_[i + 1] - 1], the largest first
};

}  // namespace weir::view
