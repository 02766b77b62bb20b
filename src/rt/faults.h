// What is known of a thread's page faults, at the end of its block. Weir writes it, as the kernel tells Weir of them: the runtime has no part in it.
#pragma once

#include "rt/abi.h"

namespace weir::rt {

// By the program address of the instruction that touched the pages. The first record has what found no place.
struct FaultRecord {
  uint64_t pc, faults;
  uint64_t time, waited;  // cycles of the time stamp counter
};
constexpr uint32_t max_fault_records = 1 << 16;
struct FaultTable {
  uint64_t count;  // of records, the first included
  FaultRecord records[max_fault_records];
};
static_assert(faults_offset + sizeof(FaultTable) <= block_stride);

}  // namespace weir::rt
