// What the page is tried on: recursion, callers that share a callee, inlined code, two threads, OS calls, lines that never run.
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

static inline int square(int n) { return n * n; }

__attribute__((noinline)) int refuse(int n) { return printf("%d\n", n); }

__attribute__((noinline)) int fibonacci(int n) {
  if (n > 90)
    return refuse(n + 1);
  if (n < 2) return n;
  return fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline)) int sum_of_squares(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += square(i);
  return sum;
}

__attribute__((noinline)) int parse(const std::string& text) {
  int value = 0;
  for (char c : text) value = value * 10 + (c - '0');
  return value + sum_of_squares(50);
}

__attribute__((noinline)) int read_all(int count) {
  std::vector<std::string> words;
  for (int i = 0; i < count; i++) words.push_back(std::to_string(i));
  int sum = 0;
  for (const std::string& word : words) sum += parse(word);
  return sum;
}

volatile int kept;

int main(int argc, char**) {
  std::thread worker([] { kept = sum_of_squares(300000); });
  int result = read_all(argc > 1 ? 4000 : 8000) + fibonacci(argc > 1 ? 26 : 24);
  worker.join();
  printf("%d\n", result);
}
