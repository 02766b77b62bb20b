#include "symbols/written_code.h"

namespace weir::symbols {

void WrittenCode::add(AppPc begin, uint64_t size, std::string_view name) {
  constexpr size_t longest_name = 4096;
  AppPc end{begin.value + size};
  if (!begin || end <= begin || name.empty()) return;
  Entry entry{end, std::string(name.substr(0, longest_name))};
  for (char& c : entry.name)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  auto next = entries_.lower_bound(begin);
  if (next != entries_.begin() && std::prev(next)->second.end > begin) std::prev(next)->second.end = begin;
  while (next != entries_.end() && next->first < entry.end) next = entries_.erase(next);
  entries_.emplace_hint(next, begin, std::move(entry));
}

WrittenCode::Place WrittenCode::find(AppPc pc) const {
  auto after = entries_.upper_bound(pc);
  return after != entries_.begin() && pc < std::prev(after)->second.end ? std::prev(after) : entries_.end();
}

}  // namespace weir::symbols
