// The problem: of the entries of a unit one in twenty is code, and the rest must be stepped over.
//
// libdw steps with dwarf_siblingof, which walks over the children of an entry to find the next, once for every level they
// are deep where the compiler (Clang) writes no DW_AT_sibling. Here each byte is passed once: the size of an entry follows
// from its abbreviation, so most take one table look-up and one addition. What an entry says is still libdw's to read.
// Invariant: the position only grows and stays inside the unit. After DWARF 5, sections 7.5.3 to 7.5.6.
#include "symbols/dies.h"

#include <dwarf.h>

#include <vector>

#include "symbols/reader.h"

namespace weir::symbols {

namespace {

struct Format {
  Dwarf_Half version;
  uint8_t address_size, offset_size;
};

// How to step over an attribute: 0 to 127, that many bytes; else one of these.
enum Step : uint8_t { Leb = 128, String, Block1, Block2, Block4, BlockLeb, Indirect, Unknown };

uint8_t step_of(unsigned form, Format format) {
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const: return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3: return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4: return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8: return 8;
    case DW_FORM_data16: return 16;
    case DW_FORM_addr: return format.address_size;
    case DW_FORM_ref_addr: return format.version == 2 ? format.address_size : format.offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_GNU_ref_alt: return format.offset_size;
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index: return Leb;
    case DW_FORM_string: return String;
    case DW_FORM_block1: return Block1;
    case DW_FORM_block2: return Block2;
    case DW_FORM_block4: return Block4;
    case DW_FORM_block:
    case DW_FORM_exprloc: return BlockLeb;
    case DW_FORM_indirect: return Indirect;
    default: return Unknown;
  }
}

constexpr uint16_t unknown = UINT16_MAX;

struct Abbreviation {
  uint16_t tag = 0;  // 0: no such code
  bool has_children = false, has_code = false;
  uint32_t first_step = 0, last_step = 0;
  // Where low_pc (an address) and high_pc (a size) are in an entry, if everything before them has a fixed size.
  uint16_t low_pc_at = unknown, high_pc_at = unknown;
  uint8_t high_pc_size = 0;
};

class Unit {
 public:
  Unit(Dwarf_Die unit) : unit_(unit) {
    Dwarf_Off next = 0, offset = dwarf_dieoffset(&unit_), begin = offset - dwarf_cuoffset(&unit_);
    Dwarf* dwarf = dwarf_cu_getdwarf(unit_.cu);
    if (dwarf_cu_info(unit_.cu, &format_.version, nullptr, nullptr, nullptr, nullptr, &format_.address_size,
                      &format_.offset_size) != 0 ||
        dwarf_next_unit(dwarf, begin, &next, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) != 0 ||
        next <= offset || format_.address_size > 8 || format_.offset_size > 8)
      return;
    // The length that the unit states is only good if its last byte is in the section.
    auto first = static_cast<const uint8_t*>(unit_.addr);
    Dwarf_Die last;
    if (!dwarf_die_addr_die(dwarf, const_cast<uint8_t*>(first + (next - offset - 1)), &last)) return;
    reader_ = {first, first + (next - offset)};
    read_abbreviations();
  }

  void walk(const std::function<void(const CodeDie&)>& take) {
    uint32_t count = 0;
    // For every level that is open, the CodeDie around its entries; the unit's own entry is alone on the first.
    std::vector<uint32_t> around{UINT32_MAX};
    while (reader_.at < reader_.end && reader_.ok) {
      const uint8_t* begin = reader_.at;
      uint64_t code = reader_.leb();
      if (code == 0) {
        around.pop_back();
        if (around.size() <= 1) return;
        continue;
      }
      if (code >= abbreviations_.size() || abbreviations_[code].tag == 0) return;
      const Abbreviation& a = abbreviations_[code];
      uint32_t innermost = around.back();
      if (a.has_code && (a.tag == DW_TAG_subprogram || a.tag == DW_TAG_inlined_subroutine)) {
        take({die_at(begin), innermost, a.tag == DW_TAG_inlined_subroutine, range_of(a)});
        innermost = count++;
      }
      for (uint32_t i = a.first_step; i < a.last_step; ++i) skip(steps_[i]);
      if (a.has_children) around.push_back(innermost);
      if (around.size() == 1) return;
    }
  }

 private:
  // Compilers number abbreviations from 1 on without gaps.
  static constexpr unsigned largest_code = 1 << 20;

  void read_abbreviations() {
    size_t length = 0;
    for (Dwarf_Off offset = 0;; offset += length) {
      Dwarf_Abbrev* abbrev = dwarf_getabbrev(&unit_, offset, &length);
      if (!abbrev || abbrev == DWARF_END_ABBREV || length == 0) return;
      unsigned code = dwarf_getabbrevcode(abbrev);
      if (code > largest_code) continue;
      if (code >= abbreviations_.size()) abbreviations_.resize(code + 1);
      abbreviations_[code] = read(abbrev);
    }
  }

  Abbreviation read(Dwarf_Abbrev* abbrev) {
    Abbreviation a{.tag = static_cast<uint16_t>(dwarf_getabbrevtag(abbrev)),
                   .has_children = dwarf_abbrevhaschildren(abbrev) != 0,
                   .first_step = static_cast<uint32_t>(steps_.size())};
    unsigned name, form;
    uint16_t at = 0;  // in the entry, behind its code
    for (size_t i = 0; dwarf_getabbrevattr(abbrev, i, &name, &form, nullptr) == 0 && name != 0; ++i) {
      a.has_code |= name == DW_AT_low_pc || name == DW_AT_ranges;
      uint8_t step = step_of(form, format_);
      if (name == DW_AT_low_pc && form == DW_FORM_addr) a.low_pc_at = at;
      if (name == DW_AT_high_pc && form != DW_FORM_addr && step <= 8) a.high_pc_at = at, a.high_pc_size = step;
      at = at == unknown || step >= Leb ? unknown : at + step;
      if (step == 0) continue;
      // Attributes of a known size are stepped over together.
      bool joins = step < Leb && steps_.size() > a.first_step && steps_.back() + step < Leb;
      if (joins) steps_.back() += step;
      else steps_.push_back(step);
    }
    a.last_step = static_cast<uint32_t>(steps_.size());
    return a;
  }

  // Of the entry whose code has just been read.
  VRange range_of(const Abbreviation& a) const {
    if (a.low_pc_at == unknown || a.high_pc_at == unknown) return {};
    Reader low = reader_, high = reader_;
    low.skip(a.low_pc_at);
    high.skip(a.high_pc_at);
    Vaddr begin{low.fixed(format_.address_size)};
    uint64_t size = high.fixed(a.high_pc_size);
    return low.ok && high.ok && size < UINT64_MAX - begin.value ? VRange{begin, {begin.value + size}} : VRange{};
  }

  void skip(uint8_t step) {
    switch (step) {
      case Leb: reader_.leb(); break;
      case String: reader_.string(); break;
      case Block1: reader_.skip(reader_.fixed(1)); break;
      case Block2: reader_.skip(reader_.fixed(2)); break;
      case Block4: reader_.skip(reader_.fixed(4)); break;
      case BlockLeb: reader_.skip(reader_.leb()); break;
      case Indirect: {
        uint8_t form_step = step_of(static_cast<unsigned>(reader_.leb()), format_);
        form_step == Indirect ? skip(Unknown) : skip(form_step);
        break;
      }
      case Unknown: reader_.ok = false; break;
      default: reader_.skip(step);
    }
  }

  Dwarf_Die die_at(const uint8_t* at) const {
    return {.addr = const_cast<uint8_t*>(at), .cu = unit_.cu, .abbrev = nullptr, .padding__ = 0};
  }

  Dwarf_Die unit_;
  Format format_{};
  Reader reader_;
  std::vector<Abbreviation> abbreviations_;
  std::vector<uint8_t> steps_;
};

}  // namespace

void each_code_die(Dwarf_Die unit, const std::function<void(const CodeDie&)>& take) { Unit(unit).walk(take); }

}  // namespace weir::symbols
