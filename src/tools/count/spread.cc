#include "tools/count/spread.h"

#include <algorithm>
#include <unordered_map>

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
                   Cycles Context::*to) {
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
void add_up_paths(profile::Thread& thread, std::vector<Cycles> given, Cycles CallCount::*to) {
  const std::vector<Context>& contexts = thread.contexts;
  std::unordered_map<uint64_t, CallCount*> records;
  auto key = [](uint32_t site, uint32_t callee) { return uint64_t{site} << 32 | callee; };
  for (CallCount& c : thread.calls) records[key(c.site, c.callee)] = &c;
  std::vector<uint32_t> first(contexts.size(), none), next(contexts.size(), none), roots;
  for (auto i = static_cast<uint32_t>(contexts.size()); i--;) {
    uint32_t parent = contexts[i].parent;
    if (parent == none) {
      roots.push_back(i);
      continue;
    }
    given[parent] += given[i];
    next[i] = first[parent], first[parent] = i;
  }
  std::unordered_map<uint32_t, uint32_t> depth;  // of the functions on the path
  std::vector<uint32_t> path;
  auto enter = [&](uint32_t i) {
    path.push_back(i);
    const Context& c = contexts[i];
    bool is_outermost = depth[c.function]++ == 0;
    if (!is_outermost || !given[i]) return;
    if (auto record = records.find(key(c.site, c.function)); record != records.end())
      record->second->*to += given[i];
  };
  for (uint32_t root : roots) {
    enter(root);
    while (!path.empty()) {
      uint32_t at = path.back();
      if (uint32_t child = first[at]; child != none) {
        first[at] = next[child];
        enter(child);
      } else {
        depth[contexts[at].function]--;
        path.pop_back();
      }
    }
  }
}

// ---- By callers ---------------------------------------------------------------------------------------------------------

// Functions, and who calls them. Those that call each other in a cycle are taken together: what is inside the cycle goes to those that
// called into it, and a member has as much of it as it was on the stack of the time that the cycle was.
class Callers {
 public:
  Callers(profile::Thread& thread, std::span<const profile::CallSite> sites, Cycles CallCount::*to)
      : calls_(thread.calls), to_(to) {
    for (uint32_t i = 0; i < calls_.size(); i++) {
      uint32_t caller = sites[calls_[i].site].function;
      callers_.push_back(caller == none ? none : number_of(caller));
      callees_.push_back(number_of(calls_[i].callee));
      nodes_[callees_[i]].in.push_back(i);
      if (caller != none) nodes_[callers_[i]].out.push_back(i);
    }
  }

  void spread(const std::unordered_map<uint32_t, Cycles>& own) {
    for (auto [function, time] : own)
      if (auto known = numbers_.find(function); known != numbers_.end()) nodes_[known->second].time += time;
    for (uint32_t n = 0; n < nodes_.size(); n++)
      if (!nodes_[n].number) walk(n);
  }

 private:
  struct Node {
    std::vector<uint32_t> in = {}, out = {};  // records
    Cycles time = 0;                          // its own, and of what it called
    uint32_t number = 0, low = 0;             // see walk()
    uint32_t group = none;
    size_t next = 0;
  };

  uint32_t number_of(uint32_t function) {
    auto [known, is_new] = numbers_.try_emplace(function, static_cast<uint32_t>(nodes_.size()));
    if (is_new) nodes_.emplace_back();
    return known->second;
  }

  // Tarjan's components, without recursion: each is closed when all that it calls has been.
  void walk(uint32_t start) {
    std::vector<uint32_t> way;
    auto enter = [&](uint32_t n) {
      nodes_[n].number = nodes_[n].low = ++last_number_;
      open_.push_back(n), way.push_back(n);
    };
    enter(start);
    while (!way.empty()) {
      uint32_t at = way.back();
      Node& node = nodes_[at];
      if (node.next == node.out.size()) {
        way.pop_back();
        if (!way.empty()) nodes_[way.back()].low = std::min(nodes_[way.back()].low, node.low);
        if (node.low == node.number) close(at);
        continue;
      }
      Node& to = nodes_[callees_[node.out[node.next++]]];
      if (!to.number) enter(static_cast<uint32_t>(&to - nodes_.data()));
      else if (to.group == none) node.low = std::min(node.low, to.number);
    }
  }

  void close(uint32_t first) {
    std::vector<uint32_t> members;
    do {
      members.push_back(open_.back());
      open_.pop_back();
      nodes_[members.back()].group = groups_;
    } while (members.back() != first);
    give(members, groups_++);
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
  Cycles CallCount::*to_;
  std::vector<uint32_t> callers_, callees_;  // nodes, by record
  std::vector<Node> nodes_;
  std::unordered_map<uint32_t, uint32_t> numbers_;  // by function
  std::vector<uint32_t> open_;
  uint32_t last_number_ = 0, groups_ = 0;
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
