// Figures that come in any order, some of them for the same thing: sorted by that, and added up. A vector that is sorted once
// is a fraction of the work of a tree that is always in order.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace weir::profile {

// `add(sum, figure)` adds one with the same key to the first of them.
template <class Figure, class Key, class Add>
void add_up(std::vector<Figure>& figures, Key key, Add add) {
  if (!std::ranges::is_sorted(figures, {}, key)) std::ranges::stable_sort(figures, {}, key);
  size_t n = 0;
  for (size_t i = 0; i < figures.size(); i++)
    if (n && std::invoke(key, figures[n - 1]) == std::invoke(key, figures[i])) add(figures[n - 1], figures[i]);
    else figures[n++] = figures[i];
  figures.resize(n);
}

}  // namespace weir::profile
