// The bytes of an ELF file, by offset, by address and by section, every access checked.
//
// The file may be hostile: any field may hold any number. Invariant: bytes are only reached through slice(), load(),
// Cursor and Contents::at(), which compare before they add and so cannot wrap.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "elf/image.h"

namespace weir::elf {

using Bytes = std::span<const std::byte>;

// bytes[offset, offset + size), shortened to what there is.
inline Bytes slice(Bytes bytes, uint64_t offset, uint64_t size = UINT64_MAX) {
  if (offset > bytes.size()) return {};
  return bytes.subspan(offset, std::min<uint64_t>(size, bytes.size() - offset));
}

// A structure at an offset: copied, since nothing says that it is aligned.
template <class T>
std::optional<T> load(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// begin + size, stopping at the last address rather than wrapping.
inline Vaddr end_of(Vaddr begin, uint64_t size) { return {begin.value + std::min(size, UINT64_MAX - begin.value)}; }

inline VRange intersect(VRange a, VRange b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// Reads one value after another. Past the end it reads zeros and is no longer ok(): one check at the end is enough.
class Cursor {
 public:
  Cursor(Bytes bytes, Vaddr address) : bytes_(bytes), address_(address) {}

  bool ok() const { return ok_; }
  void fail() { ok_ = false; }
  Vaddr address() const { return {address_.value + position_}; }
  uint64_t left() const { return bytes_.size() - position_; }

  template <class T>
  T get() {
    std::optional<T> value = load<T>(bytes_, position_);
    if (!value) fail();
    if (!ok_) return 0;
    position_ += sizeof(T);
    return *value;
  }
  uint64_t uleb();
  int64_t sleb();
  // The next `size` bytes, with their address; fails where there are fewer.
  Cursor take(uint64_t size);

 private:
  uint64_t leb(unsigned& bits, bool& negative);

  Bytes bytes_;
  Vaddr address_;
  size_t position_ = 0;
  bool ok_ = true;
};

struct Section {
  std::string_view name;  // in the file; shortened to 32 characters
  Elf64_Shdr header;

  bool is_code() const { return header.sh_flags & SHF_EXECINSTR; }
  VRange range() const { return {{header.sh_addr}, end_of({header.sh_addr}, header.sh_size)}; }
};

struct Contents {
  Bytes file;
  std::vector<Segment> segments;

  // The bytes from `v` to the end of what its PT_LOAD has in the file; none where no PT_LOAD has `v`.
  Bytes at(Vaddr v) const;
  // The addresses of the executable PT_LOAD that has `v`, as far as the file fills it.
  std::optional<VRange> code_at(Vaddr v) const;
  const Segment* find(uint32_t type) const;
};

// Fails only where this is no ELF file, or not one for this machine.
Result<std::vector<Segment>> read_segments(Bytes file, std::string_view path);
// By index as in the file; empty where the section headers are stripped or broken.
std::vector<Section> read_sections(Bytes file);

}  // namespace weir::elf
