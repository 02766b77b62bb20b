// The calling-context tree of one thread: every call path that was sampled, once, with the samples that ended there.
//
// Flat memory of a fixed size, in a shared file: the thread adds nodes, Weir reads them, also after the process has died. A
// node's number is fixed, its parent's is smaller. No locks: one thread writes. What finds no room ends in one node that says so, and
// is counted there.
//
//     TreeHead
//     TreeNode nodes[capacity]
//     Chain    chains[2 * capacity]    those below 2 * size are in use
//
// Nodes are found by a hash of their path: linear hashing, with two chains a node, and each new node splits two. So memory is touched as
// the tree grows, and no sample waits for a table to be made anew: a page that is touched for the first time costs as much as some samples.
//
// The program has driven most of it out of the caches since the last sample, and what a sample takes is the time of the reads that wait for
// each other. So a chain says what its first node's hash is, and whether there are more: mostly no node is read but the one that is looked
// for. And as the hash does not depend on where the nodes are, those of many frames are fetched at the same time: expect().
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::rt {

struct TreeNode {
  uint64_t address;  // a return address; of a leaf, where the sample was; of a root, why the walk ended there
  uint64_t samples;  // that ended here
  uint32_t parent;
  uint32_t hash;  // of the path from its root
  uint32_t kind;
  uint32_t next;  // of its chain, 0: none
  enum Kind : uint32_t { Root, Caller, Leaf, Full };
};
static_assert(sizeof(TreeNode) == 32);

// One root for each reason why a walk may end: a path that was cut off is not one that began at main.
constexpr uint32_t root_count = 16, full_node = root_count;

struct Chain {
  static constexpr uint32_t more = 1u << 31;
  uint32_t first;  // the first node, 0: none (node 0 is a root, and not looked for); with `more`: it has a next
  uint32_t hash;   // of the first node
  uint32_t node() const { return first & ~more; }
  bool may_have(uint32_t wanted) const { return first & more || (first && hash == wanted); }
};

struct TreeHead {
  uint32_t capacity;  // a power of two
  uint32_t size;      // written last: nodes below it are whole
};

class CallTree {
 public:
  static constexpr uint64_t bytes_for(uint32_t capacity) {
    return sizeof(TreeHead) + uint64_t{capacity} * (sizeof(TreeNode) + 2 * sizeof(Chain));
  }

  // `memory` is zero and bytes_for(capacity) long; capacity is a power of two, at least 64, at most 2^30.
  static CallTree make(void* memory, uint32_t capacity) {
    auto* head = static_cast<TreeHead*>(memory);
    head->capacity = capacity;
    CallTree tree(memory);
    for (uint32_t i = 0; i < root_count; i++) tree.nodes()[i] = {i, 0, i, hash_of_root(i), TreeNode::Root, 0};
    tree.nodes()[full_node] = {0, 0, full_node, 0, TreeNode::Full, 0};
    head->size = full_node + 1;
    return tree;
  }

  CallTree() = default;
  explicit CallTree(void* memory) : head_(static_cast<TreeHead*>(memory)) {}

  uint32_t size() const { return head_->size; }
  TreeNode* nodes() const { return reinterpret_cast<TreeNode*>(head_ + 1); }

  static uint32_t hash_of_root(uint32_t root) { return root; }
  static uint32_t hash_below(uint32_t parent_hash, uint64_t address, TreeNode::Kind kind) {
    uint64_t key = uint64_t{parent_hash} << 1 | (kind == TreeNode::Leaf);
    return static_cast<uint32_t>((address * 0x9E3779B97F4A7C15ull ^ key) * 0xD6E8FEB86659FD93ull >> 32);
  }

  // A path with this hash will be asked for: its chain is fetched; and, when that is there, its node.
  void expect(uint32_t hash) const { __builtin_prefetch(&chain_of(hash)); }
  void expect_node(uint32_t hash) const {
    if (Chain c = chain_of(hash); c.may_have(hash)) __builtin_prefetch(&nodes()[c.node()]);
  }

  // The node for `address` below `parent`, whose path has this hash; it is made if there is none.
  uint32_t child(uint32_t parent, uint64_t address, TreeNode::Kind kind, uint32_t hash) {
    if (parent == full_node) return full_node;
    if (Chain c = chain_of(hash); c.may_have(hash))
      for (uint32_t i = c.node(); i; i = nodes()[i].next)
        if (const TreeNode& n = nodes()[i]; n.address == address && n.parent == parent && n.kind == kind) return i;
    uint32_t number = head_->size;
    if (number >= head_->capacity) return full_node;
    split(2 * number), split(2 * number + 1);
    nodes()[number] = {address, 0, parent, hash, kind, 0};
    __atomic_store_n(&head_->size, number + 1, __ATOMIC_RELEASE);
    push(chain_of(hash), number);
    return number;
  }

  void count(uint32_t node, uint64_t samples) { nodes()[node].samples += samples; }

 private:
  static uint32_t power_below(uint32_t count) { return 1u << (31 - __builtin_clz(count)); }

  // Of `count` chains, those that are not split yet, in this round, stand for two.
  static uint32_t place_of(uint32_t hash, uint32_t count) {
    uint32_t power = power_below(count), place = hash & (2 * power - 1);
    return place < count ? place : place - power;
  }

  Chain* chains() const { return reinterpret_cast<Chain*>(nodes() + head_->capacity); }
  Chain& chain_of(uint32_t hash) const { return chains()[place_of(hash, 2 * head_->size)]; }

  void push(Chain& c, uint32_t number) {
    TreeNode& n = nodes()[number];
    n.next = c.node();
    c = {n.next ? number | Chain::more : number, n.hash};
  }

  // Chain `count` takes its nodes from the one that stood for it.
  void split(uint32_t count) {
    Chain &from = chains()[count - power_below(count)], &to = chains()[count], was = from;
    auto moves = [&](uint32_t hash) { return place_of(hash, count + 1) == count; };
    if (!(was.first & Chain::more)) {
      if (was.first && moves(was.hash)) to = was, from = {};
      return;
    }
    from = {};
    for (uint32_t i = was.node(), next; i; i = next) {
      next = nodes()[i].next;
      push(moves(nodes()[i].hash) ? to : from, i);
    }
  }

  TreeHead* head_ = nullptr;
};

}  // namespace weir::rt
