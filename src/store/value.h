// One cell of a row: NULL, a number, a text or bytes, which it does not own.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::store {

struct Value {
  enum class Kind : uint8_t { Null, Integer, Real, Text, Blob };

  Value() = default;
  template <std::integral T>
  Value(T n) : kind(Kind::Integer), integer(saturated(n)) {}
  Value(double d) : kind(Kind::Real), real(d) {}
  Value(std::string_view s) : kind(Kind::Text), size(static_cast<uint32_t>(s.size())), data(s.data()) {}
  Value(const std::string& s) : Value(std::string_view(s)) {}
  Value(const char* s) : Value(std::string_view(s)) {}
  // No bytes are NULL.
  Value(std::span<const std::byte> b)
      : kind(b.empty() ? Kind::Null : Kind::Blob), size(static_cast<uint32_t>(b.size())), data(b.data()) {}

  Kind kind = Kind::Null;
  uint32_t size = 0;
  union {
    int64_t integer = 0;
    double real;
    const void* data;
  };

 private:
  // SQLite's integers are signed.
  template <class T>
  static int64_t saturated(T n) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) return n > INT64_MAX ? INT64_MAX : static_cast<int64_t>(n);
    return static_cast<int64_t>(n);
  }
};

}  // namespace weir::store
