// Four threads and one hash table with a lock for each stripe; the sum does not depend on who came first.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

struct Node {
  uint64_t key, value;
  std::unique_ptr<Node> next;
};
constexpr size_t buckets = 1 << 16, stripes = 256;
static std::unique_ptr<Node> table[buckets];
static std::mutex locks[stripes];

static void add(uint64_t key, uint64_t value) {
  size_t bucket = (key * 0x9E3779B97F4A7C15ull) >> 48;
  std::lock_guard guard(locks[bucket % stripes]);
  for (Node* n = table[bucket].get(); n; n = n->next.get()) {
    if (n->key == key) {
      n->value += value;
      return;
    }
  }
  table[bucket] = std::make_unique<Node>(Node{key, value, std::move(table[bucket])});
}

static void work(uint64_t seed, int rounds) {
  uint64_t state = seed;
  for (int i = 0; i < rounds; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    add((state >> 33) % 100'000, state & 0xff);
  }
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1'000'000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; t++) threads.emplace_back(work, t + 1, rounds);
  for (auto& t : threads) t.join();
  uint64_t sum = 0, nodes = 0;
  for (auto& head : table)
    for (Node* n = head.get(); n; n = n->next.get()) sum += n->key ^ n->value, nodes++;
  printf("%llu %llu\n", static_cast<unsigned long long>(sum), static_cast<unsigned long long>(nodes));
}
