// What a CPU model says of one instruction, as plain data: all that the bounds of a block are computed from.
//
// LLVM is large: to load its shared library takes 14 ms. So the part of `cost` that knows LLVM is a module of its own
// (llvm.cc, libweir_cost.so), with the few static libraries of LLVM that it needs inside; it is loaded when an instruction
// comes that is not known yet. This header is all that the two sides share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::cost {

// One figure: cycles of a register unit or of a resource.
//
// Units are numbered as by LLVM: al, ah and the rest of eax are three; xmm0, ymm0 and zmm0 are one; the flags are one.
// Resources are the ports, groups of ports, dividers … of the model. Who uses a port is listed as using every group that the
// port is in, too: so the load of a group is that of all its ports.
struct Figure {
  uint8_t of;
  uint8_t pad = 0;
  int16_t cycles;
};
inline constexpr size_t max_units = 256, max_resources = 256;

// The figures of an instruction lie one behind the other in a pool:
//   reads    unit `of` is needed `cycles` after the start (a register beside a memory operand waits for the load)
//   writes   unit `of` is there `cycles` after the start (loads hit the first-level cache)
//   uses     resource `of` is taken for `cycles`
struct Descriptor {
  uint32_t first = 0;  // in the pool
  uint16_t micro_ops = 1;
  uint8_t reads = 0, writes = 0, uses = 0;
  bool known = false;  // false: LLVM cannot decode it, or the model of the CPU has nothing on it
  uint16_t holds = 0;  // what is behind it starts that much after it: locked and serialising instructions

  size_t figures() const { return size_t{reads} + writes + uses; }
};

struct Cpu {
  std::string name;                // as LLVM calls it: "znver4"
  uint16_t width = 1;              // micro-ops dispatched in a cycle
  std::vector<uint16_t> capacity;  // of each resource: its number of ports
};

// ---- the module ----

struct Source;  // an LLVM set up for one CPU

struct Module {
  uint32_t version;
  // `name` empty: the CPU of this machine. The source is the caller's, to close.
  Result<Source*> (*open)(const std::string& name, Cpu& cpu);
  void (*close)(Source*);
  // Appends the figures to the pool. What is not known takes one cycle.
  Descriptor (*describe)(Source&, std::span<const std::byte> instruction, std::vector<Figure>& pool);
  std::vector<std::string> (*cpus)();
};
inline constexpr uint32_t module_version = 1;
inline constexpr const char* module_symbol = "weir_cost_module";

}  // namespace weir::cost
