// From counts by machine code to counts by functions: what was inlined is taken out of its callers, and is calls of functions.
//
// Call paths get the inlined calls that they lead through. What a path's function took itself is then told by samples; of exact paths it
// is spread over its inlined calls as that of all its calls is, as blocks are not counted by path.
//
// The self time of an inlined call is that of the parts of blocks in it; its total that, those of inlined calls in it, and those of the
// calls that are made in it. So all sums stay. A function that was inlined into itself, or into what it is called from within the same
// code, counts once. One that leads to itself by way of other functions takes its total from call paths; where there are none it is an
// estimate. What is not known by place stays with the function whose code it is: OS calls that it makes itself.
#pragma once

#include "profile/profile.h"

namespace weir::profile {

class Unfolder {
 public:
  explicit Unfolder(const Profile& profile);
  // Nothing was inlined, or nothing is known of it: both forms are the same.
  bool is_needed() const { return !p_.scopes.empty(); }
  // The functions, calls, contexts and leaves of the other form.
  Thread unfold(const Thread& thread) const;
  // The function that a site is in.
  uint32_t caller(const CallSite& site) const { return site.scope == none ? site.function : p_.scopes[site.scope].inlined; }

 private:
  struct Part {
    uint32_t block, scope, cycles;
    bool has_extra;  // that of the block
  };
  struct Sum {
    uint64_t entries = 0;
    Cycles self = 0, total = 0, os_time_total = 0, waited_total = 0;
  };
  class Paths;
  std::vector<Part> find_parts() const;
  std::vector<Sum> add_up_scopes(const Thread& thread) const;
  uint32_t scope_of(uint32_t block) const;  // of one instruction
  bool is_inside(uint32_t function, uint32_t scope) const;
  std::vector<bool> find_circular(const Thread& unfolded) const;
  void take_totals_from_paths(Thread& unfolded, const std::vector<bool>& functions) const;

  const Profile& p_;
  std::vector<Part> parts_;       // in inlined calls, in the order of blocks
  std::vector<bool> has_scopes_;  // by function
};

}  // namespace weir::profile
