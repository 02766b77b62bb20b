// Figures and names as people see them; JSON as programs do.
#include "base/text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace weir::report {
namespace {

using nlohmann::json;

TEST(Text, Units) {
  EXPECT_EQ(with_unit(0), "0");
  EXPECT_EQ(with_unit(9999), "9,999");
  EXPECT_EQ(with_unit(10000), "10.0 k");
  EXPECT_EQ(with_unit(999499), "999 k");
  EXPECT_EQ(with_unit(999500), "1.00 M");
  EXPECT_EQ(with_unit(1234567890), "1.23 G");
  EXPECT_EQ(with_unit(UINT64_MAX), "18.4 E");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(counted(1, "call"), "1 call");
  EXPECT_EQ(counted(1234, "call"), "1,234 calls");
  EXPECT_EQ(percent(0.12345), "12.35 %");
  EXPECT_EQ(percent(0.00001), "<0.01 %");
  EXPECT_EQ(percent(0), "·");
}

TEST(Text, SecondsHaveNoExponent) {
  EXPECT_EQ(in_short_seconds(0.0000123), "12.3 µs");
  EXPECT_EQ(in_short_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(in_short_seconds(0.9996), "1 s");
  EXPECT_EQ(in_short_seconds(1.234), "1.23 s");
  EXPECT_EQ(in_short_seconds(999.6), "1,000 s");
  EXPECT_EQ(in_short_seconds(6140.2), "6,140 s");
  EXPECT_EQ(in_short_seconds(1e300), "1,000,000,000,000,000 s");
}

TEST(Text, NamesAreShortenedFromWhatMattersLeast) {
  std::string name = "ns::Map<std::string, std::vector<int>>::operator[](std::string const&)";
  EXPECT_EQ(shortened(name, 0), name);
  EXPECT_EQ(shortened(name, 48), "ns::Map<…>::operator[](std::string const&)");
  EXPECT_EQ(shortened(name, 30), "ns::Map<…>::operator[](…)");
  EXPECT_EQ(shortened(name, 24), "…::Map<…>::operator[](…)");
  EXPECT_EQ(shortened("a::b::c::d::function()", 16), "…::d::function()");
  EXPECT_EQ(shortened("operator<(A const&, B const&)", 16), "operator<(…)");
  EXPECT_EQ(shortened("operator<<(A const&, B const&)", 16), "operator<<(…)");
  EXPECT_EQ(display_width(shortened(std::string(10000, 'x'), 20)), 20u);
  EXPECT_EQ(shortened("unbalanced<<<(", 14), "unbalanced<<<(");
  EXPECT_EQ(shortened_path("/usr/include/c++/12/vector", 12), "…+/12/vector");
}

TEST(Text, NothingThatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\t\x7f"), "a?[31mb?c??");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m é \xff \xe2\x82"),
            "?31m é ? ??");
}

TEST(Text, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(valid_utf8("größe, \xf0\x9f\x98\x80"), "größe, \xf0\x9f\x98\x80");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b\xe2\x82"),
            "a\ufffdb\ufffd\ufffd");
  for (const char* bad : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"})
    EXPECT_TRUE(valid_utf8(bad).starts_with("\ufffd")) << bad;
}

TEST(Json, IsValidWhateverTheStrings) {
  JsonWriter w;
  w.begin_object().member("a\"b", "x\n\xff\x01").key("n").null().key("rows").begin_array();
  w.begin_object()
      .member("k", uint64_t{UINT64_MAX})
      .key("nested")
      .begin_array()
      .value(true)
      .value(0.5)
      .end_array()
      .end_object();
  w.begin_object().end_object();
  w.end_array().strings("empty", {}).end_object();
  json j = json::parse(w.text);
  EXPECT_EQ(j["rows"][0]["k"], UINT64_MAX);
  EXPECT_EQ(j["rows"][0]["nested"][1], 0.5);
  EXPECT_TRUE(j["n"].is_null());
}

}  // namespace
}  // namespace weir::report
