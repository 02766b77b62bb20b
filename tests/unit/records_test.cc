// The queue of records from a thread to Weir, and the tree that is made of them: what is read late, what finds no room, and what somebody
// else has written there.
#include <gtest/gtest.h>

#include <random>

#include "sample/call_tree.h"

namespace weir::rt {
namespace {

using sample::CallTree;
using sample::full_node;
using sample::no_node;

struct Thread {
  static constexpr uint32_t nodes = 1024, depth = 16;
  explicit Thread(uint64_t words = 64) : words(words) { map.links = links, map.frames = frames; }

  // A sample with these callers, outermost first, of which so many are known.
  bool put(std::initializer_list<uint64_t> callers, uint32_t known, uint64_t leaf, uint64_t weight = 1) {
    map.count = 0;
    for (uint64_t c : callers) links[map.count++].value = c;
    if (!records.has_room(map.count - known)) return false;
    records.put({&map, 0, Stop::Complete, known, known, map.count + 1, 1}, leaf, weight);
    return true;
  }
  // Each as "caller caller … leaf*weight", by the tree.
  std::vector<std::string> take() {
    std::vector<std::string> out;
    records.take(read, [&](const Record& r, const uint64_t* callers) {
      uint32_t node = tree.take(r, callers);
      if (node == no_node) return out.push_back("?");
      std::string path;
      for (uint32_t n = node; n > full_node; n = tree.nodes()[n].parent)
        path = std::to_string(tree.nodes()[n].address) + (path.empty() ? "" : " ") + path;
      out.push_back(path + "*" + std::to_string(r.weight));
    });
    return out;
  }

  Link links[depth] = {};
  KeptFrame frames[depth] = {};
  Map map;
  std::vector<uint64_t> words, memory = std::vector<uint64_t>(CallTree::bytes_for(nodes, depth) / 8 + 1);
  Records::Queue queue = {};
  Records records{queue, words.data(), words.size()};
  CallTree tree = CallTree::make(memory.data(), nodes, depth);
  uint64_t read = 0;
};

using Paths = std::vector<std::string>;

TEST(Records, TellWhatIsNew) {
  Thread t;
  EXPECT_TRUE(t.put({1, 2, 3}, 0, 9));
  EXPECT_TRUE(t.put({1, 2, 3}, 3, 8, 5));
  EXPECT_EQ(t.queue.written, words_of(3) + words_of(0));
  EXPECT_EQ(t.take(), (Paths{"1 2 3 9*1", "1 2 3 8*5"}));
  EXPECT_TRUE(t.put({1, 4}, 1, 9));
  EXPECT_TRUE(t.put({}, 0, 7));
  EXPECT_EQ(t.take(), (Paths{"1 4 9*1", "7*1"}));
  EXPECT_EQ(t.take(), Paths{});
}

TEST(Records, BeginAgainWhereAllWasRead) {
  Thread t;
  for (uint64_t i = 0; i < 100; i++) {
    EXPECT_TRUE(t.put({1, i}, i ? 1 : 0, i));
    EXPECT_EQ(t.queue.origin, t.read);
    EXPECT_EQ(t.take(), Paths{"1 " + std::to_string(i) + " " + std::to_string(i) + "*1"});
  }
  // Not while something is left to be read.
  uint64_t origin = t.queue.written;
  EXPECT_TRUE(t.put({1, 2}, 1, 3));
  EXPECT_TRUE(t.put({1, 2}, 2, 4));
  EXPECT_EQ(t.queue.origin, origin);
}

TEST(Records, WithoutRoomAreRefused) {
  Thread t(words_of(3) + words_of(1));
  EXPECT_TRUE(t.put({1, 2, 3}, 0, 9));
  EXPECT_FALSE(t.put({1, 2, 3}, 1, 9));
  EXPECT_TRUE(t.put({1, 2, 4}, 2, 9));
  EXPECT_FALSE(t.put({}, 0, 9));
  EXPECT_EQ(t.take(), (Paths{"1 2 3 9*1", "1 2 4 9*1"}));
  EXPECT_TRUE(t.put({1, 2, 3}, 0, 8));
  EXPECT_EQ(t.take(), Paths{"1 2 3 8*1"});
}

// The target can write to the queue: nothing that it says makes Weir read outside it, or wait.
TEST(Records, OfSomebodyElse) {
  std::mt19937_64 random(1);
  uint64_t taken = 0;
  for (int i = 0; i < 20000; i++) {
    Thread t;
    for (uint64_t& w : t.words) w = random() >> random() % 64;
    t.queue = {random() >> random() % 64, random() >> random() % 64, random() >> random() % 64};
    t.read = i % 2 ? t.queue.origin : random() >> random() % 64;
    if (i % 3) t.queue.written = t.read + random() % 80;
    taken += t.take().size();
    EXPECT_EQ(t.read, t.queue.written);
    EXPECT_EQ(t.take(), Paths{});
  }
  EXPECT_GT(taken, 1000u);
}

TEST(Records, ThatMakeNoSenseAreNotCounted) {
  Thread t;
  t.put({1, 2}, 0, 9);
  t.take();
  uint64_t callers[Thread::depth] = {};
  uint32_t size = t.tree.size();
  Record good{1, 1, 0, Stop::Complete, 0, 1, 5}, bad = good;
  bad.map = map_count;
  EXPECT_EQ(t.tree.take(bad, callers), no_node);
  bad = good, bad.end = Stop::Count;
  EXPECT_EQ(t.tree.take(bad, callers), no_node);
  bad = good, bad.kept = 3;  // of two
  EXPECT_EQ(t.tree.take(bad, callers), no_node);
  bad = good, bad.more = Thread::depth;  // and one that is kept: more than there is room for
  EXPECT_EQ(t.tree.take(bad, callers), no_node);
  EXPECT_EQ(t.tree.size(), size);
  EXPECT_GT(t.tree.take(good, callers), full_node);
}

TEST(Records, ThatMakeNoSenseAreToldOf) {
  Thread t;
  t.put({1, 2}, 0, 9);
  t.tree.take(t.records);
  EXPECT_EQ(t.tree.damaged(), 0u);
  t.put({1, 2}, 2, 9);
  reinterpret_cast<Record*>(t.words.data())->kept = 7;
  t.put({1, 2}, 2, 9);
  t.tree.take(t.records);
  EXPECT_EQ(t.tree.damaged(), 1u);
  t.queue.written += 1;
  t.tree.take(t.records);
  EXPECT_EQ(t.tree.damaged(), 2u);
}

}  // namespace
}  // namespace weir::rt
