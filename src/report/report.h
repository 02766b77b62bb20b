// `weir report`: the views of a profile. docs/report.md tells what is in them, and the names of the JSON fields.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/output.h"
#include "store/annotate.h"
#include "store/reader.h"

namespace weir::report {

struct Options {
  std::string view = "summary";
  std::string subject;  // of `detail`, `source`, `asm`, `callers`: a function, or a file
  store::OsTime os = store::OsTime::InSelf;
  std::string filter;             // a regular expression for names
  std::string sort;               // a column; empty: what the view is best sorted by
  std::optional<uint64_t> limit;  // 0: all; none: what fits a screen in text, all in JSON and CSV
  bool sites = false;             // callers by call site
  bool blocks = false;            // source: the count of each block of a line
  bool merge_clones = false;      // functions: clones are added up
  bool parts = false;             // functions: what stands apart of a function is a row of its own
  store::SourceMap source_map;
  // The cycles of a block on another CPU (`--cpu`): self times are then made anew from the counts of blocks.
  std::function<uint32_t(std::span<const std::byte>)> cost;
  std::string cpu;          // its name
  bool with_waits = false;  // of a reader that adds what was waited to OS time
};

inline constexpr const char* views[] = {"summary", "functions", "detail", "callers",  "source", "asm",
                                        "tree",    "oscalls",   "waits",  "coverage", "threads"};

Result<> show(const store::Reader& reader, const Options& options, Output& out);

}  // namespace weir::report
