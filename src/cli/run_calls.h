// weir run --tool=calls: what it is asked for, and what it has seen in all programs of a run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tools/named_calls/named_calls.h"

namespace weir::cli {

class SeenCalls {
 public:
  // From the values of --function and --return.
  Result<> ask(const std::vector<std::string>& functions, const std::vector<std::string>& answers, bool traces);
  void set_tool(engine::Options& options) const;
  void add(named_calls::Calls& tool, const profile::LiveRun& run);
  std::string to_json() const;
  void print() const;

 private:
  using Key = std::pair<std::string, std::string>;  // symbol and image
  struct Thread {
    uint32_t pid, tid;
    std::vector<named_calls::runtime::Record> calls;  // of functions by their index in functions_
  };
  named_calls::Options options_;
  std::map<Key, uint32_t> index_;
  std::vector<std::pair<Key, named_calls::runtime::Count>> functions_;
  std::vector<Thread> threads_;
  uint64_t untraced_ = 0;
};

}  // namespace weir::cli
