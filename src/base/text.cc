#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/result.h"

namespace weir {

std::string with_unit(uint64_t n) {
  if (n < 10000) return with_commas(n);
  static constexpr std::array units = {"", " k", " M", " G", " T", " P", " E"};
  size_t unit = 0;
  double value = static_cast<double>(n);
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    unit++;
  }
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, decimals, units[unit]);
}

std::string with_commas(uint64_t n) {
  std::string s = std::to_string(n);
  for (size_t i = s.size(); i > 3;) s.insert(i -= 3, ",");
  return s;
}

std::string counted(uint64_t n, std::string_view one) {
  return fmt::format("{} {}{}", with_commas(n), one, n == 1 ? "" : "s");
}

std::string in_seconds(double s) {
  if (!(s > 0)) return "·";
  return s < 0.0005 ? "<0.001 s" : fmt::format("{:.3f} s", s);
}

std::string in_short_seconds(double s) {
  if (s >= 999.5) return with_commas(static_cast<uint64_t>(std::llround(std::min(s, 1e15)))) + " s";
  if (s >= 0.9995) return fmt::format("{:.3g} s", s);
  if (s >= 0.9995e-3) return fmt::format("{:.3g} ms", s * 1e3);
  return fmt::format("{:.3g} µs", s * 1e6);
}

std::string percent(double fraction) {
  double value = fraction * 100;
  if (!(value > 0)) return "·";
  if (value < 0.005) return "<0.01 %";
  return fmt::format("{:.2f} %", value);
}

namespace {

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

// The length of the code point at s[i], or 0 where there is none. Overlong forms and surrogates are let through: no
// terminal takes them for a control character.
size_t code_point(std::string_view s, size_t i) {
  uint8_t c = static_cast<uint8_t>(s[i]);
  size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
  for (size_t k = 1; k < length; k++)
    if (i + k >= s.size() || !is_continuation(s[i + k])) return 0;
  return length;
}

}  // namespace

std::string printable(std::string_view s) {
  std::string result;
  result.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    size_t length = code_point(s, i);
    uint8_t c = static_cast<uint8_t>(s[i]);
    bool control = c < 0x20 || c == 0x7f || (c == 0xc2 && length == 2 && static_cast<uint8_t>(s[i + 1]) < 0xa0);
    if (length == 0 || control) result += '?';
    else result += s.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return result;
}

std::string valid_utf8(std::string_view s) {
  std::string result;
  result.reserve(s.size());
  for (size_t i = 0; i < s.size();) {
    size_t length = code_point(s, i);
    // Overlong forms, surrogates, and what is beyond the last code point show in the second byte.
    if (length >= 3) {
      auto first = static_cast<uint8_t>(s[i]), second = static_cast<uint8_t>(s[i + 1]);
      if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) || (first == 0xf0 && second < 0x90) ||
          (first == 0xf4 && second >= 0x90))
        length = 0;
    }
    if (length == 0) result += "\xef\xbf\xbd";
    else result += s.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return result;
}

size_t display_width(std::string_view s) {
  size_t width = 0;
  for (char c : s) width += !is_continuation(c);
  return width;
}

std::string_view first_columns(std::string_view s, size_t width) {
  size_t i = 0;
  for (; i < s.size(); i++)
    if (!is_continuation(s[i]) && width-- == 0) break;
  return s.substr(0, i);
}

std::string_view last_columns(std::string_view s, size_t width) {
  size_t i = s.size();
  while (i > 0 && width > 0) width -= !is_continuation(s[--i]);
  return s.substr(i);
}

namespace {

// `name` with what stands between the outermost `open` and `close` replaced by "…". Those of operators are no brackets.
std::string collapsed(std::string_view name, char open, char close) {
  std::string result;
  int depth = 0;
  for (size_t i = 0; i < name.size(); i++) {
    // operator<, operator<<, operator->, operator(): the bracket follows the word, itself, or a minus.
    std::string_view before = name.substr(0, i);
    if (before.ends_with(name[i]) || (name[i] == ')' && before.ends_with('('))) before.remove_suffix(1);
    bool is_operator = before.ends_with("operator") || before.ends_with("operator-");
    if (name[i] == open && !is_operator) {
      if (depth++ == 0) result.append(1, open).append(i + 1 < name.size() && name[i + 1] == close ? "" : "…");
    } else if (name[i] == close && !is_operator && depth > 0) {
      if (--depth == 0) result += close;
    } else if (depth == 0) {
      result += name[i];
    }
  }
  return depth == 0 ? result : std::string(name);  // unbalanced: as it is
}

}  // namespace

std::string shortened(std::string_view name, size_t width) {
  std::string s = printable(name.substr(0, width ? 4096 : name.size()));
  auto fits = [&] { return width == 0 || display_width(s) <= width; };
  if (fits()) return s;
  s = collapsed(s, '<', '>');
  if (!fits()) s = collapsed(s, '(', ')');
  while (!fits()) {
    size_t scope = s.find("::", s.starts_with("…::") ? 5 : 0);
    if (scope == std::string::npos || s.find("::", scope + 2) == std::string::npos) break;
    s = "…" + s.substr(scope);
  }
  if (!fits()) {
    size_t tail = width / 3;
    s = fmt::format("{}…{}", first_columns(s, width - tail - 1), last_columns(s, tail));
  }
  return s;
}

std::string shortened_path(std::string_view path, size_t width) {
  std::string s = printable(path);
  if (width == 0 || display_width(s) <= width) return s;
  return fmt::format("…{}", last_columns(s, width > 0 ? width - 1 : 0));
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string quoted_command(const std::vector<std::string>& words) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (char c : word) c == '\'' ? command += "'\\''" : command += c;
    command += '\'';
  }
  return command;
}

std::string ending(std::optional<int> exit_status, std::string_view ended_by) {
  if (ended_by == "exec") return "exec";
  if (ended_by == "detach") return "let go";
  if (!exit_status) return "unknown";
  if (ended_by != "signal") return fmt::format("exit {}", *exit_status);
  const char* name = sigabbrev_np(*exit_status - 128);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", *exit_status - 128);
}

std::string_view without_mark(std::string_view name) {
  size_t mark = name.ends_with(']') ? name.rfind(" [") : name.npos;
  return name.substr(0, mark);
}

}  // namespace weir
