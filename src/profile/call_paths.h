// Call paths as a tree: each has a larger number than the one that called it.
#pragma once

#include <unordered_map>
#include <vector>

#include "profile/profile.h"

namespace weir::profile {

// What each path has, with all that is below it.
inline std::vector<Cycles> with_descendants(const std::vector<Context>& contexts, std::vector<Cycles> own) {
  for (size_t i = contexts.size(); i-- > 0;)
    if (contexts[i].parent != none) own[contexts[i].parent] += own[i];
  return own;
}

// `visit(i)`: those that are in no other call of their function.
template <class Visit>
void visit_outermost(const std::vector<Context>& contexts, Visit visit) {
  std::vector<uint32_t> first(contexts.size(), none), next(contexts.size(), none), roots;
  for (auto i = static_cast<uint32_t>(contexts.size()); i--;) {
    uint32_t parent = contexts[i].parent;
    if (parent == none) roots.push_back(i);
    else next[i] = first[parent], first[parent] = i;
  }
  std::unordered_map<uint32_t, uint32_t> depth;  // of the functions on the path
  std::vector<uint32_t> path;
  auto enter = [&](uint32_t i) {
    path.push_back(i);
    if (depth[contexts[i].function]++ == 0) visit(i);
  };
  for (uint32_t root : roots) {
    enter(root);
    while (!path.empty()) {
      uint32_t at = path.back();
      if (uint32_t child = first[at]; child != none) {
        first[at] = next[child];
        enter(child);
      } else {
        depth[contexts[at].function]--;
        path.pop_back();
      }
    }
  }
}

}  // namespace weir::profile
