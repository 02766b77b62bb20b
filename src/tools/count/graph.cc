#include "tools/count/graph.h"

#include <algorithm>
#include <utility>

#include "x86/insn.h"

namespace weir::count {

using profile::none;

std::vector<Lead> leads_of(const CodeOf& code, std::span<const uint8_t> last, std::vector<uint32_t>& indirect) {
  std::vector<Lead> leads;
  for (uint32_t b = code.first; b < code.end; b++) {
    const profile::Block& block = code.profile.blocks[b];
    auto bytes = code.profile.code_of(block);
    size_t length = last[b - code.first];
    if (!length || length > bytes.size()) continue;
    x86::Insn insn = x86::decode(bytes.last(length), {block.offset + block.size - length});
    using enum x86::Kind;
    x86::Kind kind = insn.kind();
    if (kind == JumpIndirect) indirect.push_back(b);
    if (kind == Jump || kind == Branch) leads.push_back({insn.target.value, b});
    if (kind == Plain || kind == Branch || kind == Call || kind == CallIndirect || kind == Syscall)
      leads.push_back({block.offset + block.size, b});
  }
  std::ranges::stable_sort(leads, {}, &Lead::to);
  return leads;
}

// What nothing else leads to may be where an indirect jump goes.
Graph::Graph(const CodeOf& code, std::span<const Lead> leads, std::span<const uint32_t> indirect,
             const std::vector<bool>& has_run)
    : first_(code.first), number_(code.end - code.first, none) {
  uint32_t n = 0;
  for (uint32_t b = code.first; b < code.end; b++)
    if (has_run[b]) number_[b - first_] = n++;
  next_.resize(n), previous_.resize(n), ways_.resize(n);
  for (const Lead& lead : leads)
    if (uint32_t from = number_of(lead.block); from != none) ways_[from]++;
  auto add = [&](uint32_t from, uint32_t to) {
    if (from == none || to == none) return;
    next_[from].push_back(to), previous_[to].push_back(from);
  };
  if (!is_small()) return;
  for (uint32_t b = code.first; b < code.end; b++) {
    auto here = std::ranges::equal_range(leads, code.profile.blocks[b].offset, {}, &Lead::to);
    for (const Lead& lead : here) add(number_of(lead.block), number_of(b));
  }
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < n; i++)
    if (previous_[i].empty()) found.push_back(i);
  for (uint32_t block : indirect)
    for (uint32_t to : found) add(number_of(block), to);
  sort();
  find_loops();
}

// Depth first, without recursion. An edge to a block that the search is still in closes a loop.
void Graph::sort() {
  size_t n = next_.size();
  words_ = (n + 63) / 64;
  after_.resize(n * words_);
  place_.assign(n, none);
  enum State : uint8_t { New, Open, Done };
  std::vector<State> states(n);
  struct Step {
    uint32_t block;
    size_t next = 0;
  };
  std::vector<Step> way;
  for (uint32_t start = 0; start < n; start++) {
    if (states[start] != New) continue;
    states[start] = Open;
    way.push_back({start});
    while (!way.empty()) {
      Step& step = way.back();
      uint32_t block = step.block;
      if (step.next == next_[block].size()) {
        states[block] = Done;
        place_[block] = static_cast<uint32_t>(order_.size());
        order_.push_back(block);
        way.pop_back();
        continue;
      }
      uint32_t to = next_[block][step.next++];
      if (states[to] == Open) back_.emplace_back(block, to);
      if (states[to] != New) continue;
      states[to] = Open;
      way.push_back({to});
    }
  }
  for (uint32_t block : order_)
    for (uint32_t to : next_[block]) {
      if (is_back(block, to)) continue;
      uint64_t* own = &after_[block * words_];
      const uint64_t* others = &after_[to * words_];
      for (size_t w = 0; w < words_; w++) own[w] |= others[w];
      own[to / 64] |= uint64_t{1} << (to % 64);
    }
}

// A loop is what leads back to its head without passing it. Large ones come first, so that inner ones are written over them.
void Graph::find_loops() {
  inner_.assign(next_.size(), none);
  std::ranges::sort(back_, {}, [](auto& edge) { return edge.second; });
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> loops;  // heads and all blocks
  std::vector<uint32_t> seen(next_.size(), none);
  for (size_t i = 0; i < back_.size();) {
    uint32_t head = back_[i].second;
    std::vector<uint32_t> body{head}, open;
    seen[head] = head;
    for (; i < back_.size() && back_[i].second == head; i++) open.push_back(back_[i].first);
    while (!open.empty()) {
      uint32_t block = open.back();
      open.pop_back();
      if (std::exchange(seen[block], head) == head) continue;
      body.push_back(block);
      open.insert(open.end(), previous_[block].begin(), previous_[block].end());
    }
    loops.emplace_back(head, std::move(body));
  }
  std::ranges::stable_sort(loops, std::ranges::greater(), [](auto& loop) { return loop.second.size(); });
  for (auto& [head, body] : loops) {
    outer_.push_back(inner_[head]);
    for (uint32_t block : body) inner_[block] = static_cast<uint32_t>(outer_.size() - 1);
  }
}

bool Graph::is_in(uint32_t loop, uint32_t outer) const {
  for (; loop != none; loop = outer_[loop])
    if (loop == outer) return true;
  return outer == none;
}

bool Graph::decides(uint32_t block) const {
  return ways_[block] > 1 && std::ranges::any_of(next_[block], [&](uint32_t to) { return is_back(block, to); });
}

}  // namespace weir::count
