// The source lines of blocks and call sites, in the functions that ran.

#include "tools/count/assemble.h"

namespace weir::count {

using profile::none;

void Assembler::find_lines(uint32_t index) {
  if (!code_.has_lines(index)) return;
  auto is_wanted = [&](uint32_t function) { return p_.functions[function].image == index && ran_[function]; };
  std::vector<symbols::ProfileCode::Asked> asked;
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
  code_.find_lines(index, std::move(asked));
}

}  // namespace weir::count
