// The virtual cycles of basic blocks, by LLVM's scheduling model of a CPU. What is computed: bounds.h. What instructions
// cost that depend on the values they run with: strings.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/bounds.h"
#include "x86/insn.h"

namespace weir::cost {

struct Cost {
  uint32_t cycles = 0;   // at least 1, but for an empty block
  uint32_t unknown = 0;  // instructions that the model does not know; each is taken to be one cycle
  Bounds bounds;         // what the cycles are the maximum of
  // Of each instruction: the cycles of the block up to and with it. Never falls; the last is `cycles`. Until the next cost().
  std::span<const uint32_t> so_far;
};

// Not thread-safe, as x86::decode(), which cuts the block into instructions.
class Model {
 public:
  // `cpu` as LLVM calls it; empty: of this machine. `keep`: use and keep what earlier runs learned, in the cache directory.
  static Result<Model> create(const std::string& cpu = {}, bool keep = true);
  // The CPUs that create() knows.
  static Result<std::vector<std::string>> cpus();

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const std::string& cpu() const;
  // Of the block that these bytes are.
  Cost cost(std::span<const std::byte> block);
  // … and of one that is decoded already.
  Cost cost(std::span<const std::byte> block, std::span<const x86::Insn> insns);
  // What was new in this run is written down for later ones; quietly, if at all.
  void save();
  // For statistics: different instructions that are known, and how many of them LLVM was asked for in this run.
  size_t known() const;
  size_t asked() const;

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::cost
