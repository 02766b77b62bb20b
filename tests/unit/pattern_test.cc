// Regular expressions: those that names are searched with, and those that are meant to hurt.
#include "base/pattern.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

bool finds(std::string_view pattern, std::string_view text, Pattern::Case letters = Pattern::Case::Matters) {
  Result<Pattern> made = Pattern::make(pattern, letters);
  return made && made->matches(text);
}

TEST(Pattern, IsAsGrepHasIt) {
  EXPECT_TRUE(finds("^sqlite3.*(Step|Exec)$", "sqlite3VdbeExec"));
  EXPECT_FALSE(finds("^Vdbe", "sqlite3VdbeExec"));
  EXPECT_TRUE(finds("[[:digit:]]{2,}", "a12"));
  EXPECT_TRUE(finds("", "anything"));
  EXPECT_FALSE(finds("vdbe", "sqlite3VdbeExec"));
  EXPECT_TRUE(finds("vdbe", "sqlite3VdbeExec", Pattern::Case::Ignored));
  EXPECT_TRUE(finds("f\\(int\\)", "A::f(int)"));
  EXPECT_TRUE(finds("^gr..e$", "größe"));
}

TEST(Pattern, TellsWhatIsWrong) {
  for (const char* bad :
       {"(", "a)", "[", "a{2,1}", "*", "\\", "(.*){1,200}{1,200}", "((a{1,255}){1,255}){1,255}", "\xff"}) {
    Result<Pattern> made = Pattern::make(bad);
    ASSERT_FALSE(made) << bad;
    EXPECT_NE(made.error().what.find("not a regular expression: "), std::string::npos) << made.error().what;
  }
}

TEST(Pattern, TakesNoTimeAndNoStack) {
  EXPECT_FALSE(finds("(a*)*(a*)*(a|aa)+$", std::string(100'000, 'a') + "b"));
  EXPECT_TRUE(finds("((((x{0,9}){0,9}){0,9})|y)", "y"));
  EXPECT_TRUE(finds(std::string(100'000, '(') + "a" + std::string(100'000, ')'), "a"));
  EXPECT_FALSE(finds(std::string(100'000, '('), "a"));
  EXPECT_TRUE(finds(".*", std::string("broken \xff bytes\0 and more", 24)));
}

}  // namespace
}  // namespace weir
