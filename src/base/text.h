// Figures and names for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// "950", "12.3 k", "1.23 M", "4.56 G": three digits that count. Numbers below 10,000 are written out.
std::string with_unit(uint64_t n);
// "1,234,567": exact, for counts.
std::string with_commas(uint64_t n);
// "1 call", "1,234 calls".
std::string counted(uint64_t n, std::string_view one);
// "1.234 s"; "·" for nothing.
std::string in_seconds(double s);
// "1.23 s", "1,234 s": three digits that count; no figure is written with an exponent.
std::string in_short_seconds(double s);
// "12.34 %" of a fraction; "·" for nothing.
std::string percent(double fraction);

// Without anything that a terminal would obey: control characters and broken UTF-8 become '?'.
std::string printable(std::string_view s);
// With U+FFFD for bytes that are no UTF-8.
std::string valid_utf8(std::string_view s);
// In columns of a terminal (one for each code point).
size_t display_width(std::string_view s);
// The first or last columns of a text.
std::string_view first_columns(std::string_view s, size_t width);
std::string_view last_columns(std::string_view s, size_t width);

// A name in at most `width` columns (0: any). First template arguments go, then parameters, then outer scopes, then the middle:
//   std::map<…>::operator[](…)     …::Class::method(…)
std::string shortened(std::string_view name, size_t width);
// A path: its end says more.
std::string shortened_path(std::string_view path, size_t width);
std::string_view base_name(std::string_view path);

// As a shell would have it.
std::string quoted_command(const std::vector<std::string>& words);
// How a process ended: "exit 1", "SIGINT", "exec" (of another program), "let go" (by Weir), "unknown". See profile::Process.
std::string ending(std::optional<int> exit_status, std::string_view ended_by);

// "work [constprop.0]" -> "work": a function's name without what stands in brackets behind it.
std::string_view without_mark(std::string_view name);

}  // namespace weir
