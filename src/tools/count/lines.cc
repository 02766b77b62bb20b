// The source lines of blocks and call sites, in the functions that ran.

#include "tools/count/assemble.h"

namespace weir::count {

using profile::none;

void Assembler::note_what_ran() {
  block_ran_.resize(p_.blocks.size());
  site_ran_.resize(p_.sites.size());
  for (const profile::Thread& t : p_.threads) {
    for (const profile::BlockCount& c : t.blocks) block_ran_[c.block] = true;
    for (const profile::CallCount& c : t.calls) site_ran_[c.site] = true;
  }
}

void Assembler::find_lines(uint32_t index) {
  if (!code_.has_lines(index)) return;
  if (block_ran_.empty()) note_what_ran();
  auto is_wanted = [&](uint32_t function) { return p_.functions[function].image == index && ran_[function]; };
  std::vector<symbols::ProfileCode::Asked> asked;
  for (uint32_t b = 0; b < p_.blocks.size(); b++) {
    const profile::Block& block = p_.blocks[b];
    if (!is_wanted(block.function)) continue;
    uint64_t address = block.offset;
    uint32_t before = insns_[b].before;
    for (uint32_t i = insns_[b].first; i < insns_[b].first + block.instructions; i++) {
      asked.push_back({{address}, b, so_far_[i] - before, none, block_ran_[b] && !is_by_wall_});
      before = so_far_[i];
      address += lengths_[i];
    }
  }
  for (uint32_t s = 0; s < p_.sites.size(); s++)
    if (p_.sites[s].function != none && is_wanted(p_.sites[s].function))
      asked.push_back({{p_.sites[s].offset}, none, 0, s, s < site_ran_.size() && site_ran_[s] && !is_by_wall_});
  code_.find_lines(index, std::move(asked));
}

}  // namespace weir::count
