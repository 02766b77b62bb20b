// What C++ programs do: virtual calls, std::map, std::string, std::function, and exceptions.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Shape {
  virtual ~Shape() = default;
  virtual uint64_t area(uint64_t scale) const = 0;
};
struct Square : Shape {
  uint64_t side;
  explicit Square(uint64_t s) : side(s) {}
  uint64_t area(uint64_t scale) const override { return side * side * scale; }
};
struct Strip : Shape {
  uint64_t width, height;
  Strip(uint64_t w, uint64_t h) : width(w), height(h) {}
  uint64_t area(uint64_t scale) const override { return width * height + scale; }
};
struct Pair : Shape {
  std::unique_ptr<Shape> first, second;
  Pair(std::unique_ptr<Shape> a, std::unique_ptr<Shape> b) : first(std::move(a)), second(std::move(b)) {}
  uint64_t area(uint64_t scale) const override { return first->area(scale) ^ second->area(scale + 1); }
};

static uint64_t state = 88172645463325252ull;
static uint64_t random_number() {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static std::unique_ptr<Shape> make_shape(int depth) {
  switch (random_number() % (depth > 0 ? 3 : 2)) {
    case 0: return std::make_unique<Square>(random_number() % 100);
    case 1: return std::make_unique<Strip>(random_number() % 100, random_number() % 100);
    default: return std::make_unique<Pair>(make_shape(depth - 1), make_shape(depth - 1));
  }
}

static uint64_t parse(const std::string& digits) {
  if (digits.back() == '7') throw std::invalid_argument(digits);
  return std::stoull(digits);
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 20;
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 5'000; i++) shapes.push_back(make_shape(4));
  std::function<uint64_t(uint64_t)> twist = [](uint64_t x) { return (x * 31) ^ (x >> 3); };

  uint64_t sum = 0, thrown = 0;
  std::map<uint64_t, std::string> numbers;
  for (int round = 0; round < rounds; round++) {
    for (int repeat = 0; repeat < 20; repeat++)
      for (auto& shape : shapes) sum += twist(shape->area(static_cast<uint64_t>(round)));
    for (int i = 0; i < 20'000; i++) numbers[random_number() % 30'000] = std::to_string(random_number() % 100'000);
    for (auto& [key, digits] : numbers) {
      try {
        sum += key * parse(digits);
      } catch (const std::exception& error) {
        thrown += std::string(error.what()).size();
      }
    }
  }
  printf("%llu %llu %zu\n", static_cast<unsigned long long>(sum), static_cast<unsigned long long>(thrown), numbers.size());
}
