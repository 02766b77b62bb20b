#include "base/published.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

namespace weir {
namespace {

// A forked process adds elements, publishes some, and is killed.
TEST(Published, OutlivesTheProcessThatWrote) {
  Published<uint64_t> numbers{7};
  numbers.publish();
  pid_t pid = fork();
  if (pid == 0) {
    for (uint64_t i = 0; i < 100'000; i++) numbers.push_back(i);
    numbers.publish();
    numbers.push_back(99);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(numbers.size(), 1u);
  numbers.adopt();
  ASSERT_EQ(numbers.size(), 100'001u);
  EXPECT_EQ(numbers[0], 7u);
  EXPECT_EQ(numbers.back(), 99'999u);
}

TEST(Published, ACopyIsItsOwn) {
  Published<char> one{'a', 'b'};
  Published<char> two(one);
  two.append(std::span("cd", 2));
  one.resize(3, 'x');
  EXPECT_EQ(std::string(two.begin(), two.end()), "abcd");
  EXPECT_EQ(std::string(one.begin(), one.end()), "abx");
}

}  // namespace
}  // namespace weir
