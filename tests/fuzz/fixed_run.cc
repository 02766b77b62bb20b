// Runs a fuzz target over random inputs that are the same each time: for the tests, which have no libFuzzer.
//
//   NAME COUNT [FIRST]    inputs FIRST to FIRST + COUNT - 1; each is made from its number
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: %s COUNT [FIRST]\n", argv[0]), 2;
  uint64_t count = strtoull(argv[1], nullptr, 10), first = argc > 2 ? strtoull(argv[2], nullptr, 10) : 0;
  for (uint64_t i = first; i < first + count; i++) {
    printf("%lu\n", i), fflush(stdout);  // (the last one is the one that failed)
    std::mt19937_64 random(i);
    std::vector<uint8_t> input(random() % 128);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}
