#include "report/output.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace weir::report {
namespace {

constexpr const char* bold = "\x1b[1m";
constexpr const char* faint = "\x1b[2m";
constexpr const char* hot = "\x1b[1;31m";
constexpr const char* warm = "\x1b[33m";

bool is_number(Kind kind) {
  return kind == Kind::Count || kind == Kind::Cycles || kind == Kind::Share || kind == Kind::Time || kind == Kind::Id;
}

bool is_name(Kind kind) { return kind == Kind::Name || kind == Kind::Image || kind == Kind::Path || kind == Kind::Code; }

// As it stands there, whatever it holds: a name may have stars and brackets in it.
std::string in_markdown(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (std::string_view("\\`*_[]<>|#~").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Between backticks; nothing but a bar means anything there, and that only in tables.
std::string as_code(std::string_view text) {
  if (text.empty()) return "";
  std::string code;
  for (char c : text) c == '`' ? code += "'" : c == '|' ? code += "\\|" : code += c;
  return fmt::format("`{}`", code);
}

std::string csv_cell(const Cell& cell) {
  if (auto* n = std::get_if<uint64_t>(&cell)) return std::to_string(*n);
  if (auto* d = std::get_if<double>(&cell)) return fmt::format("{:.6g}", *d);
  auto* text = std::get_if<std::string>(&cell);
  if (!text) return "";
  std::string s = valid_utf8(*text);
  if (s.find_first_of(",\"\r\n") == std::string::npos) return s;
  std::string quoted = "\"";
  for (char c : s) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string text_cell(const Cell& cell, Kind kind) {
  if (auto* n = std::get_if<uint64_t>(&cell))
    return kind == Kind::Cycles ? with_unit(*n) : kind == Kind::Id ? std::to_string(*n) : with_commas(*n);
  if (auto* d = std::get_if<double>(&cell)) return kind == Kind::Time ? in_seconds(*d) : percent(*d);
  if (auto* s = std::get_if<std::string>(&cell)) return printable(*s);
  return "";
}

void put(JsonWriter& json, const Cell& cell) {
  if (auto* n = std::get_if<uint64_t>(&cell)) json.value(*n);
  else if (auto* d = std::get_if<double>(&cell)) json.value(*d);
  else if (auto* s = std::get_if<std::string>(&cell)) json.value(*s);
  else json.null();
}

}  // namespace

Cell number_if(bool there, uint64_t n) {
  Cell cell;
  if (there) cell = n;
  return cell;
}

Cell number_if(std::optional<uint64_t> n) { return number_if(n.has_value(), n.value_or(0)); }

Cell share_if(bool there, double fraction) {
  Cell cell;
  if (there) cell = fraction;
  return cell;
}

Cell text_if_any(const std::string& s) {
  Cell cell;
  if (!s.empty()) cell = s;
  return cell;
}

void Output::write(std::string_view text) {
  pending_ += text;
  if (pending_.size() >= 65536) flush();
}

void Output::flush() {
  if (!failed_ && !pending_.empty()) failed_ = !sink_(pending_);
  pending_.clear();
}

std::string Output::styled(std::string_view text, const char* code) const {
  return style_.colour && code && !text.empty() ? fmt::format("{}{}\x1b[0m", code, text) : std::string(text);
}

void Output::begin(std::string_view view) {
  if (style_.format == Format::Json) json_.begin_object().member("view", view);
}

void Output::fact(std::string_view key, const Cell& value) {
  if (style_.format != Format::Json) return;
  json_.key(key);
  put(json_, value);
}

void Output::fact(std::string_view key, const std::vector<std::string>& values) {
  if (style_.format == Format::Json) json_.strings(key, values);
}

void Output::begin_group(std::string_view key) {
  if (style_.format == Format::Json) json_.key(key).begin_object();
}

void Output::end_group() {
  if (style_.format == Format::Json) json_.end_object();
}

void Output::line(std::string_view text) {
  if (is_text()) write(std::string(text) + "\n");
  if (is_markdown()) write(in_markdown(text) + "\n");
}

void Output::heading(std::string_view text) {
  if (is_text()) write(styled(text, bold) + "\n");
  if (is_markdown()) write(fmt::format("**{}**\n", in_markdown(text)));
}

void Output::table(std::string_view key, std::vector<Column> columns) {
  columns_ = std::move(columns);
  if (style_.format == Format::Json) json_.key(key).begin_array();
  if (style_.format != Format::Csv) return;
  std::string header;
  for (const Column& c : columns_)
    if (*c.key) header += (header.empty() ? "" : ",") + csv_cell(c.key);
  if (header != csv_header_) write(header + "\n");  // tables of one kind follow each other as one
  csv_header_ = header;
}

void Output::row(std::vector<Cell> cells, RowLook look) {
  CHECK(cells.size() == columns_.size());
  if (style_.format == Format::Json) {
    json_.begin_object();
    for (size_t i = 0; i < cells.size(); i++) {
      if (!*columns_[i].key) continue;
      json_.key(columns_[i].key);
      put(json_, cells[i]);
    }
    json_.end_object();
    write(std::exchange(json_.text, {}));
    return;
  }
  if (style_.format == Format::Csv) {
    std::string line;
    bool any = false;
    for (size_t i = 0; i < cells.size(); i++) {
      if (!*columns_[i].key) continue;
      if (std::exchange(any, true)) line += ',';
      line += csv_cell(cells[i]);
    }
    write(line + "\n");
    return;
  }
  TextRow row;
  row.look = look;
  for (size_t i = 0; i < cells.size(); i++) {
    if (!columns_[i].title) continue;
    row.cells.push_back(text_cell(cells[i], columns_[i].kind));
    row.heat.push_back(std::holds_alternative<double>(cells[i]) ? std::get<double>(cells[i]) : 0);
  }
  rows_.push_back(std::move(row));
}

void Output::row_line(std::string text) {
  if (!is_text()) return;
  rows_.emplace_back();
  rows_.back().line = std::move(text);
}

// Of the columns, two apart; the last one has what room is left. Where that is too little for names, images and paths have less.
std::vector<size_t> Output::text_widths(const std::vector<Column>& shown) const {
  std::vector<size_t> widths;
  size_t indent = 0;
  for (const Column& c : shown) widths.push_back(display_width(c.title));
  for (const TextRow& row : rows_) {
    for (size_t i = 0; i < row.cells.size(); i++) widths[i] = std::max(widths[i], display_width(row.cells[i]));
    indent = std::max(indent, row.look.indent);
  }
  if (!style_.width || shown.empty()) return widths;
  size_t all = indent;
  for (size_t i = 0; i + 1 < shown.size(); i++)
    if (!is_number(shown[i].kind)) widths[i] = std::min(widths[i], style_.width * 2 / 5);
  for (size_t width : widths) all += width + 2;
  size_t too_much = all - 2 > style_.width ? all - 2 - style_.width : 0;
  for (size_t i = 0; i + 1 < shown.size() && shown.back().kind == Kind::Name; i++) {
    constexpr size_t least = 8;
    if ((shown[i].kind != Kind::Image && shown[i].kind != Kind::Path) || widths[i] <= least) continue;
    size_t less = std::min(too_much, widths[i] - least);
    widths[i] -= less, too_much -= less;
  }
  return widths;
}

void Output::write_text_table() {
  std::vector<Column> shown;
  std::ranges::copy_if(columns_, std::back_inserter(shown), [](const Column& c) { return c.title; });
  // In a column with units, the digits of those without one stand under the others'.
  for (size_t i = 0; i < shown.size(); i++) {
    if (shown[i].kind != Kind::Cycles) continue;
    auto has_unit = [&](const TextRow& row) { return i < row.cells.size() && row.cells[i].find(' ') != std::string::npos; };
    if (!std::ranges::any_of(rows_, has_unit)) continue;
    for (TextRow& row : rows_)
      if (!row.cells.empty() && !row.cells[i].empty() && !has_unit(row)) row.cells[i] += "  ";
  }
  std::vector<size_t> widths = text_widths(shown);
  size_t before_last = 0;
  for (size_t i = 0; i + 1 < shown.size(); i++) before_last += widths[i] + 2;
  size_t room = style_.width ? std::max<size_t>(style_.width > before_last ? style_.width - before_last : 0, 8) : 0;

  auto fit = [&](const std::string& cell, Kind kind, size_t width) {
    if (width == 0 || display_width(cell) <= width) return cell;
    if (kind == Kind::Path) return shortened_path(cell, width);
    if (kind == Kind::Image) return fmt::format("{}…", first_columns(cell, width - 1));
    if (kind == Kind::Code) return std::string(first_columns(cell, width));
    return shortened(cell, width);
  };
  auto padded = [&](const std::string& cell, size_t i, const char* code) {
    size_t width = display_width(cell), column = widths[i];
    std::string space(column > width ? column - width : 0, ' ');
    std::string text = styled(cell, code);
    if (i + 1 == shown.size()) return is_number(shown[i].kind) ? space + text : text;
    return (is_number(shown[i].kind) ? space + text : text + space) + "  ";
  };
  auto trimmed = [](std::string s) {
    s.erase(s.find_last_not_of(' ') + 1);
    return s + "\n";
  };

  std::string header;
  for (size_t i = 0; i < shown.size(); i++) header += padded(shown[i].title, i, nullptr);
  if (!rows_.empty() && std::ranges::any_of(shown, [](const Column& c) { return *c.title; }))
    write(styled(trimmed(header), faint));
  for (const TextRow& row : rows_) {
    if (row.cells.empty()) {
      write(row.line + "\n");
      continue;
    }
    std::string line;
    for (size_t i = 0; i < row.cells.size(); i++) {
      bool last = i + 1 == row.cells.size();
      size_t width = last ? (room > row.look.indent ? room - row.look.indent : room ? 8 : 0) : widths[i];
      std::string cell = is_number(shown[i].kind) ? row.cells[i] : fit(row.cells[i], shown[i].kind, width);
      const char* code = row.look.faint ? faint : nullptr;
      if (shown[i].kind == Kind::Share && row.heat[i] >= 0.02) code = row.heat[i] >= 0.1 ? hot : warm;
      if (last) line.append(row.look.indent, ' ');
      line += padded(cell, i, code);
    }
    write(trimmed(line));
  }
  rows_.clear();
}

void Output::write_markdown_table() {
  std::string header = "|", rule = "|";
  std::vector<Column> shown;
  std::ranges::copy_if(columns_, std::back_inserter(shown), [](const Column& c) { return c.title; });
  for (const Column& c : shown) {
    header += fmt::format(" {} |", in_markdown(c.title));
    rule += is_name(c.kind) ? "---|" : "--:|";
  }
  write(fmt::format("\n{}\n{}\n", header, rule));  // (a table is a paragraph of its own)
  for (const TextRow& row : rows_) {
    if (row.cells.empty()) continue;
    std::string line = "|";
    for (size_t i = 0; i < shown.size(); i++)
      line +=
          fmt::format(" {} |", is_name(shown[i].kind) ? as_code(shortened(row.cells[i], 100)) : in_markdown(row.cells[i]));
    write(line + "\n");
  }
  rows_.clear();
}

void Output::end_table(uint64_t more) {
  if (style_.format == Format::Json) json_.end_array();
  if (is_markdown()) {
    write_markdown_table();
    if (more) write(fmt::format("\n… and {} more\n", with_commas(more)));
  }
  if (is_text()) {
    write_text_table();
    if (more) line(styled(fmt::format("… and {} more (--limit 0)", with_commas(more)), faint));
  }
}

Result<> Output::end() {
  if (style_.format == Format::Json) {
    json_.end_object();
    write(json_.text);
  }
  flush();
  if (failed_) return fail_errno("the report cannot be written");
  return {};
}

}  // namespace weir::report
