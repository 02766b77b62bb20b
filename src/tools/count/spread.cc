#include "tools/count/spread.h"

#include <algorithm>
#include <unordered_map>

#include "base/components.h"
#include "profile/call_paths.h"

namespace weir::count {

using profile::CallCount;
using profile::Context;
using profile::Cycles;
using profile::none;

namespace {

// Parts of `whole` in proportion to the weights, which together are `all`. They add up to `whole` when all have been taken.
class Shares {
 public:
  Shares(Cycles whole, double all) : left_(whole), all_(all) {}
  Cycles take(double weight) {
    double part = all_ > 0 ? double(left_) * std::min(1.0, weight / all_) : 0;
    Cycles taken = std::min(left_, static_cast<Cycles>(part + 0.5));
    left_ -= taken, all_ -= weight;
    return taken;
  }

 private:
  Cycles left_;
  double all_;
};

// ---- By call paths ------------------------------------------------------------------------------------------------------

// Gives each function's time to its paths; what is left is of functions that have none.
void give_to_paths(std::vector<Context>& contexts, std::unordered_map<uint32_t, Cycles>& own, std::vector<Cycles>& given,
                   Cycles Context::* to) {
  std::unordered_map<uint32_t, double> all;
  auto weight = [](const Context& c) { return double(c.self) + double(c.calls) * 1e-3 + 1e-6; };
  for (const Context& c : contexts)
    if (own.contains(c.function)) all[c.function] += weight(c);
  std::unordered_map<uint32_t, Shares> shares;
  for (auto [function, sum] : all) shares.emplace(function, Shares(own.at(function), sum));
  for (size_t i = 0; i < contexts.size(); i++) {
    auto share = shares.find(contexts[i].function);
    if (share == shares.end()) continue;
    given[i] = share->second.take(weight(contexts[i]));
    contexts[i].*to += given[i];
    own[contexts[i].function] -= given[i];
  }
}

// What was given to a path is its callers', too: of a call inside a call of the same function it is counted once.
void add_up_paths(profile::Thread& thread, std::vector<Cycles> given, Cycles CallCount::* to) {
  const std::vector<Context>& contexts = thread.contexts;
  std::unordered_map<uint64_t, CallCount*> records;
  auto key = [](uint32_t site, uint32_t callee) { return uint64_t{site} << 32 | callee; };
  for (CallCount& c : thread.calls) records[key(c.site, c.callee)] = &c;
  given = profile::with_descendants(contexts, std::move(given));
  profile::visit_outermost(contexts, [&](uint32_t i) {
    auto record = records.find(key(contexts[i].site, contexts[i].function));
    if (record != records.end()) record->second->*to += given[i];
  });
}

// ---- By callers ---------------------------------------------------------------------------------------------------------

// Functions, and who calls them. Those that call each other in a cycle are taken together: what is inside the cycle goes to those that
// called into it, and a member has as much of it as it was on the stack of the time that the cycle was.
class Callers {
 public:
  Callers(profile::Thread& thread, std::span<const profile::CallSite> sites, Cycles CallCount::* to)
      : calls_(thread.calls), to_(to) {
    for (uint32_t i = 0; i < calls_.size(); i++) {
      uint32_t caller = sites[calls_[i].site].function;
      callers_.push_back(caller == none ? none : number_of(caller));
      callees_.push_back(number_of(calls_[i].callee));
      nodes_[callees_[i]].in.push_back(i);
    }
  }

  void spread(const std::unordered_map<uint32_t, Cycles>& own) {
    for (auto [function, time] : own)
      if (auto known = numbers_.find(function); known != numbers_.end()) nodes_[known->second].time += time;
    std::vector<std::vector<uint32_t>> out(nodes_.size());
    for (uint32_t r = 0; r < calls_.size(); r++)
      if (callers_[r] != none) out[callers_[r]].push_back(callees_[r]);
    base::Components groups(out);
    for (uint32_t n = 0; n < nodes_.size(); n++) nodes_[n].group = groups.of(n);
    for (uint32_t group = 0; group < groups.all().size(); group++) give(groups.all()[group], group);
  }

 private:
  struct Node {
    std::vector<uint32_t> in = {};  // records
    Cycles time = 0;                // its own, and of what it called
    uint32_t group = none;
  };

  uint32_t number_of(uint32_t function) {
    auto [known, is_new] = numbers_.try_emplace(function, static_cast<uint32_t>(nodes_.size()));
    if (is_new) nodes_.emplace_back();
    return known->second;
  }

  bool is_inside(uint32_t record, uint32_t group) const {
    return callers_[record] != none && nodes_[callers_[record]].group == group;
  }

  // (Of records that have no total the calls tell.)
  double weight(const CallCount& c) const { return double(c.total) + double(c.calls) * 1e-3 + 1e-6; }

  void give(const std::vector<uint32_t>& members, uint32_t group) {
    Cycles time = 0;
    double entered = 0;  // what the calls into the group took
    for (uint32_t n : members) {
      time += nodes_[n].time;
      for (uint32_t r : nodes_[n].in)
        if (!is_inside(r, group)) entered += weight(calls_[r]);
    }
    if (!time) return;
    Shares shares(time, entered);
    for (uint32_t n : members) {
      Node& node = nodes_[n];
      Cycles from_outside = 0;
      double all = 0, inside = 0;
      for (uint32_t r : node.in) {
        all += weight(calls_[r]);
        if (is_inside(r, group)) {
          inside += weight(calls_[r]);
          continue;
        }
        Cycles share = shares.take(weight(calls_[r]));
        calls_[r].*to_ += share;
        from_outside += share;
        if (callers_[r] != none) nodes_[callers_[r]].time += share;
      }
      if (members.size() == 1) continue;  // (a call of itself is inside another)
      double part = entered > 0 ? std::min(1.0, all / entered) : 1;
      Cycles whole = std::clamp(static_cast<Cycles>(double(time) * part), node.time, time);
      Shares within(whole - std::min(whole, from_outside), inside);
      for (uint32_t r : node.in)
        if (is_inside(r, group)) calls_[r].*to_ += within.take(weight(calls_[r]));
    }
  }

  std::vector<CallCount>& calls_;
  Cycles CallCount::* to_;
  std::vector<uint32_t> callers_, callees_;  // nodes, by record
  std::vector<Node> nodes_;
  std::unordered_map<uint32_t, uint32_t> numbers_;  // by function
};

}  // namespace

void spread_to_callers(profile::Thread& thread, std::span<const profile::CallSite> sites, std::span<const OwnTime> times,
                       SpreadTo to) {
  std::unordered_map<uint32_t, Cycles> own;
  for (const OwnTime& t : times)
    if (t.time) own[t.function] += t.time;
  if (own.empty()) return;
  if (!thread.contexts.empty()) {
    std::vector<Cycles> given(thread.contexts.size());
    give_to_paths(thread.contexts, own, given, to.path);
    add_up_paths(thread, std::move(given), to.call);
  }
  std::erase_if(own, [](const auto& o) { return o.second == 0; });
  if (!own.empty()) Callers(thread, sites, to.call).spread(own);
}

}  // namespace weir::count
