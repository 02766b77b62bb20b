// An array that only grows, in memory that is shared with the processes forked from this one. Elements are added here, and published
// when they are whole; a copy of this process can adopt what was published, even when this one was killed at that instant.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

#include "base/fd.h"
#include "base/result.h"

namespace weir {

template <class T>
class Published {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Published() {
    void* p = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();  // as any container does; see Space::create
    memory_ = Mapping(p, reserved);
  }
  Published(std::initializer_list<T> first) : Published() { append(first.begin(), first.end()); }
  Published(const Published& other) : Published() {
    append(other.begin(), other.end());
    publish();
  }
  Published& operator=(const Published&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return reinterpret_cast<T*>(memory_.data() + header); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data() + header); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }

  void push_back(const T& value) {
    CHECK(size_ < most);
    data()[size_++] = value;
  }
  template <class I>
  void append(I first, I last) {
    for (; first != last; ++first) push_back(*first);
  }
  void append(std::span<const T> values) {
    CHECK(values.size() <= most - size_);
    std::copy(values.begin(), values.end(), end());
    size_ += values.size();
  }
  void resize(size_t size, const T& value) {
    while (size_ < size) push_back(value);
  }

  // What there is now is whole. (A copy sees the elements no later than their number.)
  void publish() { __atomic_store_n(published(), size_, __ATOMIC_RELEASE); }
  void adopt() { size_ = std::min(__atomic_load_n(published(), __ATOMIC_ACQUIRE), most); }

 private:
  static constexpr size_t reserved = size_t{4} << 30, header = 64, most = (reserved - header) / sizeof(T);
  size_t* published() const { return reinterpret_cast<size_t*>(memory_.data()); }
  Mapping memory_;  // sparse
  size_t size_ = 0;
};

}  // namespace weir
