#include "symbols/references.h"

#include <algorithm>
#include <tuple>

#include "x86/insn.h"

namespace weir::symbols {

namespace {

constexpr uint32_t type_relr = 19;  // SHT_RELR: relative relocations, whose addends are in place

class Finder {
 public:
  Finder(const elf::Contents& image, std::span<const elf::Section> sections, std::span<const VRange> functions,
         std::vector<Reference>& found)
      : image_(image), sections_(sections), functions_(functions), found_(found) {
    auto header = elf::load<Elf64_Ehdr>(image.file, 0);
    is_fixed_ = header && header->e_type == ET_EXEC;
    entry_ = header ? header->e_entry : 0;
  }

  void run() {
    uint64_t left = image_.file.size();  // (segments that overlap: a broken file)
    for (const elf::Segment& s : image_.segments) {
      if (s.type != PT_LOAD || !(s.flags & PF_X) || s.file_size > left) continue;
      decode({s.vaddr, elf::end_of(s.vaddr, s.file_size)});
      left -= s.file_size;
    }
    add_data();
    auto key = [](const Reference& r) { return std::tuple(r.to, r.from, r.kind); };
    std::ranges::sort(found_, {}, key);
    auto same = std::ranges::unique(found_, {}, key);
    found_.erase(same.begin(), same.end());
  }

 private:
  // Functions, and the holes between them.
  void decode(VRange code) {
    auto f = std::ranges::partition_point(functions_, [&](VRange f) { return f.end <= code.begin; });
    for (Vaddr at = code.begin; at < code.end;) {
      Vaddr end = code.end;
      uint32_t from = nobody;
      if (f != functions_.end() && f->begin <= at) {
        end = std::min(end, f->end);
        from = static_cast<uint32_t>(f - functions_.begin());
        ++f;
      } else if (f != functions_.end()) {
        end = std::min(end, f->begin);
      }
      decode({at, end}, from);
      at = end;
    }
  }

  void decode(VRange range, uint32_t from) {
    own_ = range;
    elf::Bytes bytes = elf::slice(image_.at(range.begin), 0, range.size());
    for (uint64_t at = 0; at < bytes.size();) {
      elf::Bytes rest = bytes.subspan(at);
      x86::Insn insn = x86::decode(rest, {range.begin.value + at});
      const x86::Shape& shape = *insn.shape;
      switch (shape.kind) {
        case x86::Kind::Call: add({insn.target.value}, from, Reference::Call); break;
        case x86::Kind::Jump:
        case x86::Kind::Branch: add({insn.target.value}, from, Reference::Jump); break;
        default:
          // lea, and where addresses are fixed any number that is one.
          if (shape.rip_relative && !shape.reads_memory && !shape.writes_memory)
            add({insn.target.value}, from, Reference::Address);
          if (!is_fixed_) break;
          if (shape.imm_size >= 4) add_number(rest, shape.imm_offset, from);
          if (shape.disp_size == 4 && !shape.rip_relative) add_number(rest, shape.disp_offset, from);
      }
      at += std::max<uint64_t>(shape.length, 1);
    }
  }

  void add_number(elf::Bytes insn, size_t offset, uint32_t from) {
    if (auto number = elf::load<uint32_t>(insn, offset)) add({*number}, from, Reference::Address);
  }

  void add(Vaddr to, uint32_t from, Reference::Kind kind) {
    if (own_.contains(to)) return;
    uint32_t i = index_at(functions_, to);
    if (i == nobody || (kind > Reference::Jump && functions_[i].begin != to)) return;
    found_.push_back({to, from, kind});
  }

  // What tables point at: relocations, the words themselves where nothing is relocated, and what the loader calls.
  void add_data() {
    own_ = {};
    add_datum(entry_);
    bool all_words = is_fixed_;
    uint64_t read = 0;
    for (const elf::Section& s : sections_) {
      all_words |= s.header.sh_type == type_relr;
      if (s.header.sh_type != SHT_RELA && s.header.sh_type != SHT_DYNAMIC) continue;
      elf::Bytes bytes = bytes_of(s);
      if ((read += bytes.size()) > image_.file.size()) break;
      if (s.header.sh_type == SHT_RELA)
        for (uint64_t at = 0; auto r = elf::load<Elf64_Rela>(bytes, at); at += sizeof *r)
          add_datum(value_of(*r, s.header.sh_link));
      if (s.header.sh_type == SHT_DYNAMIC)
        for (uint64_t at = 0; auto d = elf::load<Elf64_Dyn>(bytes, at); at += sizeof *d) add_datum(d->d_un.d_ptr);
    }
    if (!all_words) return;
    uint64_t left = image_.file.size();
    for (const elf::Segment& s : image_.segments) {
      if (s.type != PT_LOAD || s.file_size > left) continue;
      left -= s.file_size;
      elf::Bytes bytes = elf::slice(image_.file, s.offset, s.file_size);
      for (uint64_t at = -s.vaddr.value % 8; auto word = elf::load<uint64_t>(bytes, at); at += 8) add_datum(*word);
    }
  }

  elf::Bytes bytes_of(const elf::Section& s) const {
    return s.header.sh_type == SHT_NOBITS ? elf::Bytes() : elf::slice(image_.file, s.header.sh_offset, s.header.sh_size);
  }

  uint64_t value_of(const Elf64_Rela& r, uint32_t table) const {
    auto addend = static_cast<uint64_t>(r.r_addend);
    if (!ELF64_R_SYM(r.r_info) || table >= sections_.size()) return addend;
    auto symbol = elf::load<Elf64_Sym>(bytes_of(sections_[table]), ELF64_R_SYM(r.r_info) * sizeof(Elf64_Sym));
    return addend + (symbol ? symbol->st_value : 0);
  }

  void add_datum(uint64_t value) {
    if (value) add({value}, nobody, Reference::Data);
  }

  const elf::Contents& image_;
  std::span<const elf::Section> sections_;
  std::span<const VRange> functions_;
  std::vector<Reference>& found_;
  bool is_fixed_ = false;  // linked for one address: its code may name addresses as numbers
  uint64_t entry_ = 0;
  VRange own_;  // what is being decoded: what leads inside is no reference
};

}  // namespace

References::References(const elf::Contents& image, std::span<const elf::Section> sections,
                       std::span<const VRange> functions) {
  Finder(image, sections, functions, all_).run();
}

std::span<const Reference> References::to(VRange range) const {
  auto first = std::ranges::lower_bound(all_, range.begin, {}, &Reference::to);
  auto end = std::ranges::lower_bound(first, all_.end(), range.end, {}, &Reference::to);
  return {first, end};
}

uint32_t index_at(std::span<const VRange> functions, Vaddr v) {
  auto after = std::ranges::upper_bound(functions, v, {}, &VRange::begin);
  if (after == functions.begin() || !std::prev(after)->contains(v)) return nobody;
  return static_cast<uint32_t>(std::prev(after) - functions.begin());
}

}  // namespace weir::symbols
