// The source lines of blocks and call sites, in the functions that ran.

#include <algorithm>

#include "tools/count/assemble.h"

namespace weir::count {

using profile::LinePart;
using profile::none;

namespace {

// An address whose line is wanted: of an instruction of a block, or of a site.
struct Asked {
  elf::Vaddr address;
  uint32_t block, cycles, site;
};

// One instruction of a block.
struct Answer {
  uint32_t block, cycles, line;
  std::string_view file, inlined;
};

// The answers of one block: parts of the same line become one.
void add_parts(std::span<const Answer> answers, std::vector<LinePart>& lines) {
  size_t first = lines.size();
  for (const Answer& a : answers) {
    auto part = std::find_if(lines.begin() + static_cast<ptrdiff_t>(first), lines.end(), [&](const LinePart& l) {
      return l.line == a.line && l.file == a.file && l.inlined == a.inlined;
    });
    if (part == lines.end())
      part = lines.insert(part, {a.block, std::string(a.file), a.line, std::string(a.inlined), 0, 0});
    part->instructions++;
    part->cycles += a.cycles;
  }
}

}  // namespace

void Assembler::find_lines(uint32_t index) {
  ImageState& state = images_[index];
  if (!state.symbols || !state.symbols->has_lines()) return;
  auto is_wanted = [&](uint32_t function) { return p_.functions[function].image == index && ran_[function]; };
  std::vector<Asked> asked;
  for (uint32_t b = 0; b < p_.blocks.size(); b++) {
    const profile::Block& block = p_.blocks[b];
    if (!is_wanted(block.function)) continue;
    uint64_t address = block.offset;
    uint32_t before = insns_[b].before;
    for (uint32_t i = insns_[b].first; i < insns_[b].first + block.instructions; i++) {
      asked.push_back({{address}, b, so_far_[i] - before, none});
      before = so_far_[i];
      address += lengths_[i];
    }
  }
  for (uint32_t s = 0; s < p_.sites.size(); s++)
    if (p_.sites[s].function != none && is_wanted(p_.sites[s].function))
      asked.push_back({{p_.sites[s].offset}, none, 0, s});
  std::ranges::stable_sort(asked, {}, &Asked::address);
  std::vector<elf::Vaddr> addresses;
  for (const Asked& a : asked) addresses.push_back(a.address);

  std::vector<Answer> answers;
  state.symbols->frames(addresses, [&](size_t i, std::span<const symbols::Frame> frames) {
    if (frames.empty()) return;
    const symbols::Frame& inner = frames.front();
    if (uint32_t site = asked[i].site; site != none)
      p_.sites[site].file = inner.place.file, p_.sites[site].line = inner.place.line;
    else
      answers.push_back({asked[i].block, asked[i].cycles, inner.place.line, inner.place.file,
                         frames.size() > 1 ? inner.function : std::string_view{}});
  });
  std::ranges::stable_sort(answers, {}, &Answer::block);  // (blocks may overlap)
  for (size_t i = 0, end; i < answers.size(); i = end) {
    for (end = i + 1; end < answers.size() && answers[end].block == answers[i].block;) end++;
    add_parts(std::span(answers).subspan(i, end - i), p_.lines);
  }
}

}  // namespace weir::count
