// Questions to a profile, each answered row by row out of the file: a profile is never loaded whole.
//
// Counts are those of the selected threads (all, unless select() was called). OS time: `total` has that of all descendants in
// it; `self` has the function's own where OsTime::InSelf asks for it (T5), and with OsTime::Apart every OS call is a row of its
// own, named "[read]". The file itself keeps the two apart. Waiting is in neither, unless add_waits() adds it to all OS time.
//
// A file may be anybody's. Ids that lead nowhere give empty names, contexts are walked in growing order of their ids, and a
// number out of range is 0 or none.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"
#include "store/schema.h"
#include "store/sqlite.h"

namespace weir::store {

using profile::Cycles;
using profile::none;

enum class OsTime : uint8_t { InSelf, Apart };

// Of a row of function_count: the function ran. (One that was entered by none of the known ways has time, and no calls.)
inline constexpr const char* ran = "(calls > 0 OR self > 0 OR os_calls > 0 OR total > 0 OR os_time_total > 0)";

// What is known of a function before it runs.
struct FunctionInfo {
  uint32_t id = none;  // none: an OS call, shown as a function
  std::string name, linkage_name, image, file;
  uint32_t line = 0;
  uint64_t offset = 0, size = 0;
  uint32_t first_block = 0, blocks = 0;
  std::string named_by, clone;  // see profile::Function
  bool has_code = true;         // false: it is only known where it was inlined
};

struct FunctionRow : FunctionInfo {
  uint64_t calls = 0;
  Cycles self = 0, total = 0;
  std::optional<Cycles> self_min, self_max;  // of one call, without OS time; none: no call has ended
  uint64_t os_calls = 0;
  Cycles os_time = 0, os_time_total = 0, waited = 0, waited_total = 0;
  uint64_t inlined = 0;      // of the calls: that were inlined
  bool is_estimate = false;  // the total (see profile/unfold.h)
  const char* inlining() const { return !has_code ? "inlined" : inlined ? "partly" : ""; }
};

struct FunctionQuery {
  OsTime os = OsTime::InSelf;
  std::string filter;          // a regular expression (as grep -E) for names; empty: all
  std::string order = "self";  // a column
  bool ascending = false;
  uint64_t limit = 0;  // 0: all
};

// A call record: `caller` called `callee` from a place.
struct CallRow {
  uint32_t caller = none, callee = none, site = none;
  std::string caller_name, callee_name, caller_image;
  std::string site_kind, file;  // "tail call" only if all sites are
  uint32_t line = 0;
  uint64_t offset = 0;         // of the site in its image
  uint64_t caller_offset = 0;  // of the function that holds it
  uint64_t sites = 1;          // that this row stands for
  uint64_t calls = 0;
  Cycles total = 0;  // with os_time_total
  std::optional<Cycles> self_min, self_max;
  Cycles os_time_total = 0, waited_total = 0;
};

struct CallQuery {
  uint32_t caller = none, callee = none;  // none: any
  std::string filter;                     // for the callee's name
  bool by_site = false;                   // a row for each site; otherwise one for each caller
  bool of_code = false;                   // of the caller: all in its code, of what was inlined there, too
  std::string order = "total";
  uint64_t limit = 0;
};

struct BlockRow {
  uint32_t id = none, function = none;
  uint64_t offset = 0;
  std::span<const std::byte> bytes;  // valid during the call
  uint32_t instructions = 0, cycles = 0;
  uint64_t count = 0;
  Cycles extra = 0;

  Cycles self() const { return count * cycles + extra; }
};

// The part of a block that belongs to a source line.
struct LineRow {
  uint32_t block = none, function = none;
  std::string file, inlined;
  uint32_t line = 0, instructions = 0, cycles = 0;
  uint32_t block_cycles = 0;
  uint64_t block_offset = 0;
  uint64_t count = 0;
  Cycles extra = 0;  // of the block: given to its costliest part
  uint32_t position = 0;
  uint32_t scope = none;           // the inlined call that it is in
  std::optional<bool> is_counted;  // see profile::LinePart; none: the file is older than that
};

// Entries of an inlined function, where it was called from a line: in a copy of the caller, which is the code of `holder`, or of the inlined
// call `scope` in it.
struct InlinedCallRow {
  std::string file;
  uint32_t line = 0, holder = none, scope = none;
  uint64_t calls = 0;
};

struct ContextRow {
  uint32_t id = none, parent = none, site = none, function = none, thread = none;
  uint64_t calls = 0;
  Cycles self = 0, os_time = 0, total = 0, os_time_total = 0, waited = 0, waited_total = 0;
  uint32_t first_child = 0, children = 0;
};

// Samples of a context at one instruction.
struct LeafRow {
  uint32_t context = none, block = none;
  uint64_t samples = 0;
  uint64_t offset = 0;  // of the instruction, and its line in `file`
  std::string file, inlined;
  uint32_t line = 0;
};

struct OsRow {
  uint32_t number = 0, function = none;  // none: of all functions
  std::string name, function_name, os_class;
  uint64_t calls = 0, errors = 0;
  Cycles time = 0, waited = 0;
};

struct ThreadRow {
  uint32_t id = none, process = none, pid = 0, tid = 0;
  std::string name;
  Cycles cycles = 0, os_time = 0, waited = 0;
  uint64_t instructions = 0, functions = 0;
};

struct ProcessRow : profile::Process {
  uint32_t id = none;
};

struct CoverageRow {
  std::string image, file;  // file empty: what has no line
  uint64_t functions = 0, functions_run = 0, blocks = 0, blocks_run = 0, lines = 0, lines_run = 0;
};

// Rows of counts as they are, whatever is in them. A number that is not there is below zero.
struct FunctionCounts {
  uint32_t function = none, thread = none;
  int64_t calls, self, total, os_calls, os_time, os_time_total, waited, waited_total;
  std::optional<int64_t> self_min, self_max;
};
struct CallCounts {
  uint32_t callee = none, site = none, thread = none;
  int64_t calls, total, os_time_total, waited_total;
  std::optional<int64_t> self_min, self_max;
};
struct BlockCounts {
  uint32_t block = none, function = none, thread = none;
  int64_t count, extra, instructions, cycles;
};

struct Totals {
  Cycles cycles = 0, os_time = 0, waited = 0;  // waited: in no other time, unless add_waits() was called
  uint64_t instructions = 0, threads = 0, processes = 0, programs = 0, functions = 0, functions_run = 0, os_calls = 0,
           page_faults = 0, contexts = 0, blocks = 0;
  Cycles all() const { return cycles + os_time; }
};

class Reader {
 public:
  static Result<Reader> open(const std::string& path);
  const std::string& path() const { return db_.path(); }

  // "exact profile"; others may come.
  Result<std::string> kind() const;

  // From here on OS time has in it what was waited (`waited` is told besides), if `said`, or if not said, of a run by wall time, which asks
  // for it. Is it so?
  Result<bool> add_waits(std::optional<bool> said);
  bool adds_waits() const { return adds_waits_; }
  bool tells_waits() const { return version_ >= 6; }

  // From here on only the counts of these threads. A thread is told by its tid (or index), or its name; a process by its pid (or index), or
  // the name of the program that it ran. Empty: any.
  Result<> select(const std::string& thread, const std::string& process);

  Result<> select_id(std::optional<uint32_t> thread);  // by ThreadRow::id; none: all

  // From here on what was inlined is part of the functions that have its code, as if nobody knew; or not any more.
  Result<> fold_inlined(bool is_folded);
  bool has_inlined() const { return has_inlined_; }  // and is not folded

  Result<profile::Run> run() const;
  Result<Totals> totals() const;
  Result<std::vector<ThreadRow>> threads() const;      // that are selected
  Result<std::vector<ThreadRow>> all_threads() const;  // whichever are
  Result<std::vector<ProcessRow>> processes() const;

  template <class Row>
  using Each = std::function<void(const Row&)>;
  Result<> functions(const FunctionQuery& query, const Each<FunctionRow>& each) const;
  Result<FunctionRow> function(uint32_t id, OsTime os) const;
  Result<> all_functions(const Each<FunctionInfo>& each) const;  // also those that never ran
  Result<> names(const Each<std::string>& each) const;           // of all functions, each once
  // Those that a person may mean: by name, name without parameters, image+offset, part of a name; the best kind of match only.
  Result<std::vector<FunctionInfo>> find(const std::string& text) const;

  Result<> calls(const CallQuery& query, const Each<CallRow>& each) const;
  Result<> blocks(const FunctionInfo& function, const Each<BlockRow>& each) const;
  Result<> all_blocks(const Each<BlockRow>& each) const;  // that ran
  Result<> lines(const FunctionInfo& function, const Each<LineRow>& each) const;
  Result<> lines(const std::string& file, const Each<LineRow>& each) const;
  Result<> inlined_calls(const FunctionInfo& caller, const Each<InlinedCallRow>& each) const;
  Result<> inlined_calls(const std::string& file, const Each<InlinedCallRow>& each) const;
  // Files that have lines, with this path or one that ends in it.
  Result<std::vector<std::string>> files(const std::string& path) const;
  // What the file was at the end of the run; none: it was not there, or the profile is from before that was noted.
  Result<std::optional<profile::SourceFile>> source(const std::string& path) const;
  Result<> functions_in(const std::string& file, const Each<FunctionRow>& each) const;

  // Contexts of the selected threads: without a parent, below one, all (a parent before its children).
  Result<> roots(const Each<ContextRow>& each) const;
  Result<> children(const ContextRow& parent, const Each<ContextRow>& each) const;
  Result<> contexts(const Each<ContextRow>& each) const;
  Result<> leaves(const Each<LeafRow>& each) const;  // of all threads; exact profiles have none

  // By call, or by call and function (of one function, if it is named).
  Result<> os_calls(bool by_function, uint32_t function, const Each<OsRow>& each) const;
  Result<> coverage(const std::string& filter,
                    const Each<CoverageRow>& each) const;  // by image and file; the filter is for paths
  Result<> sites(const Each<CallRow>& each) const;         // every site, without counts
  // All counts of all threads, row by row.
  Result<> counts_of_functions(const Each<FunctionCounts>& each) const;
  Result<> counts_of_calls(const Each<CallCounts>& each) const;
  Result<> counts_of_blocks(const Each<BlockCounts>& each) const;
  // Rows of functions and calls with a time or a count that cannot be (below zero, or larger than `most`): no sum has it in it.
  // One line about them; empty: there are none.
  Result<std::string> bad_rows() const;
  struct OsSums {
    uint32_t thread = none;
    int64_t time, waited;
  };
  Result<> sums_of_os_calls(const Each<OsSums>& each) const;  // by thread
  // Whose code ran and has no lines: what was inlined there is not known. Those that took most come first.
  Result<std::vector<std::string>> images_without_lines() const;
  Result<> images(const std::function<void(uint32_t, const profile::Image&)>& each) const;

 private:
  Result<std::optional<profile::Sampling>> sampling() const;  // none: the profile is exact
  Reader(Database db, uint64_t version) : db_(std::move(db)), version_(version) {}
  Result<> lay_over();
  Result<> fill_selected(std::string_view condition);
  Result<std::vector<ThreadRow>> threads_where(const char* condition) const;
  Result<> count_processes(Totals& t) const;
  Result<> inlined_calls_where(const char* condition, uint64_t caller, const std::string& file,
                               const Each<InlinedCallRow>& each) const;
  Result<> lines_inlined(const FunctionInfo& function, const Each<LineRow>& each) const;
  // A column that older files do not have.
  const char* since(uint64_t version, const char* column) const { return version_ >= version ? column : "NULL"; }
  Database db_;
  std::string info_columns() const;
  uint64_t version_;
  bool has_inlined_ = false, is_folded_ = false, adds_waits_ = false;
};

}  // namespace weir::store
