#include "cli/run_calls.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace weir::cli {

Result<> SeenCalls::ask(const std::vector<std::string>& functions, const std::vector<std::string>& answers, bool traces) {
  for (bool is_answered : {true, false})
    for (const std::string& text : is_answered ? answers : functions) {
      TRY(named_calls::Pattern pattern, named_calls::parse_pattern(text, is_answered));
      options_.patterns.push_back(std::move(pattern));
    }
  if (options_.patterns.empty()) return fail("--tool=calls needs --function NAME, or --return NAME=VALUE");
  if (options_.patterns.size() > named_calls::runtime::max_patterns)
    return fail("too many functions: patterns with * and ? are possible");
  options_.traces = traces;
  return {};
}

void SeenCalls::set_tool(engine::Options& options) const {
  options.make_tool = [this] { return std::make_unique<named_calls::Calls>(options_); };
  options.runtime_part = named_calls::Calls::runtime_part;
}

// (Numbers are the tool's, which has one for each process that went its own way.)
void SeenCalls::add(named_calls::Calls& tool, const profile::LiveRun& run) {
  named_calls::Program program = tool.take(run.pid);
  std::vector<uint32_t> index;
  for (size_t i = 0; i < program.counts.size(); i++) {
    named_calls::Function f = tool.function(i);
    Key key{f.symbol, f.image < run.images.size() ? run.images[f.image] : "?"};
    auto [known, is_new] = index_.try_emplace(key, functions_.size());
    if (is_new) functions_.push_back({key, {}});
    index.push_back(known->second);
    auto& sum = functions_[known->second].second;
    sum.calls += program.counts[i].calls, sum.returned += program.counts[i].returned, sum.left += program.counts[i].left;
  }
  untraced_ += program.untraced;
  for (named_calls::Thread& t : program.threads) {
    for (auto& c : t.calls) c.function = index[c.function];
    threads_.push_back({run.pid, t.tid, std::move(t.calls)});
  }
}

std::string SeenCalls::to_json() const {
  using namespace named_calls::runtime;
  JsonWriter json;
  json.begin_object().key("functions").begin_array();
  for (auto& [key, count] : functions_)
    json.begin_object()
        .member("symbol", std::string_view(key.first))
        .member("image", std::string_view(key.second))
        .member("calls", count.calls)
        .member("returned", count.returned)
        .member("left", count.left)
        .end_object();
  json.end_array();
  if (options_.traces) {
    json.key("threads").begin_array();
    for (const Thread& t : threads_) {
      json.begin_object().member("pid", uint64_t{t.pid}).member("tid", uint64_t{t.tid}).key("calls").begin_array();
      for (const Record& c : t.calls) {
        json.begin_object().member("function", uint64_t{c.function}).key("arguments").begin_array();
        for (uint64_t a : c.arguments) json.value(a);
        json.end_array().key("result");
        if (c.state == HasReturned) json.value(c.result);
        else json.null();
        json.end_object();
      }
      json.end_array().end_object();
    }
    json.end_array().member("untraced", untraced_);
  }
  json.end_object();
  return std::move(json.text);
}

void SeenCalls::print() const {
  auto by_calls = functions_;
  std::erase_if(by_calls, [](const auto& f) { return !f.second.calls; });
  if (by_calls.empty()) return say("none of these functions was called");
  std::ranges::stable_sort(by_calls, std::greater(), [](const auto& f) { return f.second.calls; });
  say("{:>15}  {:>15}  {:>15}  {:<24}  function", "calls", "returned", "left", "image");
  for (auto& [key, count] : by_calls)
    say("{:>15}  {:>15}  {:>15}  {:<24}  {}", with_commas(count.calls), with_commas(count.returned),
        with_commas(count.left), base_name(key.second), printable(key.first));
  if (untraced_) say("{} calls found no room in the trace", with_commas(untraced_));
}

}  // namespace weir::cli
