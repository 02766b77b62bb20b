#include "symbols/perf_map.h"

#include <unistd.h>

#include <charconv>

namespace weir::symbols {

namespace {

constexpr size_t largest_file = 256u << 20, longest_name = 4096;

// A hexadecimal number and the blank behind it.
bool take_number(std::string_view& line, uint64_t& number) {
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

void PerfMap::read(int file) {
  std::string text, part(1 << 16, 0);
  ssize_t n = 1;
  while (n > 0 && read_ + text.size() < largest_file) {
    n = pread(file, part.data(), part.size(), static_cast<off_t>(read_ + text.size()));
    if (n > 0) text.append(part, 0, static_cast<size_t>(n));
  }
  text.resize(text.rfind('\n') + 1);  // the rest of the last line is still to come
  read_ += text.size();
  parse(text);
}

void PerfMap::parse(std::string_view lines) {
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    uint64_t begin = 0, size = 0;
    if (!take_number(line, begin) || !take_number(line, size) || !begin || !size || begin + size < begin) continue;
    std::string name(line.substr(0, longest_name));
    for (char& c : name)
      if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
    if (!name.empty()) add({begin}, {{begin + size}, std::move(name)});
  }
}

void PerfMap::add(AppPc begin, Entry entry) {
  auto next = entries_.lower_bound(begin);
  if (next != entries_.begin() && std::prev(next)->second.end > begin) std::prev(next)->second.end = begin;
  while (next != entries_.end() && next->first < entry.end) next = entries_.erase(next);
  entries_.emplace_hint(next, begin, std::move(entry));
}

PerfMap::Place PerfMap::find(AppPc pc) const {
  auto after = entries_.upper_bound(pc);
  return after != entries_.begin() && pc < std::prev(after)->second.end ? std::prev(after) : entries_.end();
}

}  // namespace weir::symbols
