// The calling-context tree of one thread: every call path that was sampled, once, with the samples that ended there.
//
// Flat memory of a fixed size, in a shared file: the thread adds nodes, Weir reads them, also after the process has died. A
// node's number is fixed, its parent's is smaller. Nodes are found by a hash of (parent, address): linear hashing, with as many
// chains as nodes, and each new node splits one. So memory is touched as the tree grows, and no sample waits for a table to be
// made anew: a page that is touched for the first time costs as much as some samples. No locks: one thread writes. What
// finds no room ends in one node that says so, and is counted there.
//
//     TreeHead
//     TreeNode nodes[capacity]
//     uint32_t chains[capacity]    their first nodes, 0: none (node 0 is a root, and not looked for); those below `size` are in use
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir::rt {

struct TreeNode {
  uint64_t address;  // a return address; of a leaf, where the sample was; of a root, why the walk ended there
  uint64_t samples;  // that ended here
  uint32_t parent;
  uint32_t recent;  // the child that was asked for last, 0: none: paths are mostly walked again, and lie side by side
  uint32_t kind;
  uint32_t next;  // of its chain, 0: none
  enum Kind : uint32_t { Root, Caller, Leaf, Full };
};
static_assert(sizeof(TreeNode) == 32);

// One root for each reason why a walk may end: a path that was cut off is not one that began at main.
constexpr uint32_t root_count = 16, full_node = root_count;

struct TreeHead {
  uint32_t capacity;  // a power of two
  uint32_t size;      // written last: nodes below it are whole
};

class CallTree {
 public:
  static uint64_t bytes_for(uint32_t capacity) {
    return sizeof(TreeHead) + uint64_t{capacity} * (sizeof(TreeNode) + sizeof(uint32_t));
  }

  // `memory` is zero and bytes_for(capacity) long; capacity is a power of two, at least 64.
  static CallTree make(void* memory, uint32_t capacity) {
    auto* head = static_cast<TreeHead*>(memory);
    head->capacity = capacity;
    CallTree tree(memory);
    for (uint32_t i = 0; i < root_count; i++) tree.nodes()[i] = {i, 0, i, 0, TreeNode::Root, 0};
    tree.nodes()[full_node] = {0, 0, full_node, 0, TreeNode::Full, 0};
    head->size = full_node + 1;
    return tree;
  }

  CallTree() = default;
  explicit CallTree(void* memory) : head_(static_cast<TreeHead*>(memory)) {}

  uint32_t size() const { return head_->size; }
  TreeNode* nodes() const { return reinterpret_cast<TreeNode*>(head_ + 1); }

  // The node for `address` below `parent`, which is made if there is none.
  uint32_t child(uint32_t parent, uint64_t address, TreeNode::Kind kind) {
    if (parent == full_node) return full_node;
    uint32_t recent = nodes()[parent].recent;
    if (recent && nodes()[recent].address == address && nodes()[recent].kind == kind) return recent;
    uint32_t found = find(parent, address, kind);
    if (found != full_node) nodes()[parent].recent = found;
    return found;
  }

  void count(uint32_t node, uint64_t samples) { nodes()[node].samples += samples; }

 private:
  static uint32_t hash_of(uint32_t parent, uint64_t address, uint32_t kind) {
    uint64_t key = uint64_t{parent} << 1 | (kind == TreeNode::Leaf);
    return static_cast<uint32_t>((address * 0x9E3779B97F4A7C15ull ^ key) * 0xD6E8FEB86659FD93ull >> 32);
  }

  static uint32_t power_below(uint32_t count) { return 1u << (31 - __builtin_clz(count)); }

  // Of `count` chains, those that are not split yet, in this round, stand for two.
  static uint32_t chain_of(uint32_t hash, uint32_t count) {
    uint32_t power = power_below(count), chain = hash & (2 * power - 1);
    return chain < count ? chain : chain - power;
  }

  uint32_t* chains() const { return reinterpret_cast<uint32_t*>(nodes() + head_->capacity); }

  // Chain `count` takes its nodes from the one that stood for it.
  void split(uint32_t count) {
    uint32_t* from = &chains()[count - power_below(count)];
    uint32_t* to = &chains()[count];
    while (*from) {
      TreeNode& n = nodes()[*from];
      if (chain_of(hash_of(n.parent, n.address, n.kind), count + 1) != count) {
        from = &n.next;
        continue;
      }
      *to = *from, to = &n.next;
      *from = n.next, n.next = 0;
    }
  }

  uint32_t find(uint32_t parent, uint64_t address, TreeNode::Kind kind) {
    uint32_t hash = hash_of(parent, address, kind), number = head_->size;
    for (uint32_t i = chains()[chain_of(hash, number)]; i; i = nodes()[i].next) {
      const TreeNode& n = nodes()[i];
      if (n.address == address && n.parent == parent && n.kind == kind) return i;
    }
    if (number >= head_->capacity) return full_node;
    split(number);
    uint32_t& first = chains()[chain_of(hash, number + 1)];
    nodes()[number] = {address, 0, parent, 0, kind, first};
    first = number;
    __atomic_store_n(&head_->size, number + 1, __ATOMIC_RELEASE);
    return number;
  }

  TreeHead* head_ = nullptr;
};

}  // namespace weir::rt
