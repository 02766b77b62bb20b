// The options of a verb, by CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/verbs.h"

namespace weir::cli {

// False: help was asked for, and given. `app` is named after the verb: "weir run".
inline Result<bool> parse_options(CLI::App& app, const Words& words) {
  std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& e) {
    return fail("{}; see: {} --help", e.what(), app.get_name());
  }
  return true;
}

}  // namespace weir::cli
