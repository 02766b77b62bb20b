#include "profile/unfold.h"

#include <algorithm>
#include <unordered_map>

#include "base/components.h"
#include "profile/call_paths.h"
#include "profile/sums.h"

namespace weir::profile {

Unfolder::Unfolder(const Profile& profile) : p_(profile), has_scopes_(profile.functions.size()) {
  if (p_.scopes.empty()) return;
  parts_ = find_parts();
  for (const Scope& s : p_.scopes) has_scopes_[s.function] = true;
}

// What a block cost beyond its cycles is its costliest part's (the first of equal ones).
std::vector<Unfolder::Part> Unfolder::find_parts() const {
  std::vector<uint32_t> costliest(p_.blocks.size(), none);
  for (uint32_t i = 0; i < p_.lines.size(); i++) {
    uint32_t& best = costliest[p_.lines[i].block];
    if (best == none || p_.lines[i].cycles > p_.lines[best].cycles) best = i;
  }
  std::vector<Part> parts;
  for (uint32_t i = 0; i < p_.lines.size(); i++)
    if (const LinePart& l = p_.lines[i]; l.scope != none)
      parts.push_back({l.block, l.scope, l.cycles, costliest[l.block] == i});
  std::ranges::stable_sort(parts, {}, &Part::block);
  return parts;
}

// Is an inlined call inside one of that function, or one itself?
bool Unfolder::is_inside(uint32_t function, uint32_t scope) const {
  for (; scope != none; scope = p_.scopes[scope].parent)
    if (p_.scopes[scope].inlined == function) return true;
  return false;
}

// Functions that were inlined and lead to themselves by way of others.
std::vector<bool> Unfolder::find_circular(const Thread& unfolded) const {
  std::vector<std::vector<uint32_t>> callees(p_.functions.size());
  for (const CallCount& c : unfolded.calls)
    if (uint32_t from = caller(p_.sites[c.site]); from != none) callees[from].push_back(c.callee);
  base::Components components(callees);
  std::vector<bool> circular(p_.functions.size());
  for (const Scope& s : p_.scopes) circular[s.inlined] = components.all()[components.of(s.inlined)].size() > 1;
  return circular;
}

void Unfolder::take_totals_from_paths(Thread& unfolded, const std::vector<bool>& functions) const {
  const std::vector<Context>& contexts = unfolded.contexts;
  auto add_up = [&](Cycles Context::* own) {
    std::vector<Cycles> all;
    for (const Context& c : contexts) all.push_back(c.*own);
    return with_descendants(contexts, std::move(all));
  };
  std::vector<Cycles> total = add_up(&Context::self), os_time = add_up(&Context::os_time),
                      waited = add_up(&Context::waited);
  std::unordered_map<uint64_t, CallCount*> calls;
  std::unordered_map<uint32_t, FunctionCount*> counts;
  auto key = [](uint32_t site, uint32_t callee) { return uint64_t{site} << 32 | callee; };
  for (CallCount& c : unfolded.calls)
    if (functions[c.callee]) calls[key(c.site, c.callee)] = &c, c.total = c.os_time_total = c.waited_total = 0;
  for (FunctionCount& f : unfolded.functions)
    if (functions[f.function]) counts[f.function] = &f, f.total = f.os_time_total = f.waited_total = 0;
  auto add = [&](auto& to, uint32_t path) {
    to.total += total[path], to.os_time_total += os_time[path], to.waited_total += waited[path];
  };
  visit_outermost(contexts, [&](uint32_t path) {
    const Context& c = contexts[path];
    if (auto f = counts.find(c.function); f != counts.end()) add(*f->second, path);
    if (auto call = calls.find(key(c.site, c.function)); call != calls.end()) add(*call->second, path);
  });
}

std::vector<Unfolder::Sum> Unfolder::add_up_scopes(const Thread& t) const {
  std::vector<Sum> sums(p_.scopes.size());
  auto part = parts_.begin();
  for (const BlockCount& c :
       t.blocks) {  // in the order of blocks, but for those that a thread is made of (`[other threads]`)
    if (part != parts_.begin() && std::prev(part)->block >= c.block)
      part = std::ranges::lower_bound(parts_, c.block, {}, &Part::block);
    while (part != parts_.end() && part->block < c.block) ++part;
    for (; part != parts_.end() && part->block == c.block; ++part)
      sums[part->scope].self += c.count * part->cycles + (part->has_extra ? c.extra : 0);
  }
  for (const CallCount& c : t.calls)
    if (uint32_t scope = p_.sites[c.site].scope; scope != none)
      sums[scope].total += c.total, sums[scope].os_time_total += c.os_time_total,
          sums[scope].waited_total += c.waited_total;
  for (const ScopeCount& c : t.scopes) sums[c.scope].entries += c.entries;
  return sums;
}

uint32_t Unfolder::scope_of(uint32_t block) const {
  auto part = std::ranges::lower_bound(parts_, block, {}, &Part::block);
  return part != parts_.end() && part->block == block ? part->scope : none;
}

// The call paths of a thread, one after the other with the inlined calls that they need.
class Unfolder::Paths {
 public:
  Paths(const Unfolder& u, const Thread& t, Thread& out) : u_(u), t_(t), out_(out), new_of_(t.contexts.size()) {}

  void add() {
    for (uint32_t i = 0; i < t_.contexts.size(); i++) {
      Context c = t_.contexts[i];
      if (c.parent != none) c.parent = at(c.parent, c.site == none ? none : u_.p_.sites[c.site].scope);
      new_of_[i] = static_cast<uint32_t>(out_.contexts.size());
      out_.contexts.push_back(c);
    }
  }

  void move_leaves() {
    for (LeafCount leaf : t_.leaves) {
      uint32_t node = at(leaf.context, u_.scope_of(leaf.block));
      move(leaf.context, node, leaf.samples);
      leaf.context = node;
      out_.leaves.push_back(leaf);
    }
  }

  // The self times of exact paths. That of the longest gets what the others have left, so that sums stay.
  void spread(const std::vector<Sum>& sums) {
    std::vector<std::vector<Share>> shares(u_.p_.functions.size());
    for (uint32_t i = 0; i < sums.size(); i++)
      if (sums[i].self || sums[i].entries) shares[u_.p_.scopes[i].function].push_back({i, sums[i].self, sums[i].entries});
    std::vector<Cycles> whole(u_.p_.functions.size());
    std::vector<uint32_t> order, last(u_.p_.functions.size(), none);
    for (uint32_t i = 0; i < t_.contexts.size(); i++) {
      uint32_t function = t_.contexts[i].function;
      if (!t_.contexts[i].self || shares[function].empty()) continue;
      whole[function] += t_.contexts[i].self;
      order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return t_.contexts[i].self; });
    for (uint32_t i : order) last[t_.contexts[i].function] = i;
    const size_t most = 4 * t_.contexts.size() + 100'000;  // (a function may have thousands of them, and be on many paths)
    for (uint32_t i : order) {
      uint32_t function = t_.contexts[i].function;
      if (out_.contexts.size() < most || last[function] == i)
        spread(i, shares[function], whole[function], last[function] == i);
    }
  }

 private:
  struct Share {
    uint32_t scope;
    Cycles self, entries;  // that are left
    Cycles all_self = self, all_entries = entries;
  };

  // The context of an inlined call in the function of a context.
  uint32_t at(uint32_t context, uint32_t scope) {
    if (scope == none || u_.p_.scopes[scope].function != t_.contexts[context].function) return new_of_[context];
    auto [known, is_new] = inlined_.try_emplace(uint64_t{context} << 32 | scope);
    if (!is_new) return known->second;
    const Scope& s = u_.p_.scopes[scope];
    uint32_t parent = at(context, s.parent);
    out_.contexts.push_back({parent, s.site, s.inlined});
    return inlined_[uint64_t{context} << 32 | scope] = static_cast<uint32_t>(out_.contexts.size() - 1);
  }

  void move(uint32_t context, uint32_t to, Cycles self) {
    Context& from = out_.contexts[new_of_[context]];
    self = std::min(self, from.self);
    from.self -= self;
    out_.contexts[to].self += self;
  }

  void spread(uint32_t context, std::vector<Share>& shares, Cycles whole, bool is_last) {
    auto part = [&](uint64_t of) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(of) * t_.contexts[context].self / whole);
    };
    for (Share& share : shares) {
      Cycles self = is_last ? share.self : std::min(share.self, part(share.all_self));
      uint64_t entries = is_last ? share.entries : std::min(share.entries, part(share.all_entries));
      if (!self && !entries) continue;
      share.self -= self, share.entries -= entries;
      uint32_t node = at(context, share.scope);
      move(context, node, self);
      out_.contexts[node].calls += entries;
    }
  }

  const Unfolder& u_;
  const Thread& t_;
  Thread& out_;
  std::vector<uint32_t> new_of_;                    // by context
  std::unordered_map<uint64_t, uint32_t> inlined_;  // by context and inlined call
};

Thread Unfolder::unfold(const Thread& t) const {
  std::vector<Sum> sums = add_up_scopes(t);
  Thread out;
  out.functions = t.functions, out.calls = t.calls;
  Paths paths(*this, t, out);
  paths.add();
  if (p_.run.sampling) paths.move_leaves();
  else paths.spread(sums);
  std::vector<uint32_t> count_of(p_.functions.size(), none);
  for (uint32_t i = 0; i < out.functions.size(); i++) {
    count_of[out.functions[i].function] = i;
    if (has_scopes_[out.functions[i].function]) out.functions[i].self_range = {};  // (it was that of the inlined ones, too)
  }
  for (CallCount& c : out.calls) {
    if (has_scopes_[c.callee]) c.self_range = {};
    if (!is_inside(c.callee, p_.sites[c.site].scope)) continue;
    // A call within the same function, as it was written.
    if (uint32_t own = count_of[c.callee]; own != none) {
      FunctionCount& f = out.functions[own];
      f.total -= c.total, f.os_time_total -= c.os_time_total, f.waited_total -= c.waited_total;
    }
    c.total = c.os_time_total = c.waited_total = 0;
  }
  // Places of one function may be inside each other by way of calls: all together took no longer than the thread.
  struct Left {
    Cycles total, os_time, waited;
  };
  std::unordered_map<uint32_t, Left> left;
  auto left_of = [&](uint32_t function) -> Left& {
    auto [known, is_new] = left.try_emplace(function, t.cycles, t.os_time, t.waited);
    if (uint32_t own = count_of[function]; is_new && own != none) {
      const FunctionCount& f = out.functions[own];
      known->second.total -= std::min(known->second.total, f.total);
      known->second.os_time -= std::min(known->second.os_time, f.os_time_total);
      known->second.waited -= std::min(known->second.waited, f.waited_total);
    }
    return known->second;
  };
  // The innermost come first: a scope's parent has a smaller number.
  for (uint32_t i = static_cast<uint32_t>(sums.size()); i-- > 0;) {
    const Scope& scope = p_.scopes[i];
    Sum& sum = sums[i];
    if (!sum.entries && !sum.self && !sum.total && !sum.os_time_total && !sum.waited_total) continue;
    sum.total += sum.self;
    if (uint32_t holder = count_of[scope.function]; holder != none) {
      // It runs inside that function, even where both call each other in a circle.
      const FunctionCount& f = t.functions[holder];
      sum.total = std::min(sum.total, f.total), sum.os_time_total = std::min(sum.os_time_total, f.os_time_total);
      sum.waited_total = std::min(sum.waited_total, f.waited_total);
      out.functions[holder].self -= std::min(out.functions[holder].self, sum.self);
    }
    if (scope.parent != none) {
      Sum& around = sums[scope.parent];
      around.total += sum.total, around.os_time_total += sum.os_time_total, around.waited_total += sum.waited_total;
    }
    CallCount call{.site = scope.site, .callee = scope.inlined, .calls = sum.entries, .self_range = {}};
    if (scope.function != scope.inlined && !is_inside(scope.inlined, scope.parent))
      call.total = sum.total, call.os_time_total = sum.os_time_total, call.waited_total = sum.waited_total;
    Left& room = left_of(scope.inlined);
    room.total -= call.total = std::min(call.total, room.total);
    room.os_time -= call.os_time_total = std::min(call.os_time_total, room.os_time);
    room.waited -= call.waited_total = std::min(call.waited_total, room.waited);
    out.calls.push_back(call);
    out.functions.push_back({.function = scope.inlined,
                             .calls = sum.entries,
                             .self = sum.self,
                             .self_range = {},
                             .total = call.total,
                             .os_time_total = call.os_time_total,
                             .waited_total = call.waited_total,
                             .inlined = sum.entries});
  }
  add_up(out.functions, &FunctionCount::function, [](FunctionCount& sum, const FunctionCount& c) {
    sum.calls += c.calls, sum.self += c.self, sum.total += c.total, sum.inlined += c.inlined;
    sum.os_time_total += c.os_time_total, sum.waited_total += c.waited_total;
  });
  std::vector<bool> circular = find_circular(out);
  if (!out.contexts.empty()) take_totals_from_paths(out, circular);
  else
    for (FunctionCount& f : out.functions) f.is_estimate = circular[f.function];
  return out;
}

}  // namespace weir::profile
