#include "store/record.h"

#include <bit>
#include <cstring>

#include "base/result.h"

namespace weir::store {

namespace {

// The serial type of a number, and how many bytes it takes. 8 and 9 are the numbers 0 and 1 themselves.
struct Serial {
  uint8_t type, size;
};
Serial serial_of(int64_t n) {
  if (n == 0 || n == 1) return {static_cast<uint8_t>(8 + n), 0};
  uint64_t magnitude = static_cast<uint64_t>(n < 0 ? ~n : n);
  if (magnitude < 1ull << 7) return {1, 1};
  if (magnitude < 1ull << 15) return {2, 2};
  if (magnitude < 1ull << 23) return {3, 3};
  if (magnitude < 1ull << 31) return {4, 4};
  if (magnitude < 1ull << 47) return {5, 6};
  return {6, 8};
}

// Behind the head.
size_t size_of(const Value& v) {
  if (v.kind == Value::Kind::Integer) return serial_of(v.integer).size;
  return v.kind == Value::Kind::Real ? sizeof v.real : v.size;
}

}  // namespace

size_t put_varint(std::byte* at, uint64_t n) {
  if (n < 0x80) return at[0] = static_cast<std::byte>(n), 1;
  size_t size = 2;
  while (size < 9 && n >> (7 * size)) size++;
  // The ninth byte has eight bits.
  if (size == 9) at[8] = static_cast<std::byte>(n & 0xff), n >>= 8;
  for (size_t i = size == 9 ? 8 : size; i--; n >>= 7)
    at[i] = static_cast<std::byte>((n & 0x7f) | (i + 1 == size ? 0 : 0x80));
  return size;
}

void encode(std::span<const Value> row, std::vector<std::byte>& record) {
  constexpr size_t most_head = 127, most_number = 9;  // a head that is larger would have two bytes for its size
  size_t most = most_head;
  for (const Value& v : row) most += size_of(v);
  if (record.size() < most) record.resize(most);
  std::byte* head = record.data() + 1;
  for (const Value& v : row) {
    CHECK(head + most_number <= record.data() + most_head);
    switch (v.kind) {
      case Value::Kind::Null: *head++ = std::byte{0}; break;
      case Value::Kind::Integer: *head++ = std::byte{serial_of(v.integer).type}; break;
      case Value::Kind::Real: *head++ = std::byte{7}; break;
      case Value::Kind::Text: head += put_varint(head, 13 + uint64_t{v.size} * 2); break;
      case Value::Kind::Blob: head += put_varint(head, 12 + uint64_t{v.size} * 2); break;
    }
  }
  record[0] = static_cast<std::byte>(head - record.data());
  std::byte* body = head;
  for (const Value& v : row) {
    if (v.kind == Value::Kind::Null) continue;
    size_t size = size_of(v);
    if (v.kind == Value::Kind::Integer) put_big_endian(body, v.integer, size);
    else if (v.kind == Value::Kind::Real) put_big_endian(body, std::bit_cast<uint64_t>(v.real));
    else memcpy(body, v.data, size);
    body += size;
  }
  record.resize(static_cast<size_t>(body - record.data()));
}

}  // namespace weir::store
