// What the programs in tests/tools have in common: `NAME run [--tool=NAME|none] [-q] [--json FILE] [--pid N] [--seconds N] [--keep-addresses] -- PROGRAM …`.
#pragma once

#include <functional>
#include <string>

#include "engine/engine.h"

namespace weir::tests {

// A tool, and what is written to FILE in the end.
struct TestTool {
  std::string_view runtime_part;
  std::function<std::unique_ptr<instrument::Tool>()> make;
  std::function<std::string()> json = [] { return std::string(); };
};
int run_with(const TestTool& tool, int argc, char** argv);

}  // namespace weir::tests
