// The problem: a million functions, each with a little program, in seconds; and a result that is searched in nanoseconds.
//
// 1. Every FDE's instructions are run; what comes out are rows (address, number of a rule). Rules are few: libc has some hundred.
// 2. FDEs are sorted. Of two that overlap the one that begins later has the addresses from there on, as in a search of
//    .eh_frame_hdr; .debug_frame gets what .eh_frame leaves, and what is known of PLTs (lld writes no FDE for them) and of the entry
//    point the rest.
// 3. Rows are put down in order, one for two neighbours with the same rule, and one more at the begin of every KiB.
// After rt/unwind_table.h.
#include "unwind/compile.h"

#include <elf.h>

#include <algorithm>

#include "base/cache.h"
#include "base/index_table.h"
#include "elf/cfi.h"
#include "unwind/program.h"

namespace weir::unwind {

namespace {

using elf::Bytes;
using elf::Vaddr;
using elf::VRange;
using rt::Rule;

constexpr uint16_t nothing = 0;  // rules[0]

// A rule from an address on; addresses are relative to the begin of the text.
struct Stretch {
  uint32_t begin;
  uint16_t rule;
};

struct Function {
  uint32_t begin, end;
  uint32_t first, count;  // of its stretches
};

class Rules {
 public:
  Rules() { number_of({.kind = Rule::None}); }
  // What is one too many is not supported.
  uint16_t number_of(const Rule& rule) {
    if (!rules_.empty() && rules_[last_] == rule) return last_;
    uint64_t key[2] = {};
    static_assert(sizeof rule <= sizeof key);
    memcpy(key, &rule, sizeof rule);
    uint32_t next = static_cast<uint32_t>(rules_.size());
    if (next == rt::max_rules) return unsupported_;
    uint32_t found = numbers_.find_or_add(hash_of(key[0], key[1]), next, [&](uint32_t i) { return rules_[i] == rule; });
    if (found == next) rules_.push_back(rule);
    last_ = static_cast<uint16_t>(found);
    if (rule.kind == Rule::Unsupported) unsupported_ = last_;
    return last_;
  }
  const std::vector<Rule>& all() const { return rules_; }

 private:
  std::vector<Rule> rules_;
  IndexTable numbers_;
  uint16_t last_ = 0, unsupported_ = 0;
};

// One section's functions, sorted and apart from each other.
struct Functions {
  std::vector<Function> functions;
  std::vector<Stretch> stretches;
};

void make_apart(std::vector<Function>& functions) {
  std::ranges::stable_sort(functions, {}, &Function::begin);
  for (size_t i = 0; i + 1 < functions.size(); ++i) functions[i].end = std::min(functions[i].end, functions[i + 1].begin);
  std::erase_if(functions, [](const Function& f) { return f.begin >= f.end; });
}

Functions read_section(elf::FrameSection section, VRange text, Rules& rules, Statistics& statistics) {
  Functions out;
  statistics.bad_fdes += section.for_each([&](const elf::Fde& fde) {
    ++statistics.fdes;
    VRange range = intersect(fde.range, text);
    if (range.begin >= range.end || out.stretches.size() > UINT32_MAX / 2) return;
    auto relative = [&](Vaddr v) { return static_cast<uint32_t>(v.value - text.begin.value); };
    uint32_t first = static_cast<uint32_t>(out.stretches.size());
    run(fde, [&](Vaddr at, const Rule& rule) {
      if (at >= range.end) return;
      Stretch s{relative(std::max(at, range.begin)), rules.number_of(rule)};
      // (What lies before the text begins has no place in it.)
      if (out.stretches.size() > first && out.stretches.back().begin == s.begin) out.stretches.back() = s;
      else if (out.stretches.size() == first || out.stretches.back().rule != s.rule) out.stretches.push_back(s);
    });
    out.functions.push_back(
        {relative(range.begin), relative(range.end), first, static_cast<uint32_t>(out.stretches.size()) - first});
  });
  make_apart(out.functions);
  return out;
}

// What linkers make of a procedure linkage table:
//   .plt             push GOT[1] (6 bytes) ; jmp, called with one word pushed; then entries of 16 bytes, which push a word at byte n
//   .plt.sec, .plt.got    jumps
Functions read_plts(const elf::Contents& contents, VRange text, Rules& rules) {
  Functions out;
  for (const elf::Section& s : elf::read_sections(contents.file)) {
    VRange range = intersect(s.range(), text);
    if (!s.is_code() || !s.name.starts_with(".plt") || range.begin >= range.end) continue;
    auto begin = static_cast<uint32_t>(range.begin.value - text.begin.value);
    uint32_t first = static_cast<uint32_t>(out.stretches.size());
    auto put = [&](uint32_t at, const Rule& rule) { out.stretches.push_back({begin + at, rules.number_of(rule)}); };
    if (s.name == ".plt" && range.size() >= 16) {
      auto entry = elf::load<uint32_t>(contents.at(range.begin), 16);
      put(0, {.offset = 16, .kind = Rule::Rsp});
      put(6, {.offset = 24, .kind = Rule::Rsp});
      if (range.size() > 16)
        put(16, {.offset = entry == 0xfa1e0ff3 ? 9 : 11, .kind = Rule::Plt});  // endbr64 comes first, or not
    } else {
      put(0, {.offset = 8, .kind = Rule::Rsp});
    }
    out.functions.push_back(
        {begin, begin + static_cast<uint32_t>(range.size()), first, static_cast<uint32_t>(out.stretches.size()) - first});
  }
  make_apart(out.functions);
  return out;
}

// Nobody has called the entry point. Where it has no FDE (the dynamic loader's has none, and goes on behind it), it is known by its address.
Functions read_entry(const elf::Contents& contents, VRange text, Rules& rules) {
  constexpr uint64_t size = 128;
  Functions out;
  auto entry = elf::load<uint64_t>(contents.file, offsetof(Elf64_Ehdr, e_entry));
  if (!entry) return out;
  VRange range = intersect({{*entry}, {*entry + std::min(size, ~*entry)}}, text);
  if (range.begin >= range.end) return out;
  auto begin = static_cast<uint32_t>(range.begin.value - text.begin.value);
  out.stretches.push_back({begin, rules.number_of({.kind = Rule::End})});
  out.functions.push_back({begin, begin + static_cast<uint32_t>(range.size()), 0, 1});
  return out;
}

// What the text is divided into, in order; two neighbours with the same rule are one.
class Division {
 public:
  void add(uint32_t begin, uint16_t rule) {
    if (!all_.empty() && all_.back().begin == begin) all_.pop_back();
    if (all_.empty() || all_.back().rule != rule) all_.push_back({begin, rule});
  }
  // What `from` says of [begin, end).
  void add(const Functions& from, uint32_t begin, uint32_t end) {
    auto f = std::ranges::upper_bound(from.functions, begin, {}, &Function::end);
    for (; f != from.functions.end() && f->begin < end; ++f) {
      std::span<const Stretch> stretches(from.stretches.data() + f->first, f->count);
      for (size_t i = 0; i < stretches.size(); ++i) {
        uint32_t stretch_end = i + 1 < stretches.size() ? stretches[i + 1].begin : f->end;
        if (stretch_end > begin && stretches[i].begin < std::min(end, f->end))
          add(std::max(stretches[i].begin, begin), stretches[i].rule);
      }
      add(std::min(end, f->end), nothing);
    }
  }
  const std::vector<Stretch>& all() const { return all_; }

 private:
  std::vector<Stretch> all_;
};

// Each of `sources` has what those before it leave of [begin, end).
void fill(Division& division, std::span<const Functions> sources, uint32_t begin, uint32_t end) {
  if (sources.empty()) return;
  const Functions& first = sources.front();
  auto f = std::ranges::upper_bound(first.functions, begin, {}, &Function::end);
  for (; f != first.functions.end() && f->begin < end; ++f) {
    fill(division, sources.subspan(1), begin, f->begin);
    division.add(first, std::max(begin, f->begin), std::min(end, f->end));
    begin = f->end;
  }
  if (begin < end) fill(division, sources.subspan(1), begin, end);
}

template <class T>
void append(std::vector<std::byte>& out, std::span<const T> values) {
  auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void count(std::span<const Stretch> stretches, uint32_t size, std::span<const Rule> rules, Statistics& statistics) {
  statistics.text = size;
  for (size_t i = 0; i < stretches.size(); ++i) {
    uint32_t end = i + 1 < stretches.size() ? stretches[i + 1].begin : size;
    Rule::Kind kind = rules[stretches[i].rule].kind;
    if (kind == Rule::Unsupported) statistics.unsupported += end - stretches[i].begin;
    else if (kind != Rule::None) statistics.covered += end - stretches[i].begin;
  }
}

std::vector<std::byte> write_table(VRange text, std::span<const Stretch> stretches, std::span<const Rule> rules,
                                   uint64_t unsupported) {
  constexpr uint32_t page = 1 << rt::page_shift;
  std::vector<uint32_t> first;
  std::vector<rt::Row> rows;
  size_t next = 0;  // the first stretch that begins in this page or later
  for (uint32_t begin = 0; begin < text.size(); begin += page) {
    first.push_back(static_cast<uint32_t>(rows.size()));
    if (next == stretches.size() || stretches[next].begin > begin) rows.push_back({0, stretches[next - 1].rule});
    for (; next < stretches.size() && stretches[next].begin < begin + page; ++next)
      rows.push_back({static_cast<uint16_t>(stretches[next].begin - begin), stretches[next].rule});
  }
  first.push_back(static_cast<uint32_t>(rows.size()));

  rt::TableHead head{.magic = rt::table_magic,
                     .version = rt::table_version,
                     .text_begin = text.begin.value,
                     .text_size = text.size(),
                     .pages = static_cast<uint32_t>(first.size() - 1),
                     .rule_count = static_cast<uint32_t>(rules.size()),
                     .row_count = static_cast<uint32_t>(rows.size()),
                     .unsupported = static_cast<uint32_t>(unsupported),
                     .checksum = 0};
  std::vector<std::byte> out(sizeof head);
  out.reserve(rt::table_bytes(head));
  append<uint32_t>(out, first);
  append<Rule>(out, rules);
  append<rt::Row>(out, rows);
  head.checksum = checksum_of(std::span(out).subspan(sizeof head));
  memcpy(out.data(), &head, sizeof head);
  return out;
}

// From the first to the last executable segment.
VRange text_of(const elf::Contents& contents) {
  VRange text{{UINT64_MAX}, {0}};
  for (const elf::Segment& s : contents.segments) {
    if (s.type != PT_LOAD || !(s.flags & PF_X) || s.file_size == 0) continue;
    text = {std::min(text.begin, s.vaddr), std::max(text.end, elf::end_of(s.vaddr, s.file_size))};
  }
  return text;
}

// .eh_frame, by its section or, where there are none, by what .eh_frame_hdr says of its begin.
elf::FrameSection eh_frame_of(const elf::Contents& contents) {
  std::vector<elf::Section> sections = elf::read_sections(contents.file);
  auto section = std::ranges::find(sections, ".eh_frame", &elf::Section::name);
  if (section != sections.end()) {
    Vaddr begin = section->range().begin;
    return {elf::slice(contents.at(begin), 0, section->range().size()), begin, elf::FrameSection::Eh};
  }
  const elf::Segment* header = contents.find(PT_GNU_EH_FRAME);
  if (!header) return {{}, {}, elf::FrameSection::Eh};
  elf::Cursor c(elf::slice(contents.file, header->offset, header->file_size), header->vaddr);
  c.get<uint8_t>();  // version
  uint8_t encoding = c.get<uint8_t>();
  c.get<uint16_t>();  // encodings of what follows
  Vaddr begin = elf::read_pointer(c, encoding, header->vaddr);
  return {c.ok() ? contents.at(begin) : Bytes(), begin, elf::FrameSection::Eh};
}

}  // namespace

Result<std::vector<std::byte>> compile(const elf::Image& image, std::span<const std::byte> debug_frame,
                                       Statistics* statistics) {
  elf::Contents contents{image.bytes(), {image.segments().begin(), image.segments().end()}};
  VRange text = text_of(contents);
  if (text.begin >= text.end) return fail("{}: has no code", image.path());
  if (text.size() > rt::max_text) return fail("{}: code over {} bytes, too many for unwinding", image.path(), text.size());
  Statistics own;
  Rules rules;
  rules.number_of({.kind = Rule::Unsupported});
  Functions sources[] = {read_section(eh_frame_of(contents), text, rules, own),
                         read_section({debug_frame, {0}, elf::FrameSection::Debug}, text, rules, own),
                         read_plts(contents, text, rules), read_entry(contents, text, rules)};
  Division division;
  division.add(0, nothing);
  fill(division, sources, 0, static_cast<uint32_t>(text.size()));
  count(division.all(), static_cast<uint32_t>(text.size()), rules.all(), own);
  if (statistics) *statistics = own;
  return write_table(text, division.all(), rules.all(), own.unsupported);
}

}  // namespace weir::unwind
