#include "elf/cfi.h"

namespace weir::elf {

namespace {

constexpr uint8_t format_bits = 0x0f, relative_bits = 0x70, indirect = 0x80;
constexpr uint8_t pc_relative = 0x10, data_relative = 0x30;

// version, augmentation (a string), [eh_data,] [sizes of address and segment,] alignment of code and of data, return register,
// and, if the augmentation begins with z, a length and what the letters behind it announce.
std::optional<Cie> read_cie(Cursor c) {
  Cie cie;
  uint8_t version = c.get<uint8_t>();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  std::string augmentation;
  while (char letter = c.get<char>()) {
    augmentation += letter;
    if (augmentation.size() > 8) return std::nullopt;
  }
  if (augmentation.starts_with("eh")) c.get<uint64_t>();  // g++ 2's exception table
  if (version == 4 && (c.get<uint8_t>() != 8 || c.get<uint8_t>() != 0)) return std::nullopt;
  cie.code_align = c.uleb();
  cie.data_align = c.sleb();
  cie.return_register = version == 1 ? c.get<uint8_t>() : c.uleb();
  if (augmentation.starts_with('z')) {
    cie.has_augmentation_data = true;
    Cursor data = c.take(c.uleb());
    for (char letter : augmentation.substr(1)) {
      if (letter == 'R') cie.encoding = data.get<uint8_t>();
      else if (letter == 'L') data.get<uint8_t>();
      else if (letter == 'P') read_format(data, data.get<uint8_t>());
      else if (letter == 'S') cie.is_signal_frame = true;
      else break;  // the length says where the instructions are
    }
    if (!data.ok()) return std::nullopt;
  } else if (!augmentation.empty() && augmentation != "eh") {
    return std::nullopt;
  }
  cie.instructions = c;
  return c.ok() ? std::optional(cie) : std::nullopt;
}

}  // namespace

uint64_t read_format(Cursor& c, uint8_t encoding) {
  switch (encoding & format_bits) {
    case 0x00:
    case 0x04:
    case 0x0c: return c.get<uint64_t>();
    case 0x01: return c.uleb();
    case 0x02: return c.get<uint16_t>();
    case 0x03: return c.get<uint32_t>();
    case 0x09: return static_cast<uint64_t>(c.sleb());
    case 0x0a: return static_cast<uint64_t>(int64_t{c.get<int16_t>()});
    case 0x0b: return static_cast<uint64_t>(int64_t{c.get<int32_t>()});
    default: c.fail(); return 0;
  }
}

Vaddr read_pointer(Cursor& c, uint8_t encoding, std::optional<Vaddr> data_base) {
  Vaddr field = c.address();
  uint64_t value = read_format(c, encoding);
  if (encoding & indirect) c.fail();
  switch (encoding & relative_bits) {
    case absolute_pointer: return {value};
    case pc_relative: return {field.value + value};
    case data_relative:
      if (data_base) return {data_base->value + value};
      [[fallthrough]];
    default: c.fail(); return {};
  }
}

// A CIE or an FDE: length (4 bytes, or ffffffff and 8), id, the rest.
//   .eh_frame:    id = 0: a CIE; else the CIE is at (place of id) - id
//   .debug_frame: id = -1: a CIE; else it is the CIE's offset; 8 bytes where the length has them
struct FrameSection::Record {
  bool is_cie;
  uint64_t cie;  // of an FDE: the offset of its CIE
  Cursor rest;
  uint64_t next;
};

std::optional<FrameSection::Record> FrameSection::record_at(uint64_t offset) const {
  Cursor c(slice(bytes_, offset), address_ + static_cast<int64_t>(offset));
  uint64_t length = c.get<uint32_t>();
  bool is_long = length == 0xffffffff;
  if (is_long) length = c.get<uint64_t>();
  Cursor rest = c.take(length);
  if (!rest.ok()) return std::nullopt;
  uint64_t id_at = rest.address().value - address_.value;
  uint64_t next = c.address().value - address_.value;
  if (kind_ == Eh) {
    uint32_t id = rest.get<uint32_t>();  // a length of 0 is the end: no id to read
    if (!rest.ok()) return std::nullopt;
    return Record{id == 0, id_at - id, rest, next};
  }
  uint64_t none = is_long ? UINT64_MAX : 0xffffffff;
  uint64_t id = is_long ? rest.get<uint64_t>() : rest.get<uint32_t>();
  if (!rest.ok()) return std::nullopt;
  return Record{id == none, id, rest, next};
}

const Cie* FrameSection::cie_at(uint64_t offset) {
  if (offset == last_offset_) return last_;
  auto [found, is_new] = cies_.try_emplace(offset);
  if (is_new && offset < bytes_.size()) {
    std::optional<Record> record = record_at(offset);
    if (record && record->is_cie) found->second = read_cie(record->rest);
  }
  last_offset_ = offset;
  return last_ = found->second ? &*found->second : nullptr;
}

// Behind an FDE's id: begin (as the CIE says), size (the same format, relative to nothing), [augmentation data,] instructions.
size_t FrameSection::for_each(const std::function<void(const Fde&)>& take) {
  size_t bad = 0;
  for (uint64_t at = 0; at < bytes_.size();) {
    std::optional<Record> record = record_at(at);
    if (!record) break;
    at = record->next;
    if (record->is_cie) continue;
    const Cie* cie = cie_at(record->cie);
    if (!cie) {
      ++bad;
      continue;
    }
    Cursor& c = record->rest;
    Vaddr begin = read_pointer(c, cie->encoding, std::nullopt);
    uint64_t size = read_format(c, cie->encoding);
    if (cie->has_augmentation_data) c.take(c.uleb());
    if (!c.ok() || size > UINT64_MAX - begin.value) ++bad;
    else if (size != 0) take({*cie, {begin, end_of(begin, size)}, c});
  }
  return bad;
}

}  // namespace weir::elf
