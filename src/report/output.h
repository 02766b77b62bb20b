// One description of a report, four forms of it: text for people, Markdown for a comment on a change, JSON and CSV for programs.
//
//   out.begin("functions");
//   out.fact("total", 123);                    JSON: a member of the object
//   out.line("…");                             text: a line of its own
//   out.table("functions", columns);
//   out.row({…}); out.row({…});                JSON and CSV are written at once, text when its widths are known
//   out.end_table(more);
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::report {

enum class Format : uint8_t { Text, Json, Csv, Markdown };

struct Style {
  Format format = Format::Text;
  size_t width = 0;  // of the terminal; 0: none, lines are as long as they are
  bool colour = false;
};

enum class Kind : uint8_t {
  Label,   // text, to the left
  Name,    // of a function: shortened to what room there is
  Path,    // shortened from the left
  Image,   // the name of a file: it and paths give way to names
  Code,    // text as it is, cut at the right
  Count,   // 1,234,567
  Cycles,  // 1.23 M
  Share,   // 12.34 %, a fraction
  Time,    // 1.234 s, in seconds
  Id,      // a number that is a name: 4711
};

struct Column {
  const char* key;    // in JSON and CSV; "": not there
  const char* title;  // in text; nullptr: not there
  Kind kind;
};

using Cell = std::variant<std::monostate, uint64_t, double, std::string>;
// The number, or nothing.
Cell number_if(bool there, uint64_t n);
Cell number_if(std::optional<uint64_t> n);
Cell share_if(bool there, double fraction);  // or any other that is no whole number
// The text, or nothing where it is empty.
Cell text_if_any(const std::string& s);

class Output {
 public:
  // `sink` takes what is written, piece by piece, and returns false when it cannot. Small reports come in one piece, at the
  // end: one that fails before writes nothing.
  Output(Style style, std::function<bool(std::string_view)> sink) : style_(style), sink_(std::move(sink)) {}

  bool is_text() const { return style_.format == Format::Text; }
  bool is_markdown() const { return style_.format == Format::Markdown; }
  bool is_json() const { return style_.format == Format::Json; }
  const Style& style() const { return style_; }

  void begin(std::string_view view);
  void fact(std::string_view key, const Cell& value);
  void fact(std::string_view key, const std::vector<std::string>& values);
  void begin_group(std::string_view key);  // JSON: facts up to end_group() are members of an object of their own
  void end_group();
  void line(std::string_view text = "");  // text and Markdown only
  void heading(std::string_view text);    // the same, in bold
  void table(std::string_view key, std::vector<Column> columns);
  // `indent` columns before the last column of text; a `faint` row is one that matters less.
  struct RowLook {
    size_t indent = 0;
    bool faint = false;
  };
  void row(std::vector<Cell> cells, RowLook look);
  void row(std::vector<Cell> cells) { row(std::move(cells), RowLook{}); }
  // A line of text between rows, as wide as it is.
  void row_line(std::string text);
  void end_table(uint64_t more = 0);
  Result<> end();

 private:
  struct TextRow {
    std::vector<std::string> cells;
    std::vector<double> heat;  // the fraction of a Share column
    std::string line;          // where there are no cells
    RowLook look;
  };
  std::vector<size_t> text_widths(const std::vector<Column>& shown) const;
  void write_text_table();
  void write_markdown_table();
  std::string styled(std::string_view text, const char* code) const;
  void write(std::string_view text);
  void flush();

  Style style_;
  std::function<bool(std::string_view)> sink_;
  std::string pending_;
  JsonWriter json_;
  std::vector<Column> columns_;
  std::vector<TextRow> rows_;
  std::string csv_header_;
  bool failed_ = false;
};

}  // namespace weir::report
