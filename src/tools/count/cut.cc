// A function that control enters in its middle (a target of a jump that no table names, a landing pad) is translated again from
// there, and the same code may then be in blocks of both translations, cut at other places. In the profile no instruction is in
// two blocks: every block is cut where another one begins, and the counts of equal parts are added up.
//
// What a part costs depends on what was before it: the smaller figure is the block's, the rest is `extra`, so that the sums stay.

#include <algorithm>

#include "cost/strings.h"
#include "tools/count/assemble.h"

namespace weir::count {

namespace {

struct Part {
  uint32_t block;  // the new one
  uint32_t cycles;
  bool repeats;  // has the string instructions whose cycles depend on the run
};

bool has_repetition(const profile::Block& block, std::span<const uint8_t> lengths) {
  auto code = std::as_bytes(std::span(block.bytes));
  for (size_t at = 0, i = 0; i < lengths.size(); at += lengths[i++])
    if (auto s = cost::string_instruction(code.subspan(at, lengths[i])); s && s->repeated) return true;
  return false;
}

}  // namespace

void Assembler::cut_blocks() {
  std::vector<std::pair<uint32_t, uint64_t>> begins;
  for (const profile::Block& b : p_.blocks) begins.emplace_back(b.function, b.offset);
  std::sort(begins.begin(), begins.end());
  std::vector<profile::Block> old = std::exchange(p_.blocks, {});
  auto lengths = std::exchange(lengths_, {});
  auto so_far = std::exchange(so_far_, {});
  std::map<std::tuple<uint32_t, uint64_t, size_t>, uint32_t> known;
  std::vector<std::vector<Part>> parts(old.size());

  for (uint32_t b = 0; b < old.size(); b++) {
    size_t first = 0, at = 0, begin = 0, count = lengths[b].size();
    auto cycles_before = [&](size_t i) { return i && i <= so_far[b].size() ? so_far[b][i - 1] : 0; };
    for (size_t i = 0; i < count; i++) {
      at += lengths[b][i];
      bool last = i + 1 == count;
      if (!last && !std::binary_search(begins.begin(), begins.end(), std::pair(old[b].function, old[b].offset + at)))
        continue;
      uint32_t before = cycles_before(first);
      profile::Block part = old[b];
      part.offset += begin;
      part.bytes.assign(old[b].bytes.begin() + ptrdiff_t(begin), old[b].bytes.begin() + ptrdiff_t(at));
      part.instructions = static_cast<uint32_t>(i + 1 - first);
      part.cycles = (last ? old[b].cycles : cycles_before(i + 1)) - before;
      std::vector<uint8_t> its_lengths(lengths[b].begin() + ptrdiff_t(first), lengths[b].begin() + ptrdiff_t(i + 1));
      std::vector<uint32_t> its_cycles;
      for (size_t k = first; k <= i && k < so_far[b].size(); k++) its_cycles.push_back(so_far[b][k] - before);
      auto [place, is_new] = known.try_emplace({part.function, part.offset, part.bytes.size()}, uint32_t(p_.blocks.size()));
      parts[b].push_back({place->second, part.cycles, has_repetition(part, its_lengths)});
      if (is_new) {
        p_.blocks.push_back(std::move(part));
        lengths_.push_back(std::move(its_lengths));
        so_far_.push_back(std::move(its_cycles));
      } else if (part.cycles < p_.blocks[place->second].cycles) {
        p_.blocks[place->second].cycles = part.cycles;
        so_far_[place->second] = std::move(its_cycles);
      }
      first = i + 1, begin = at;
    }
  }
  for (profile::Thread& t : p_.threads) {
    std::map<uint32_t, profile::BlockCount> counts;
    for (const profile::BlockCount& c : t.blocks) {
      uint64_t extra = c.extra;
      for (const Part& part : parts[c.block]) {
        profile::BlockCount& sum = counts[part.block];
        sum.block = part.block;
        sum.count += c.count;
        sum.extra += c.count * (part.cycles - p_.blocks[part.block].cycles);
        if (part.repeats) sum.extra += std::exchange(extra, 0);
      }
    }
    t.blocks.clear();
    for (const auto& [id, c] : counts) t.blocks.push_back(c);
  }
}

}  // namespace weir::count
