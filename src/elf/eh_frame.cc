// The problem: the FDE of an address, without reading a table of up to a million of them at start-up.
//
// .eh_frame_hdr is a table of (first address, address of the FDE), sorted by the linker, and is searched where it lies.
// Only a file whose table is missing or encoded in an unusual way has its .eh_frame read from end to end, once.
// Invariant: base_ and table_ belong together, and list_ is filled only where table_ is empty.
// After the LSB Core Specification, "DWARF Extensions" and "Exception Frames".
#include "elf/eh_frame.h"

#include "elf/cfi.h"

namespace weir::elf {

// A CIE or an FDE: length (4 bytes, or ffffffff and 8), id (4), the rest.
// id = 0: a CIE; else an FDE, and its CIE is at (address of id) - id.
struct EhFrame::Record {
  uint32_t id;
  Vaddr id_address;
  Cursor rest;
  Vaddr next;
};

EhFrame::EhFrame(const Contents& contents, std::span<const Section> sections) : contents_(contents) {
  if (const Segment* header = contents.find(PT_GNU_EH_FRAME)) read_header(*header);
  if (table_.empty()) read_all(sections);
}

// version (1), encodings of: eh_frame_ptr, fde_count, table; eh_frame_ptr; fde_count; table.
void EhFrame::read_header(const Segment& header) {
  Cursor c(slice(contents_.file, header.offset, header.file_size), header.vaddr);
  uint8_t version = c.get<uint8_t>();
  uint8_t frames_encoding = c.get<uint8_t>();
  uint8_t count_encoding = c.get<uint8_t>();
  uint8_t table_encoding = c.get<uint8_t>();
  Vaddr frames = read_pointer(c, frames_encoding, header.vaddr);
  if (!c.ok() || version != 1) return;
  frames_ = frames;
  if (count_encoding != udata4_pointer || table_encoding != data_relative_sdata4_pointer) return;
  uint64_t count = c.get<uint32_t>();
  if (!c.ok() || count > c.left() / 8) return;
  base_ = header.vaddr;
  table_ = slice(contents_.file, header.offset + (c.address() - header.vaddr), count * 8);
}

// Ends at the record of length 0, at the first broken one, or at the end of the section.
void EhFrame::read_all(std::span<const Section> sections) {
  Vaddr end{UINT64_MAX};
  auto section = std::ranges::find(sections, ".eh_frame", &Section::name);
  if (section != sections.end()) {
    frames_ = section->range().begin;
    end = section->range().end;
  }
  if (!frames_) return;
  for (Vaddr at = *frames_; at < end;) {
    std::optional<Record> record = record_at(at);
    if (!record) break;
    if (std::optional<VRange> range = range_of(*record)) list_.push_back(*range);
    at = record->next;
  }
  std::ranges::sort(list_);
}

Vaddr EhFrame::first() const {
  if (!table_.empty()) return base_ + *load<int32_t>(table_, 0);
  return list_.empty() ? Vaddr{UINT64_MAX} : list_.front().begin;
}

EhFrame::Place EhFrame::find(Vaddr v) { return table_.empty() ? find_in_list(v) : find_in_table(v); }

EhFrame::Place EhFrame::find_in_list(Vaddr v) const {
  auto after = std::ranges::upper_bound(list_, v, {}, &VRange::begin);
  VRange gap{{0}, after == list_.end() ? Vaddr{UINT64_MAX} : after->begin};
  if (after != list_.begin()) {
    VRange last = *std::prev(after);
    if (last.contains(v)) return {last, {}};
    gap.begin = last.end;
  }
  return {std::nullopt, gap};
}

EhFrame::Place EhFrame::find_in_table(Vaddr v) {
  auto location = [&](size_t i) { return base_ + *load<int32_t>(table_, i * 8); };
  auto fde_at = [&](size_t i) { return base_ + *load<int32_t>(table_, i * 8 + 4); };
  auto range_at = [&](size_t i) -> std::optional<VRange> {
    std::optional<Record> record = record_at(fde_at(i));
    return record ? range_of(*record) : std::nullopt;
  };
  // Entries below `after` begin at or below v, those from it on above.
  size_t after = 0;
  for (size_t end = table_.size() / 8; after < end;) {
    size_t middle = after + (end - after) / 2;
    if (location(middle) <= v) after = middle + 1;
    else end = middle;
  }
  VRange gap{{0}, after < table_.size() / 8 ? location(after) : Vaddr{UINT64_MAX}};
  // Of several that begin at the same address (FDEs of empty functions have no range) the last is tried first.
  for (size_t i = after; i-- > 0;) {
    std::optional<VRange> range = range_at(i);
    if (range && range->contains(v)) return {range, {}, fde_at(i)};
    if (range && range->end <= v) gap.begin = std::max(gap.begin, range->end);
    if (i == 0 || location(i - 1) != location(i)) break;
  }
  return {std::nullopt, gap};
}

std::optional<EhFrame::Record> EhFrame::record_at(Vaddr at) const {
  Cursor c(contents_.at(at), at);
  uint64_t length = c.get<uint32_t>();
  if (length == 0xffffffff) length = c.get<uint64_t>();
  Cursor rest = c.take(length);
  Vaddr id_address = rest.address();
  uint32_t id = rest.get<uint32_t>();  // a length of 0 is the end: no id to read
  if (!rest.ok()) return std::nullopt;
  return Record{id, id_address, rest, c.address()};
}

// pc_begin (as the CIE says), pc_range (the same format, relative to nothing).
std::optional<VRange> EhFrame::range_of(Record& fde) {
  if (fde.id == 0 || !read_cie(fde.id_address + -int64_t{fde.id})) return std::nullopt;
  Vaddr begin = read_pointer(fde.rest, *last_encoding_, std::nullopt);
  uint64_t size = read_format(fde.rest, *last_encoding_);
  if (!fde.rest.ok() || size == 0 || size > UINT64_MAX - begin.value) return std::nullopt;
  return VRange{begin, end_of(begin, size)};
}

// Behind the range: [augmentation data,] instructions. What comes before the first advance is so from the first address on: where the
// frame is, what it has saved, or that nobody called it (a thread goes on there; the program's entry says so, too).
bool EhFrame::is_under_way(Vaddr v) {
  auto header = load<Elf64_Ehdr>(contents_.file, 0);
  if (header && header->e_entry == v.value) return false;
  Place place = find(v);
  if (!place.function || place.function->begin != v || !place.fde) return false;
  std::optional<Record> fde = record_at(*place.fde);
  if (!fde || !range_of(*fde)) return false;
  if (last_has_data_) fde->rest.take(fde->rest.uleb());
  auto first = fde->rest.get<uint8_t>();
  constexpr uint8_t undefined = 0x07, offset = 0x80, def_cfa = 0x0c, def_cfa_expression = 0x0f;  // DW_CFA_*
  bool is_rule =
      first == undefined || (first & 0xc0) == offset || (first >= def_cfa && first <= def_cfa_expression);
  return fde->rest.ok() && is_rule;
}

// version, augmentation (a string), [eh_data,] alignment of code and of data, return register, and, if the augmentation
// begins with z, a length and what the letters behind it announce.
bool EhFrame::read_cie(Vaddr cie) {
  if (cie == last_cie_ && last_encoding_) return true;
  std::optional<Record> record = record_at(cie);
  if (!record || record->id != 0) return false;
  Cursor& c = record->rest;
  uint8_t version = c.get<uint8_t>();
  if (version != 1 && version != 3) return false;
  std::string augmentation;
  while (char letter = c.get<char>()) {
    augmentation += letter;
    if (augmentation.size() > 8) return false;
  }
  if (augmentation.starts_with("eh")) c.get<uint64_t>();  // g++ 2's exception table
  c.uleb();
  c.sleb();
  version == 1 ? c.get<uint8_t>() : c.uleb();

  uint8_t encoding = absolute_pointer;
  if (augmentation.starts_with('z')) {
    c.uleb();
    for (char letter : augmentation.substr(1)) {
      if (letter == 'R') {
        encoding = c.get<uint8_t>();
        break;
      }
      if (letter == 'L') c.get<uint8_t>();
      if (letter == 'P') read_format(c, c.get<uint8_t>());
    }
  }
  if (!c.ok()) return false;
  last_cie_ = cie;
  last_encoding_ = encoding;
  last_has_data_ = augmentation.starts_with('z');
  return true;
}

}  // namespace weir::elf
