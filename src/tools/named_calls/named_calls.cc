#include "tools/named_calls/named_calls.h"

#include <algorithm>
#include <charconv>

namespace weir::named_calls {

namespace {

template <class T>
bool parse_number(std::string_view text, T& value) {
  bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  bool is_hexadecimal = text.starts_with("0x");
  if (is_hexadecimal) text.remove_prefix(2);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
  if (is_negative) value = T(0) - value;
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// What the target has there is copied once, as it may change.
template <class T>
T copy_of(const T& there) {
  T value;
  memcpy(&value, &there, sizeof value);
  return value;
}

template <class T>
const T* table(const std::byte* memory, uint32_t offset) {
  return reinterpret_cast<const T*>(memory + offset);
}

}  // namespace

Result<Pattern> parse_pattern(std::string_view text, bool is_answered) {
  std::string_view rest = text;
  Pattern p{.symbol = {}, .is_answered = is_answered};
  if (is_answered) {
    size_t equals = rest.rfind('=');
    std::string_view value = equals == rest.npos ? "" : rest.substr(equals + 1);
    size_t at = value.find('@');
    bool is_right = parse_number(value.substr(0, at), p.answer);
    if (at != value.npos) is_right &= parse_number(value.substr(at + 1), p.at) && p.at > 0;
    if (!is_right)
      return fail("{}: a function with its value is wanted: getuid=0, or, of the third call alone, malloc=0@3", text);
    rest = rest.substr(0, equals);
  }
  if (size_t colon = rest.rfind(':'); colon != rest.npos) p.image = rest.substr(0, colon), rest.remove_prefix(colon + 1);
  size_t at = rest.find('@', 1);
  if (at != rest.npos) p.version = rest.substr(std::min(rest.find_first_not_of('@', at), rest.size()));
  p.symbol = rest.substr(0, at);
  if (p.symbol.empty() || (at != rest.npos && p.version.empty()))
    return fail("{}: the name of a function is wanted: malloc, libc.so.6:malloc, memcpy@GLIBC_2.14", text);
  return p;
}

std::vector<instrument::Named> Calls::named_functions() const {
  std::vector<instrument::Named> names;
  for (const Pattern& p : options_.patterns)
    names.push_back(
        {.symbol = p.symbol, .image = p.image, .version = p.version, .returns = true, .replace = p.is_answered});
  return names;
}

// (A program that maps and unmaps libraries without end has more than there is room for: they are one, then.)
uint32_t Calls::name(const instrument::NamedFunction& f) {
  if (functions_.size() == runtime::max_functions) return runtime::number_of(f.name, runtime::max_functions - 1);
  auto name = static_cast<uint32_t>(names_.size());
  names_.append(std::span<const char>(f.symbol));
  names_.publish();
  functions_.push_back({name, static_cast<uint32_t>(f.symbol.size()), f.image, f.begin});
  functions_.publish();
  return runtime::number_of(f.name, static_cast<uint32_t>(functions_.size() - 1));
}

Function Calls::function(size_t i) const {
  const Found& f = functions_[i];
  return {{names_.data() + f.name, f.name_size}, f.image, f.begin};
}

void Calls::begin_thread(const instrument::ThreadStart& start) {
  auto* state = reinterpret_cast<runtime::State*>(start.memory + runtime::state_offset);
  state->traces = options_.traces;
  auto* answers = reinterpret_cast<runtime::Answer*>(start.memory + runtime::answers_offset);
  for (size_t i = 0; i < options_.patterns.size(); i++)
    if (const Pattern& p = options_.patterns[i]; p.is_answered) answers[i] = {p.answer, true, p.at};
}

// (Calls that are open when a thread ends were left, but for those of the process that it was forked from.)
void Calls::collect(const instrument::ThreadData& data) {
  Program& program = programs_[data.pid];
  program.counts.resize(functions_.size());
  const auto* counts = table<runtime::Count>(data.memory, runtime::counts_offset);
  for (size_t i = 0; i < functions_.size(); i++) {
    runtime::Count c = copy_of(counts[i]), &sum = program.counts[i];
    sum.calls += c.calls, sum.returned += c.returned, sum.left += c.left;
  }
  for (const rt::OpenCall& open : data.open_calls) {
    uint32_t function = runtime::function_of(open.number);
    if (!open.is_inherited && function < program.counts.size()) program.counts[function].left++;
  }
  auto state = copy_of(*table<runtime::State>(data.memory, runtime::state_offset));
  program.untraced += state.untraced;
  if (!options_.traces) return;
  const auto* records = table<runtime::Record>(data.memory, runtime::records_offset);
  Thread thread{data.tid, {}};
  for (uint32_t i = 0; i < std::min(state.records, runtime::max_records); i++) {
    runtime::Record r = copy_of(records[i]);
    if (r.function < functions_.size()) thread.calls.push_back(r);
  }
  program.threads.push_back(std::move(thread));
}

Program Calls::take(uint32_t pid) {
  auto node = programs_.extract(pid);
  return node ? std::move(node.mapped()) : Program{};
}

}  // namespace weir::named_calls
