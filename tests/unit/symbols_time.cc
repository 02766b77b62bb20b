// How long the parts of `symbols` take on a file: functions, declarations, frames of every tenth byte of code, lines.
//
//     symbols_time FILE…
#include <chrono>
#include <cstdio>

#include "symbols/symbols.h"

using namespace weir::symbols;

namespace {

template <class Work>
double seconds(Work work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const char* path) {
  std::unique_ptr<Symbols> symbols;
  double opened = seconds([&] { symbols = Symbols::open(path); });
  double functions = seconds([&] { symbols->functions(); });
  double units = seconds([&] { symbols->has_lines(); });
  size_t declared = 0, frames = 0, deep = 0;
  double declarations = seconds([&] {
    for (const Function& f : symbols->functions()) declared += symbols->declaration(f.range.begin).line != 0;
  });
  std::vector<Vaddr> addresses;
  for (const Function& f : symbols->functions())
    for (Vaddr v = f.range.begin; v < f.range.end; v += 10) addresses.push_back(v);
  double chains = seconds([&] {
    symbols->frames(addresses, [&](size_t, std::span<const Frame> chain) {
      frames += chain.size();
      deep += chain.size() > 1;
    });
  });
  double lines = seconds([&] { symbols->source_lines_of("none"); });
  printf(
      "%s: open %.3f s; %zu functions %.3f s; units %.3f s; %zu declarations %.3f s; %zu addresses, %zu of them inlined, "
      "%zu frames %.3f s; lines of all files %.3f s; together %.3f s\n",
      path, opened, symbols->functions().size(), functions, units, declared, declarations, addresses.size(), deep, frames,
      chains, lines, opened + functions + units + declarations + chains + lines);
  for (const std::string& note : symbols->notes()) printf("  %s\n", note.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) measure(argv[i]);
}
