#include "symbols/perf_map.h"

#include <unistd.h>

#include <charconv>

namespace weir::symbols {

namespace {

constexpr size_t largest_file = 256u << 20;

// A hexadecimal number and the blank behind it.
bool take_number(std::string_view& line, uint64_t& number) {
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

void PerfMap::read(int file, WrittenCode& code) {
  std::string text, part(1 << 16, 0);
  ssize_t n = 1;
  while (n > 0 && read_ + text.size() < largest_file) {
    n = pread(file, part.data(), part.size(), static_cast<off_t>(read_ + text.size()));
    if (n > 0) text.append(part, 0, static_cast<size_t>(n));
  }
  text.resize(text.rfind('\n') + 1);  // the rest of the last line is still to come
  read_ += text.size();
  parse(text, code);
}

void PerfMap::parse(std::string_view lines, WrittenCode& code) {
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    uint64_t begin = 0, size = 0;
    if (take_number(line, begin) && take_number(line, size)) code.add({begin}, size, line);
  }
}

}  // namespace weir::symbols
