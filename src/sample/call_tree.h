// The calling-context tree of one thread: every call path that was sampled, once, with the samples that ended there; made of the records
// that the thread leaves (rt/records.h).
//
// Flat memory of a fixed size, which the guardian shares (sample/guardian.cc), and the target does not see. A node's number is fixed, its
// parent's is smaller. What finds no room ends in one node that says so, and is counted there.
//
//     TreeHead
//     TreeNode nodes[capacity]
//     Chain    chains[2 * capacity]       those below 2 * size are in use
//     uint32_t paths[map_count][most_callers]    the nodes of each map's last record, outermost first
//
// Nodes are found by linear hashing, with two chains a node, and each new node splits two: memory is touched as the tree grows.
#pragma once

#include <utility>

#include "rt/records.h"

namespace weir::sample {

struct TreeNode {
  uint64_t address;  // a return address; of a leaf, where the sample was; of a root, why the walk ended there
  uint64_t samples;  // that ended here
  uint32_t parent;
  uint32_t next;  // of its chain, 0: none (node 0 is a root, and not looked for)
  enum Kind : uint32_t { Root, Caller, Leaf, Full } kind;
};
static_assert(sizeof(TreeNode) == 32);

// One root for each reason why a walk may end: a path that was cut off is not one that began at main.
constexpr uint32_t root_count = rt::end_count, full_node = root_count, no_node = UINT32_MAX;

struct TreeHead {
  uint32_t capacity;  // a power of two; 0: nothing was made yet
  uint32_t size;      // written last: nodes below it are whole
  uint32_t most_callers;
  uint32_t depths[rt::map_count];  // of the paths
  uint64_t read;                   // words of the thread's records
  uint64_t damaged;                // times that these made no sense
};

class CallTree {
 public:
  static constexpr uint64_t bytes_for(uint32_t capacity, uint32_t most_callers) {
    return sizeof(TreeHead) + uint64_t{capacity} * (sizeof(TreeNode) + 2 * sizeof(uint32_t)) +
           uint64_t{rt::map_count} * most_callers * sizeof(uint32_t);
  }

  // `memory` is zero and bytes_for() long; capacity is a power of two, at least 64, at most 2^30.
  static CallTree make(void* memory, uint32_t capacity, uint32_t most_callers) {
    auto* head = static_cast<TreeHead*>(memory);
    CallTree tree(memory);
    for (uint32_t i = 0; i < root_count; i++) tree.nodes()[i] = {i, 0, i, 0, TreeNode::Root};
    tree.nodes()[full_node] = {0, 0, full_node, 0, TreeNode::Full};
    head->size = full_node + 1, head->most_callers = most_callers;
    __atomic_store_n(&head->capacity, capacity, __ATOMIC_RELEASE);
    return tree;
  }
  explicit CallTree(void* memory) : head_(static_cast<TreeHead*>(memory)) {}

  uint32_t size() const { return head_->size; }
  TreeNode* nodes() const { return reinterpret_cast<TreeNode*>(head_ + 1); }

  // What the thread has left since the last time.
  void take(const rt::Records& records) {
    auto put_down = [&](const rt::Record& r, const uint64_t* callers) { head_->damaged += take(r, callers) == no_node; };
    if (!records.take(head_->read, put_down)) head_->damaged++;
  }

  uint64_t damaged() const { return head_->damaged; }

  // The node of the sample; no_node: the record makes no sense.
  uint32_t take(const rt::Record& r, const uint64_t* callers) {
    if (r.map >= rt::map_count || r.end >= rt::Stop::Count) return no_node;
    uint32_t& depth = head_->depths[r.map];
    if (r.kept > depth || uint32_t{r.kept} + r.more > head_->most_callers) return no_node;
    uint32_t* path = paths() + uint64_t{r.map} * head_->most_callers;
    uint32_t node = r.kept ? path[r.kept - 1] : static_cast<uint32_t>(r.end);
    for (uint32_t i = 0; i < r.more; i++) path[r.kept + i] = node = child(node, callers[i], TreeNode::Caller);
    depth = r.kept + r.more;
    node = child(node, r.leaf, TreeNode::Leaf);
    nodes()[node].samples += r.weight;
    return node;
  }

 private:
  static uint32_t power_below(uint32_t count) { return 1u << (31 - __builtin_clz(count)); }
  static uint32_t hash_of(uint32_t parent, uint64_t address, TreeNode::Kind kind) {
    uint64_t key = uint64_t{parent} << 1 | (kind == TreeNode::Leaf);
    return static_cast<uint32_t>((address * 0x9E3779B97F4A7C15ull ^ key) * 0xD6E8FEB86659FD93ull >> 32);
  }
  static uint32_t hash_of(const TreeNode& n) { return hash_of(n.parent, n.address, n.kind); }

  // Of `count` chains, those that are not split yet, in this round, stand for two.
  static uint32_t place_of(uint32_t hash, uint32_t count) {
    uint32_t power = power_below(count), place = hash & (2 * power - 1);
    return place < count ? place : place - power;
  }

  uint32_t* chains() const { return reinterpret_cast<uint32_t*>(nodes() + head_->capacity); }
  uint32_t* paths() const { return chains() + 2 * uint64_t{head_->capacity}; }

  // The node for `address` below `parent`; it is made if there is none.
  uint32_t child(uint32_t parent, uint64_t address, TreeNode::Kind kind) {
    if (parent == full_node) return full_node;
    uint32_t hash = hash_of(parent, address, kind), number = head_->size;
    for (uint32_t i = chains()[place_of(hash, 2 * number)]; i; i = nodes()[i].next)
      if (const TreeNode& n = nodes()[i]; n.address == address && n.parent == parent && n.kind == kind) return i;
    if (number >= head_->capacity) return full_node;
    split(2 * number), split(2 * number + 1);
    nodes()[number] = {address, 0, parent, 0, kind};
    __atomic_store_n(&head_->size, number + 1, __ATOMIC_RELEASE);
    push(chains()[place_of(hash, 2 * number + 2)], number);
    return number;
  }

  void push(uint32_t& chain, uint32_t number) { nodes()[number].next = chain, chain = number; }

  // Chain `count` takes its nodes from the one that stood for it.
  void split(uint32_t count) {
    uint32_t &from = chains()[count - power_below(count)], &to = chains()[count];
    for (uint32_t i = std::exchange(from, 0), next; i; i = next) {
      next = nodes()[i].next;
      push(place_of(hash_of(nodes()[i]), count + 1) == count ? to : from, i);
    }
  }

  TreeHead* head_ = nullptr;
};

}  // namespace weir::sample
