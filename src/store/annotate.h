// What a source line cost, and its text (spec 1, S1, S3): shared by those who show it. Every line has a mark:
//
//   |   the line is in one block, which ran
//   +   it is in several blocks, of which at least one ran
//   #   its code never ran
//
// Of a sampled profile the cycles are samples, nothing is known of counts, and only lines with samples have a mark.
//
// The count of a line of several blocks is how often it was executed, as gcov tells of a program that was not optimized: the sum of those
// blocks that the profile says are executions of their own, see tools/count/visits.cc. A line that has no instruction but those of functions
// that were inlined there is in no block that ran: it was executed as often as they were entered, in each copy as often as the one that was most.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/reader.h"

namespace weir::store {

struct OneBlock {
  uint64_t offset = 0, count = 0;
  Cycles self = 0;
};

struct LineFacts {
  std::map<uint32_t, OneBlock> blocks;
  uint64_t executions = 0;
  std::map<uint32_t, uint64_t> most_in;                          // of older files, by function: of the block that ran most
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> entered_in;  // by copy: of the inlined function that was entered most
  std::set<std::string> inlined;
  Cycles self = 0, called = 0;  // called: samples in what a line called

  void add(const LineRow& r);
  void add(const InlinedCallRow& r);
  bool is_known() const { return !blocks.empty() || !entered_in.empty(); }
  bool has_run() const;  // one of its blocks did
  uint64_t count() const;
  const char* mark(bool is_sampled) const;
};
using Lines = std::map<uint32_t, LineFacts>;  // by number

// The lines of a function: its own (no inlined function), of other files, of inlined functions.
struct SectionName {
  std::string inlined, file;
  auto operator<=>(const SectionName&) const = default;
};
using Sections = std::map<SectionName, Lines>;
Result<Sections> sections_of(const Reader& reader, const FunctionInfo& function);

// What was inlined there, of an exact profile: to the function's own lines, or those of a file.
Result<> add_inlined_calls(const Reader& reader, const FunctionInfo& function, Sections& sections);
Result<> add_inlined_calls(const Reader& reader, const std::string& file, Lines& lines);

// Which lines of a section are shown, first and last: those that stand close together with what is between them.
std::vector<std::pair<uint32_t, uint32_t>> runs_of(const Lines& lines, const FunctionInfo& function, bool own);

// Where a path begins with `first`, `second` stands now (--source-map).
using SourceMap = std::vector<std::pair<std::string, std::string>>;
std::string mapped(const std::string& path, const SourceMap& map);
Result<SourceMap> parse_source_map(const std::vector<std::string>& words);  // "OLD=NEW"

// A source file as it is here now, and whether it is what the run saw.
struct SourceText {
  enum class State : uint8_t { Same, Changed, Missing, Unknown };  // unknown: the profile has no hash of it
  State state = State::Missing;
  std::string why;                 // in words, behind the name of the file
  std::vector<std::string> lines;  // see text_lines()
};
Result<SourceText> source_text(const Reader& reader, const std::string& path, const SourceMap& map);

// Lines without tabs; the first is number 1.
std::vector<std::string> text_lines(std::string_view text);

}  // namespace weir::store
