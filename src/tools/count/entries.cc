// How often inlined calls were entered.
//
// The compiler says where an inlined call begins to run, and the block there says how often it did. Two cases tell another way:
//
//  - A loop of the inlined function begins at the same address: the block is led to by blocks inside the call as well, and what leads to it
//    from outside is the most that can count.
//  - The beginning was copied, and the copy that is named did not run, or has no instruction of the call (it is before a loop around it): the
//    block counts that most control came to from outside. Or it did,
//    and the others count, too, that control comes to from outside in the same loop, before or after none of those that count.
#include <algorithm>
#include <unordered_map>

#include "tools/count/assemble.h"

namespace weir::count {

using profile::none;

class Assembler::Entries {
 public:
  explicit Entries(Assembler& a) : a_(a) {
    for (const profile::LinePart& l : a_.p_.lines)
      if (l.scope != none) parts_.emplace_back(l.block, l.scope);
    std::ranges::sort(parts_);
  }

  void find() {
    const std::vector<profile::Scope>& scopes = a_.p_.scopes;
    std::vector<uint32_t> order(scopes.size());
    for (uint32_t i = 0; i < order.size(); i++) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return scopes[i].function; });
    for (size_t i = 0, end; i < order.size(); i = end) {
      uint32_t function = scopes[order[i]].function;
      for (end = i + 1; end < order.size() && scopes[order[end]].function == function;) end++;
      CodeOf code = a_.code_of(function);
      std::vector<uint32_t> indirect;
      first_ = code.first, end_ = code.end;
      leads_ = leads_of(code, a_.last_lengths(code), indirect);
      Graph graph(code, leads_, indirect, a_.block_ran_);
      graph_ = &graph;
      find_ends(order, i, end);
      for (size_t k = i; k < end; k++) find_scope(order[k]);
    }
  }

  void count(profile::Thread& t) const {
    std::vector<uint64_t> counts(a_.p_.blocks.size());
    for (const profile::BlockCount& c : t.blocks) counts[c.block] = c.count;
    auto sum_of = [&](const std::vector<uint32_t>& blocks) {
      uint64_t sum = 0;
      for (uint32_t b : blocks) sum += counts[b];
      return sum;
    };
    for (const Entry& e : entries_) {
      uint64_t count = sum_of(e.blocks);
      if (!e.most.empty()) count = std::min(count, sum_of(e.most));
      for (const Gate& gate : e.gates) {
        uint64_t entered = std::min(counts[gate.block], sum_of(gate.from));
        count = e.ran ? count + entered : std::max(count, entered);
      }
      if (count) t.scopes.push_back({e.scope, count});
    }
  }

 private:
  // A block of an inlined call that blocks outside of it lead to.
  struct Gate {
    uint32_t block;
    std::vector<uint32_t> from;
  };
  struct Entry {
    uint32_t scope;
    std::vector<uint32_t> blocks, most;
    std::vector<Gate> gates = {};
    bool ran = false;
  };

  // Is there an instruction of the inlined call in the block? Where none is, the compiler has named a place before it.
  bool has_part_of(uint32_t block, uint32_t scope) const {
    auto part = std::ranges::lower_bound(parts_, std::pair(block, 0u));
    for (; part != parts_.end() && part->first == block; ++part)
      if (is_inside(part->second, scope)) return true;
    return false;
  }

  bool is_inside(uint32_t scope, uint32_t outer) const {
    for (; scope != none; scope = a_.p_.scopes[scope].parent)
      if (scope == outer) return true;
    return false;
  }
  bool ends_inside(uint32_t block, uint32_t scope) const { return is_inside(a_.code_.scope_at_end(block), scope); }

  void find_ends(std::span<const uint32_t> order, size_t first, size_t end) {
    ends_.clear();
    for (size_t i = first; i < end; i++) ends_[order[i]];
    for (uint32_t b = first_; b < end_; b++)
      if (a_.block_ran_[b])
        for (uint32_t s = a_.code_.scope_at_end(b); s != none; s = a_.p_.scopes[s].parent) ends_[s].push_back(b);
  }

  void find_scope(uint32_t scope) {
    Entry entry{scope, {}, {}};
    uint64_t at = a_.p_.scopes[scope].entry;
    bool has_loop = false, ran = false;
    // (Of code that was rewritten there are several blocks at one place.)
    auto after = std::upper_bound(a_.p_.blocks.begin() + first_, a_.p_.blocks.begin() + end_, at,
                                  [](uint64_t v, const profile::Block& b) { return v < b.offset; });
    for (auto b = static_cast<uint32_t>(after - a_.p_.blocks.begin()); b-- > first_;) {
      const profile::Block& block = a_.p_.blocks[b];
      if (block.offset + block.size <= at) break;
      entry.blocks.push_back(b);
      ran |= a_.block_ran_[b] && has_part_of(b, scope);
    }
    for (const Lead& lead : std::ranges::equal_range(leads_, at, {}, &Lead::to))
      if (ends_inside(lead.block, scope)) has_loop = true;
      else entry.most.push_back(lead.block);
    if (!has_loop) entry.most.clear();
    const profile::Function& f = a_.p_.functions[a_.p_.scopes[scope].function];
    // Else it is the rest of one that began in another function. (What ran of the function's parts has blocks.)
    bool is_here = (at >= f.offset && at < f.offset + f.size) || !entry.blocks.empty();
    if (is_here) find_gates(entry);
    entry.ran = ran && !is_before_loop(entry);
    if (entry.ran) keep_copies(entry);
    entries_.push_back(std::move(entry));
  }

  void find_gates(Entry& entry) {
    for (uint32_t b : ends_[entry.scope]) {
      Gate gate{b, {}};
      for (const Lead& lead : std::ranges::equal_range(leads_, a_.p_.blocks[b].offset, {}, &Lead::to))
        if (!ends_inside(lead.block, entry.scope)) gate.from.push_back(lead.block);
      if (!gate.from.empty()) entry.gates.push_back(std::move(gate));
    }
  }

  // Is what stands at the beginning there only because it need not be done in each round of a loop around the call?
  bool is_before_loop(const Entry& entry) const {
    if (!graph_->is_small()) return false;
    return std::ranges::any_of(entry.gates, [&](const Gate& gate) {
      uint32_t loop = graph_->loop_of(graph_->number_of(gate.block));
      auto is_in_it = [&](uint32_t block) { return a_.block_ran_[block] && graph_->is_in(graph_->loop_of(graph_->number_of(block)), loop); };
      return loop != none && std::ranges::none_of(entry.blocks, is_in_it) && std::ranges::any_of(gate.from, is_in_it);
    });
  }

  // The gates that are copies of the beginning.
  void keep_copies(Entry& entry) const {
    std::vector<uint32_t> kept;
    for (uint32_t b : entry.blocks)
      if (a_.block_ran_[b]) kept.push_back(graph_->number_of(b));
    std::erase_if(entry.gates, [&](const Gate& gate) {
      uint32_t block = graph_->number_of(gate.block);
      bool is_copy =
          graph_->is_small() && std::ranges::none_of(kept, [&](uint32_t other) {
            return block == other || graph_->are_in_line(block, other) || graph_->loop_of(block) != graph_->loop_of(other);
          });
      if (is_copy) kept.push_back(block);
      return !is_copy;
    });
  }

  Assembler& a_;
  std::vector<std::pair<uint32_t, uint32_t>> parts_;  // blocks, and inlined calls that have instructions there
  const Graph* graph_ = nullptr;
  std::unordered_map<uint32_t, std::vector<uint32_t>>
      ends_;                      // by inlined call of the function: the blocks that ran and end in it
  uint32_t first_ = 0, end_ = 0;  // the blocks of a function
  std::vector<Lead> leads_;
  std::vector<Entry> entries_;
};

void Assembler::count_entries() {
  if (p_.scopes.empty()) return;
  Entries entries(*this);
  entries.find();
  for (profile::Thread& t : p_.threads) entries.count(t);
}

}  // namespace weir::count
