// The guardian's side: Weir was killed, its processes have ended, and what they counted is collected and written all the same.
//
// This process is a copy of Weir as it was when the guardian was last renewed. Spaces are those of then; code that was translated since was
// published; threads that have come since are in the roster, under larger serials than any of then; those that have gone since have
// left their blocks as they were (see free_slot).

#include "engine/server.h"

namespace weir::engine {

void Server::enroll(Process& p, uint32_t slot) {
  end_frames(p, slot);
  Guardian::Occupant& o = guardian_.roster()[slot];
  o.space = p.space->id();
  o.pid = static_cast<uint32_t>(p.pid);
  o.tid = static_cast<uint32_t>(slots_[slot].tid);
  o.parent = p.run.parent_pid;
  o.started = p.run.started;
  __atomic_store_n(&o.serial, ++last_serial_, __ATOMIC_RELEASE);
}

// Where there can be no new one (no processes are left to be had), the one that there is must do.
void Server::renew_guardian() {
  auto is_guardian = guardian_.renew();
  if (!is_guardian) return;
  if (*is_guardian) inherit();
  guardian_is_old_ = false;
  for (uint32_t slot : slots_.take_retained()) {
    guardian_.roster()[slot] = {};
    free_slot(slot);
  }
}

void Server::adopt_threads() {
  std::map<uint64_t, std::shared_ptr<Space>> spaces;
  for (auto& [pid, p] : processes_) spaces[p.space->id()] = p.space;
  for (const Slot& s : slots_)
    if (s.space) spaces[s.space->id()] = s.space;
  for (auto& [id, space] : spaces) space->adopt();
  for (uint32_t slot = 1; slot < rt::max_slots; slot++) {
    const Guardian::Occupant& o = guardian_.roster()[slot];
    if (o.serial <= last_serial_ || !spaces.contains(o.space)) continue;
    auto [p, is_new] = processes_.try_emplace(static_cast<pid_t>(o.pid));
    if (is_new) {
      p->second.pid = static_cast<pid_t>(o.pid);
      p->second.run.pid = o.pid;
      p->second.run.parent_pid = o.parent;
      p->second.run.started = o.started;
      p->second.space = spaces[o.space];
      if (auto parent = processes_.find(static_cast<pid_t>(o.parent)); parent != processes_.end()) {
        p->second.run.program = parent->second.run.program;
        p->second.run.command = parent->second.run.command;
      }
    }
    if (p->second.space->id() != o.space) continue;
    slots_.adopt(slot, static_cast<pid_t>(o.tid));
    p->second.slots.push_back(slot);
  }
}

void Server::inherit() {
  __atomic_store_n(&control()->weir_pid, 0, __ATOMIC_RELAXED);  // (there may be children that have said nothing yet)
  cut_short_ = true;
  (void)faults_.release();  // (its memory is not here)
  if (has_results()) {
    adopt_threads();
    for (auto& [pid, p] : processes_) report(p), p.memory.reset();
  }
  Outcome outcome{Outcome::Ended, cut_short_, guardian_.has_ended_any(), weir_pid_, stats_, user_time_,
                  system_time_,   no_faults_};
  auto written = options_.write(outcome);
  if (written) written = options_.tell(outcome);
  if (!written) say("{}", written.error().what);
  fflush(nullptr);
  _exit(0);
}

}  // namespace weir::engine
