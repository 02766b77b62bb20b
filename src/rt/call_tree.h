// The calling-context tree of one thread: every call path that was sampled, once, with the samples that ended there.
//
// Flat memory of a fixed size, in a shared file: the thread adds nodes, Weir reads them, also after the process has died. A
// node's number is fixed, its parent's is smaller. Nodes are found by a hash of (parent, address): open addressing, at
// most half full. No locks: one thread writes. What finds no room ends in one node that says so, and is counted there.
//
//     TreeHead
//     TreeNode nodes[capacity]
//     uint32_t slots[2 · capacity]    numbers of nodes, 0: empty (node 0 is a root, and not looked for)
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
    return sizeof(TreeHead) + uint64_t{capacity} * (sizeof(TreeNode) + 2 * sizeof(uint32_t));
  }

  // `memory` is zero and bytes_for(capacity) long; capacity is a power of two, at least 64.
  static CallTree make(void* memory, uint32_t capacity) {
    auto* head = static_cast<TreeHead*>(memory);
    head->capacity = capacity;
    CallTree tree(memory);
    for (uint32_t i = 0; i < root_count; i++) tree.nodes()[i] = {i, 0, i, 0, TreeNode::Root};
    tree.nodes()[full_node] = {0, 0, full_node, 0, TreeNode::Full};
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
  uint32_t find(uint32_t parent, uint64_t address, TreeNode::Kind kind) {
    uint32_t mask = head_->capacity * 2 - 1;
    uint32_t* slots = reinterpret_cast<uint32_t*>(nodes() + head_->capacity);
    uint64_t key = uint64_t{parent} << 1 | (kind == TreeNode::Leaf);
    uint64_t hash = (address * 0x9E3779B97F4A7C15ull ^ key) * 0xD6E8FEB86659FD93ull;
    uint32_t i = static_cast<uint32_t>(hash >> 32) & mask;
    for (; slots[i]; i = (i + 1) & mask) {
      const TreeNode& n = nodes()[slots[i]];
      if (n.address == address && n.parent == parent && n.kind == kind) return slots[i];
    }
    uint32_t number = head_->size;
    if (number >= head_->capacity) return full_node;
    nodes()[number] = {address, 0, parent, 0, kind};
    slots[i] = number;
    __atomic_store_n(&head_->size, number + 1, __ATOMIC_RELEASE);
    return number;
  }

  TreeHead* head_ = nullptr;
};

}  // namespace weir::rt
