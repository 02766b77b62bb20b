#include "profile/processes.h"

#include <unordered_map>

namespace weir::profile {

// Most children end before their parents. A process that executed others is several programs: the one that ran then.
void find_parents(std::vector<Process>& processes, std::span<const uint32_t> parents) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_pid;
  for (uint32_t i = 0; i < processes.size(); i++) by_pid[processes[i].pid].push_back(i);
  for (uint32_t i = 0; i < processes.size(); i++) {
    auto found = parents[i] ? by_pid.find(parents[i]) : by_pid.end();
    if (found == by_pid.end()) continue;
    Process& child = processes[i];
    for (uint32_t k : found->second) {
      bool ran = processes[k].started <= child.started && child.started <= processes[k].ended;
      if (k != i && (ran || child.parent == none)) child.parent = k;
    }
  }
}

}  // namespace weir::profile
