// The options of a verb, by CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/verbs.h"
#include "store/reader.h"

namespace weir::cli {

// The program begins behind `--`, or at the first word that is neither an option of `app` nor the value of one.
void take_program(const CLI::App& app, Words& words);
// False: help was asked for, and given. `app` is named after the verb: "weir run".
Result<bool> parse_options(CLI::App& app, const Words& words);

// CLI::Range, for which nan is within any.
CLI::Validator number_between(double least, double most);

// The name of a file that `option` gives: %p is Weir's process, %q{VAR} a variable of the environment, %% a percent sign.
Result<std::string> file_name(std::string_view option, std::string_view pattern);

// --os-calls; as the run was made, where it is not said.
// --with-waits and --without-waits: see store::Reader::add_waits.
void add_waits_option(CLI::App& app, std::optional<bool>& said);
Result<store::OsTime> os_time(const store::Reader& reader, const std::string& said);

// Says that the profile has rows which are in no sum, for who shows no notes.
Result<> tell_bad_rows(const store::Reader& reader);

}  // namespace weir::cli
