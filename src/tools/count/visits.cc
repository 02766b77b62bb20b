// How often a line was executed, where several blocks have code of it: some of the blocks are counted, the others are part of the same
// executions. The counts of the marked parts (LinePart::is_counted) add up to what gcov tells of a program that was not optimized.
//
//   a ; b        one behind the other: one execution, the larger counts
//   a | b        one or the other, as where code was copied into both arms of a branch: both count
//   a ; loop b   a line that decides at the end of a round whether the loop goes on (for, while) was executed before it, too: both count.
//                Else `a` was moved out of the loop, and is part of b
//   loop a ; loop b   copies of a loop, one for the rest of the other: both count
//
// Each copy of a line by itself: a function, an inlined call. What is counted is decided by the sums of all threads.

#include <algorithm>
#include <optional>
#include <tuple>

#include "tools/count/assemble.h"
#include "tools/count/graph.h"

namespace weir::count {

using profile::LinePart;
using profile::none;

class Assembler::Visits {
 public:
  explicit Visits(Assembler& a) : a_(a), counts_(a.p_.blocks.size()) {
    for (const profile::Thread& t : a_.p_.threads)
      for (const profile::BlockCount& c : t.blocks) counts_[c.block] += c.count;
  }

  // The lines of a function stand together.
  void mark() {
    std::vector<LinePart>& lines = a_.p_.lines;
    auto function_of = [&](size_t i) { return a_.p_.blocks[lines[i].block].function; };
    for (size_t i = 0, end; i < lines.size(); i = end) {
      for (end = i + 1; end < lines.size() && function_of(end) == function_of(i);) end++;
      graph_.reset();
      mark_function(static_cast<uint32_t>(i), static_cast<uint32_t>(end));
    }
  }

 private:
  void mark_function(uint32_t first, uint32_t end) {
    const std::vector<LinePart>& lines = a_.p_.lines;
    std::vector<uint32_t> parts;
    for (uint32_t i = first; i < end; i++)
      if (counts_[lines[i].block]) parts.push_back(i);
    auto copy = [&](uint32_t i) { return std::tie(lines[i].scope, lines[i].line, lines[i].file); };
    std::ranges::stable_sort(parts, {}, copy);
    for (size_t i = 0, next; i < parts.size(); i = next) {
      for (next = i + 1; next < parts.size() && copy(parts[next]) == copy(parts[i]);) next++;
      if (next - i > 1) mark_line(std::span(parts).subspan(i, next - i));
    }
  }

  void mark_line(std::span<uint32_t> parts) {
    std::ranges::stable_sort(parts, std::ranges::greater(), [&](uint32_t i) { return counts_[a_.p_.lines[i].block]; });
    for (uint32_t i : parts.subspan(1)) a_.p_.lines[i].is_counted = false;
    const Graph& graph = graph_of(a_.p_.blocks[a_.p_.lines[parts[0]].block].function);
    if (!graph.is_small()) return;
    deciding_.clear();
    for (uint32_t i : parts)
      if (uint32_t block = a_.p_.lines[i].block, number = graph.number_of(block);
          a_.code_.part_at_end(block) == i && graph.decides(number))
        deciding_.push_back(graph.loop_of(number));
    std::vector<uint32_t> chosen;
    constexpr size_t most_tried = 10;
    if (parts.size() <= most_tried) {
      best_ = 0;
      choose(parts, 0, 0, chosen);
      chosen = best_parts_;
    } else {
      for (uint32_t i : parts)
        if (is_apart(i, chosen)) chosen.push_back(i);
    }
    a_.p_.lines[parts[0]].is_counted = false;
    for (uint32_t i : chosen) a_.p_.lines[i].is_counted = true;
  }

  // The parts that are executions of their own and have the largest sum.
  void choose(std::span<const uint32_t> parts, size_t next, uint64_t sum, std::vector<uint32_t>& chosen) {
    if (sum > best_) best_ = sum, best_parts_ = chosen;
    for (size_t i = next; i < parts.size(); i++) {
      if (!is_apart(parts[i], chosen)) continue;
      chosen.push_back(parts[i]);
      choose(parts, i + 1, sum + counts_[a_.p_.lines[parts[i]].block], chosen);
      chosen.pop_back();
    }
  }

  bool is_apart(uint32_t part, std::span<const uint32_t> others) const {
    return std::ranges::none_of(others, [&](uint32_t other) { return are_one(part, other); });
  }

  bool are_one(uint32_t part, uint32_t other) const {
    uint32_t a = graph_->number_of(a_.p_.lines[part].block), b = graph_->number_of(a_.p_.lines[other].block);
    if (!graph_->are_in_line(a, b)) return false;
    uint32_t loop = graph_->loop_of(a), other_loop = graph_->loop_of(b);
    if (loop == other_loop) return true;
    if (graph_->is_in(other_loop, loop)) std::swap(loop, other_loop);
    return graph_->is_in(loop, other_loop) && std::ranges::find(deciding_, loop) == deciding_.end();
  }

  const Graph& graph_of(uint32_t function) {
    if (graph_) return *graph_;
    std::vector<uint32_t> indirect;
    CodeOf code = a_.code_of(function);
    std::vector<Lead> leads = leads_of(code, a_.last_lengths(code), indirect);
    return graph_.emplace(code, leads, indirect, a_.block_ran_);
  }

  Assembler& a_;
  std::vector<uint64_t> counts_;    // by block
  std::optional<Graph> graph_;      // of the function
  std::vector<uint32_t> deciding_;  // loops that the line decides about
  uint64_t best_ = 0;
  std::vector<uint32_t> best_parts_;
};

CodeOf Assembler::code_of(uint32_t function) const {
  auto blocks = std::ranges::equal_range(p_.blocks, function, {}, &profile::Block::function);
  auto first = static_cast<uint32_t>(blocks.begin() - p_.blocks.begin());
  return {p_, first, first + static_cast<uint32_t>(blocks.size())};
}

std::vector<uint8_t> Assembler::last_lengths(const CodeOf& code) const {
  std::vector<uint8_t> last;
  for (uint32_t b = code.first; b < code.end; b++)
    last.push_back(p_.blocks[b].instructions ? lengths_[insns_[b].first + p_.blocks[b].instructions - 1] : 0);
  return last;
}

void Assembler::mark_visits() {
  if (!p_.lines.empty()) Visits(*this).mark();
}

}  // namespace weir::count
