// The tool `calls`: the calls of functions that are known by name, with their arguments and results. Also those inside of an image, which no linkage table
// shows, and those of static programs.
#pragma once

#include <map>

#include "base/published.h"
#include "base/result.h"
#include "instrument/tool.h"
#include "tools/named_calls/runtime/memory.h"

namespace weir::named_calls {

// A function that is looked for, and perhaps what is returned in its place: at all calls, or, of each thread, at call number `at`.
struct Pattern {
  std::string symbol, image = {}, version = {};
  bool is_answered = false;
  uint64_t answer = 0;
  uint32_t at = 0;  // 0: all
};
// "malloc", "libc.so.6:mem*", "memcpy@GLIBC_2.2.5"; and, if it may be, behind that "=VALUE" or "=VALUE@N".
Result<Pattern> parse_pattern(std::string_view text, bool is_answered);

struct Options {
  std::vector<Pattern> patterns;
  bool traces = false;
};

struct Function {
  std::string_view symbol;
  uint32_t image;
  AppPc begin;
};

struct Thread {
  uint32_t tid;
  std::vector<runtime::Record> calls;  // in the order in which they began
};

// What one process did.
struct Program {
  std::vector<runtime::Count> counts;  // by function
  std::vector<Thread> threads;         // if calls are traced
  uint64_t untraced = 0, unseen_ends = 0;
};

class Calls : public instrument::Tool {
 public:
  static constexpr std::string_view runtime_part = "calls";

  explicit Calls(const Options& options) : options_(options) {}
  std::unique_ptr<Tool> copy() const override { return std::make_unique<Calls>(*this); }
  std::vector<instrument::Named> named_functions() const override;
  uint32_t name(const instrument::NamedFunction& function) override;
  void plan(const instrument::Subject&, instrument::Counters&, instrument::Plan&) override {}
  void begin_thread(const instrument::ThreadStart& start) override;
  void collect(const instrument::ThreadData& data) override;
  void adopt() override { names_.adopt(), functions_.adopt(); }

  size_t functions() const { return functions_.size(); }
  Function function(size_t i) const;
  // Of a process that has ended.
  Program take(uint32_t pid);

 private:
  struct Found {
    uint32_t name, name_size, image;
    AppPc begin;
  };
  Options options_;
  Published<char> names_;
  Published<Found> functions_;
  std::map<uint32_t, Program> programs_;  // by pid
};

}  // namespace weir::named_calls
