// One file a verb. Each takes the words behind its name and returns the exit status.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weir::cli {

// The words before and behind `--` (or before the first word that is no option, where there is no `--`).
struct Words {
  std::vector<std::string> options, program;
};

Result<int> run(const Words& words);
Result<int> profile(const Words& words);
Result<int> sample(const Words& words);
// These run no program: all their words are options.
Result<int> report(const Words& words);
Result<int> view_profile(const Words& words);
Result<int> diff(const Words& words);
Result<int> export_profile(const Words& words);

}  // namespace weir::cli
