// One file a verb. Each takes the words behind its name and returns the exit status.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weir::cli {

// What stands behind the verb: all is options until take_program() has found where the program begins.
struct Words {
  std::vector<std::string> options, program;
};

Result<int> run(Words words);
Result<int> profile(Words words);
Result<int> sample(Words words);
// These run no program.
Result<int> report(const Words& words);
Result<int> view_profile(const Words& words);
Result<int> diff(const Words& words);
Result<int> export_profile(const Words& words);

}  // namespace weir::cli
