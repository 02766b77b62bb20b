#include "store/annotate.h"

#include <algorithm>

#include "base/contents.h"
#include "base/text.h"
#include "profile/sources.h"

namespace weir::store {

void LineFacts::add(const LineRow& r) {
  Cycles cycles = r.count * r.cycles + r.extra;
  OneBlock& block = blocks[r.block];
  block = {r.block_offset, r.count, block.self + cycles};
  if (!r.is_counted) most_in[r.function] = std::max(most_in[r.function], r.count);
  else if (*r.is_counted) executions += r.count;
  if (!r.inlined.empty()) inlined.insert(r.inlined);
  self += cycles;
}

void LineFacts::add(const InlinedCallRow& r) {
  uint64_t& most = entered_in[{r.holder, r.scope}];
  most = std::max(most, r.calls);
}

bool LineFacts::has_run() const {
  return std::ranges::any_of(blocks, [](const auto& b) { return b.second.count > 0; });
}

uint64_t LineFacts::count() const {
  uint64_t sum = executions;
  if (!has_run())
    for (auto& [copy, calls] : entered_in) sum += calls;
  for (auto& [function, count] : most_in) sum += count;
  return sum;
}

const char* LineFacts::mark(bool is_sampled) const {
  if (!is_known() || (is_sampled && self == 0)) return "";
  return count() == 0 ? "#" : (has_run() ? blocks.size() : entered_in.size()) > 1 ? "+" : "|";
}

Result<Sections> sections_of(const Reader& reader, const FunctionInfo& function) {
  Sections sections;
  TRY_VOID(reader.lines(function, [&](const LineRow& r) {
    if (r.line) sections[{r.inlined, r.file}][r.line].add(r);
  }));
  return sections;
}

Result<> add_inlined_calls(const Reader& reader, const FunctionInfo& function, Sections& sections) {
  return reader.inlined_calls(function, [&](const InlinedCallRow& r) { sections[{"", r.file}][r.line].add(r); });
}

Result<> add_inlined_calls(const Reader& reader, const std::string& file, Lines& lines) {
  return reader.inlined_calls(file, [&](const InlinedCallRow& r) { lines[r.line].add(r); });
}

std::vector<std::pair<uint32_t, uint32_t>> runs_of(const Lines& lines, const FunctionInfo& f, bool own) {
  constexpr uint32_t close = 3, own_close = 60;
  std::vector<std::pair<uint32_t, uint32_t>> runs;
  if (lines.empty()) return runs;
  uint32_t first = lines.begin()->first;
  if (own && f.line && f.line <= first && first - f.line < own_close) first = f.line;
  runs.emplace_back(first, first);
  for (auto& [n, facts] : lines) {
    if (n > runs.back().second + (own ? own_close : close)) runs.emplace_back(n, n);
    runs.back().second = n;
  }
  return runs;
}

std::string mapped(const std::string& path, const SourceMap& map) {
  for (auto& [from, to] : map)
    if (path.starts_with(from)) return to + path.substr(from.size());
  return path;
}

Result<SourceMap> parse_source_map(const std::vector<std::string>& words) {
  SourceMap map;
  for (const std::string& word : words) {
    size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return fail("--source-map {}: is not OLD=NEW", word);
    map.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return map;
}

Result<SourceText> source_text(const Reader& reader, const std::string& path, const SourceMap& map) {
  using State = SourceText::State;
  TRY(std::optional<profile::SourceFile> then, reader.source(path));
  std::string place = mapped(path, map);
  std::optional<std::string> text = contents_of(place);
  auto named = [](uint32_t hash, uint64_t size) { return fmt::format("CRC-32 {:08x}, {} bytes", hash, with_commas(size)); };
  SourceText result;
  if (!text) {
    result.why = fmt::format("is not found here{}{}; --source-map OLD=NEW tells where it is",
                             place == path ? "" : fmt::format(" (as {})", printable(place)),
                             then ? fmt::format(" (it was {})", named(then->hash, then->size)) : "");
    return result;
  }
  result.lines = text_lines(*text);
  uint32_t hash = profile::hash_of_source(*text);
  result.state = !then ? State::Unknown : then->hash == hash && then->size == text->size() ? State::Same : State::Changed;
  if (result.state == State::Changed)
    result.why = fmt::format("has changed since the run, so lines may not fit: it was {}, and is {}",
                             named(then->hash, then->size), named(hash, text->size()));
  if (result.state == State::Unknown) result.why = "may have changed since the run: the profile has no hash of it";
  return result;
}

std::vector<std::string> text_lines(std::string_view text) {
  std::vector<std::string> lines;
  bool at_begin = true;
  for (char c : text) {
    if (std::exchange(at_begin, c == '\n')) lines.emplace_back();
    std::string& line = lines.back();
    if (c == '\t') line.append(8 - line.size() % 8, ' ');
    else if (c != '\n') line += c;
  }
  return lines;
}

}  // namespace weir::store
