// The bytes of a DWARF section from a position on. Past the end it reads zeros and is no longer ok: one check at the end
// is enough. elf::Cursor with raw pointers: libdw names an entry by its address.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir::symbols {

struct Reader {
  const uint8_t* at = nullptr;
  const uint8_t* end = nullptr;
  bool ok = true;

  size_t left() const { return static_cast<size_t>(end - at); }
  void skip(uint64_t n) {
    if (n > left()) ok = false;
    at = ok ? at + n : end;
  }
  // A number of `size` bytes, at most 8.
  uint64_t fixed(unsigned size) {
    uint64_t value = 0;
    if (size > left()) ok = false;
    if (ok && size > 0) memcpy(&value, at, size);
    skip(size);
    return value;
  }
  uint64_t leb() {
    unsigned bits;
    return leb(bits);
  }
  int64_t signed_leb() {
    unsigned bits;
    uint64_t value = leb(bits);
    if (ok && bits < 64 && at[-1] & 0x40) value |= ~uint64_t{0} << bits;
    return static_cast<int64_t>(value);
  }
  std::string_view string() {
    auto text = reinterpret_cast<const char*>(at);
    size_t size = left() == 0 ? 0 : strnlen(text, left());
    skip(size + 1);
    return {text, size};
  }
  // The next `size` bytes; fails where there are fewer.
  Reader take(uint64_t size) {
    const uint8_t* begin = at;
    skip(size);
    return ok ? Reader{begin, at} : Reader{end, end, false};
  }

 private:
  uint64_t leb(unsigned& bits) {
    uint64_t value = 0;
    for (bits = 0; at < end;) {
      uint8_t byte = *at++;
      if (bits < 64) value |= static_cast<uint64_t>(byte & 0x7f) << bits;
      bits += 7;
      if (!(byte & 0x80)) return value;
    }
    ok = false;
    return 0;
  }
};

}  // namespace weir::symbols
