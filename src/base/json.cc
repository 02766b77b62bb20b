#include "base/json.h"

#include <nlohmann/json.hpp>

namespace weir {

using nlohmann::json;

// Before a value or a key: the comma and the line break that belong there.
void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.any) text += ',';
  if (!level.flat) text.append("\n").append(levels_.size() * 2, ' ');
  else if (level.any && !compact_) text += ' ';
  level.any = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  bool flat = compact_ || (!levels_.empty() && (levels_.back().flat || (levels_.size() > 1 && bracket == '{')));
  separate();
  text += bracket;
  levels_.push_back({false, flat});
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  Level level = levels_.back();
  levels_.pop_back();
  if (level.any && !level.flat) text.append("\n").append(levels_.size() * 2, ' ');
  text += bracket;
  if (levels_.empty() && !compact_) text += '\n';
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text += compact_ ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view s) {
  separate();
  text += json(s).dump(-1, ' ', false, json::error_handler_t::replace);
  return *this;
}

JsonWriter& JsonWriter::value(uint64_t n) {
  separate();
  text += std::to_string(n);
  return *this;
}

JsonWriter& JsonWriter::value(int64_t n) {
  separate();
  text += std::to_string(n);
  return *this;
}

JsonWriter& JsonWriter::value(double d) {
  separate();
  text += json(d).dump();
  return *this;
}

JsonWriter& JsonWriter::value(bool b) {
  separate();
  text += b ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  text += "null";
  return *this;
}

JsonWriter& JsonWriter::strings(std::string_view name, const std::vector<std::string>& values) {
  key(name).begin_array();
  for (const std::string& s : values) value(s);
  return end_array();
}

}  // namespace weir
