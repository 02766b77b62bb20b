# Exceptions in several threads at once, and handed from one to another.
. "$(dirname "$0")/lib.sh"
compile threads.cc -pthread <<'C'
#include <cstdio>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>
__attribute__((noinline)) static int deep(int n) { if (n == 0) throw std::runtime_error("deep"); return deep(n - 1) + 1; }
int main() {
  std::vector<std::thread> threads;
  int caught[8] = {};
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; i++) try { deep(i % 20 + t); } catch (const std::exception &) { caught[t]++; }
    });
  for (auto &t : threads) t.join();
  for (int n : caught) printf("%d\n", n);
  auto future = std::async(std::launch::async, [] { return deep(9); });
  try { future.get(); } catch (const std::exception &e) { printf("from the other thread: %s\n", e.what()); }
}
C
same "$T/threads"
