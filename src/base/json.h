// JSON, written as it comes: a report of a million rows is never held whole. Strings of any bytes become valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

class JsonWriter {
 public:
  JsonWriter() = default;
  static JsonWriter compact() { return JsonWriter(true); }  // for programs: no line breaks, no blanks

  // Everything so far; the caller may take it away at any time.
  std::string text;

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view s);
  JsonWriter& value(const char* s) { return value(std::string_view(s)); }
  JsonWriter& value(uint64_t n);
  JsonWriter& value(int64_t n);
  JsonWriter& value(double d);
  JsonWriter& value(bool b);
  JsonWriter& null();

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  JsonWriter& strings(std::string_view name, const std::vector<std::string>& values);

 private:
  struct Level {
    bool any = false;
    bool flat = false;  // objects of an array stand in one line
  };
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  explicit JsonWriter(bool compact) : compact_(compact) {}
  bool compact_ = false;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace weir
