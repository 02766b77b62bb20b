// A row as SQLite keeps it: the sizes and types of its columns, then the columns. After sqlite.org/fileformat2.html, "Record
// Format".
#pragma once

#include <vector>

#include "store/value.h"

namespace weir::store {

// Numbers of a length that tells itself: seven bits a byte, the highest first.
size_t put_varint(std::byte* at, uint64_t n);  // → how many bytes, at most 9

// The largest byte first.
template <class T>
void put_big_endian(std::byte* at, T n, size_t size = sizeof(T)) {
  for (size_t i = size; i--; n = static_cast<T>(n >> 8)) at[i] = static_cast<std::byte>(n & 0xff);
}

// Replaces what is in `record`.
void encode(std::span<const Value> row, std::vector<std::byte>& record);

}  // namespace weir::store
