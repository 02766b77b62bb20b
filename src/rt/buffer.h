// A buffer of records for each thread, for tools that ask for one (instrument::Services::buffer). Probes append to it in line
// (Op::BeginRecord, Op::EndRecord). Where there is no room the thread has it emptied before it goes on, so nothing is lost: by the tool's
// runtime part (Hooks::buffer_is_full), else by Weir (Tool::drain). What is in it when the thread ends, or is killed, Weir finds there.
#pragma once

#include <stdint.h>

namespace weir::rt {

// Of a thread. Records are whole below `next`.
struct BufferState {
  uint64_t next;   // where the next record goes
  uint64_t limit;  // the largest begins here at the latest; below `begin`: there is no buffer
  uint64_t begin;
};
constexpr uint32_t max_record = 256;  // bytes

}  // namespace weir::rt
