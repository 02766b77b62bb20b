// A hash map for addresses: open addressing, one allocation, no removal of single nodes' memory. Address 0 is never a key.
#pragma once

#include <cstdint>
#include <vector>

#include "base/address.h"

namespace weir {

template <class V>
class FlatMap {
 public:
  struct Entry {
    AppPc key;
    V value{};
  };

  V* find(AppPc key) {
    if (entries_.empty()) return nullptr;
    Entry& e = entries_[slot(key)];
    return e.key ? &e.value : nullptr;
  }
  const V* find(AppPc key) const { return const_cast<FlatMap*>(this)->find(key); }

  V& operator[](AppPc key) {
    if ((size_ + 1) * 2 > entries_.size()) grow();
    Entry& e = entries_[slot(key)];
    if (!e.key) {
      e.key = key;
      size_++;
    }
    return e.value;
  }

  template <class F>
  void for_each(F f) const {
    for (const Entry& e : entries_)
      if (e.key) f(e.key, e.value);
  }

 private:
  size_t slot(AppPc key) const {
    size_t mask = entries_.size() - 1;
    size_t i = (key.value * 0x9E3779B97F4A7C15ull >> 20) & mask;
    while (entries_[i].key && entries_[i].key != key) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Entry> old = std::move(entries_);
    entries_.assign(old.empty() ? 1024 : old.size() * 2, {});
    for (Entry& e : old)
      if (e.key) entries_[slot(e.key)] = std::move(e);
  }

  std::vector<Entry> entries_;
  size_t size_ = 0;
};

}  // namespace weir
