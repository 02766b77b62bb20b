// Time that is known of functions goes to those that called them.
#include "tools/count/spread.h"

#include <gtest/gtest.h>

namespace weir::count {
namespace {

using profile::CallCount;
using profile::Cycles;
using profile::none;
using profile::Thread;

// Functions are letters; site n is the n-th call.
struct Calls {
  struct Call {
    char caller, callee;  // caller 0: the kernel
    Cycles total;
    uint64_t calls = 1;
  };
  Thread thread;
  std::vector<profile::CallSite> sites;

  explicit Calls(std::vector<Call> calls) {
    for (const Call& c : calls) {
      profile::CallSite site;
      site.function = c.caller ? uint32_t(c.caller) : none;
      thread.calls.push_back({uint32_t(sites.size()), uint32_t(c.callee), c.calls, c.total, 0, {}});
      sites.push_back(site);
    }
  }
  std::vector<Cycles> spread(std::vector<OwnTime> own) {
    spread_to_callers(thread, sites, own, {&profile::Context::os_time, &profile::CallCount::os_time_total});
    std::vector<Cycles> times;
    for (const CallCount& c : thread.calls) times.push_back(c.os_time_total);
    return times;
  }
};
using Times = std::vector<Cycles>;

TEST(Spread, GoesUpAChain) {
  Calls c({{0, 'm', 100}, {'m', 'f', 90}, {'f', 'g', 10}});
  EXPECT_EQ(c.spread({{'g', 7}, {'f', 5}, {'m', 1}}), (Times{13, 12, 7}));
}

TEST(Spread, IsSharedByMeasuredTotals) {
  Calls c({{0, 'm', 100}, {'m', 'f', 60}, {'m', 'g', 30}, {'f', 'h', 40}, {'g', 'h', 20}});
  EXPECT_EQ(c.spread({{'h', 300}}), (Times{300, 200, 100, 200, 100}));
}

TEST(Spread, IsSharedByCallsWhereNothingWasMeasured) {
  Calls c({{0, 'f', 0, 1}, {0, 'g', 0, 1}, {'f', 'h', 0, 3}, {'g', 'h', 0, 1}});
  Times t = c.spread({{'h', 4000}});
  EXPECT_NEAR(double(t[2]), 3000, 5);
  EXPECT_EQ(t[0] + t[1], 4000u);
}

TEST(Spread, LosesNothingToRounding) {
  Calls c({{'a', 'h', 1}, {'b', 'h', 1}, {'c', 'h', 1}});
  Times t = c.spread({{'h', 100}});
  EXPECT_EQ(t[0] + t[1] + t[2], 100u);
}

// A call inside a call of the same function has no total: it counts once.
TEST(Spread, CountsRecursionOnce) {
  Calls c({{0, 'm', 100}, {'m', 'f', 80}, {'f', 'f', 0, 50}});
  EXPECT_EQ(c.spread({{'f', 10}}), (Times{10, 10, 0}));
}

TEST(Spread, CountsACycleOnce) {
  // m calls f and g, which call each other; f is on the stack for 60 of the 80 that the two take, g for 70.
  Calls c({{0, 'm', 100}, {'m', 'f', 40}, {'m', 'g', 40}, {'f', 'g', 30}, {'g', 'f', 20}, {'g', 'h', 5}});
  Times t = c.spread({{'h', 800}});
  EXPECT_EQ(t[0], 800u);
  EXPECT_EQ(t[1], 400u);
  EXPECT_EQ(t[2], 400u);
  EXPECT_EQ(t[3], 400u) << "g called h: all of it is in g";
  EXPECT_EQ(t[4], 200u) << "f was on the stack for three quarters";
  EXPECT_EQ(t[5], 800u);
}

TEST(Spread, EndsInACycleThatNobodyEntered) {
  Calls c({{'f', 'g', 10}, {'g', 'f', 10}});
  Times t = c.spread({{'g', 100}});
  EXPECT_LE(t[0], 100u);
  EXPECT_LE(t[1], 100u);
}

TEST(Spread, IsDeep) {
  std::vector<Calls::Call> calls;
  Calls c({});
  constexpr uint32_t depth = 200'000;
  for (uint32_t i = 0; i < depth; i++) {
    profile::CallSite site;
    site.function = i;
    c.sites.push_back(site);
    c.thread.calls.push_back({i, i + 1, 1, depth - i, 0, {}});
  }
  Times t = c.spread({{depth, 3}});
  EXPECT_EQ(t.front(), 3u);
}

// With call paths: by what the function computed on each.
TEST(Spread, FollowsPaths) {
  Calls c({{0, 'm', 100}, {'m', 'f', 60}, {'m', 'g', 30}, {'f', 'h', 40}, {'g', 'h', 20}, {'h', 'h', 0}});
  c.thread.contexts = {{none, 0, 'm', 1, 10, 0}, {0, 1, 'f', 1, 10, 0}, {1, 3, 'h', 1, 30, 0},
                       {2, 5, 'h', 1, 0, 0},     {0, 2, 'g', 1, 10, 0}, {4, 4, 'h', 1, 10, 0}};
  Times t = c.spread({{'h', 4000}, {'x', 5}});
  EXPECT_NEAR(double(t[3]), 3000, 5);
  EXPECT_NEAR(double(t[4]), 1000, 5);
  EXPECT_EQ(t[0], 4000u);
  EXPECT_EQ(t[1], t[3]);
  EXPECT_EQ(t[2], t[4]);
  EXPECT_EQ(t[5], 0u);
  Cycles all = 0;
  for (const profile::Context& x : c.thread.contexts) all += x.os_time;
  EXPECT_EQ(all, 4000u);
}

}  // namespace
}  // namespace weir::count
