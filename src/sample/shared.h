// The memory that Weir shares with the processes that it samples. See rt/sample.h.
#pragma once

#include <span>
#include <vector>

#include "base/shared_memory.h"
#include "rt/sample.h"
#include "sample/call_tree.h"

namespace weir::sample {

class Shared {
 public:
  static Result<Shared> create();

  // What a process has to map.
  struct File {
    int fd;
    uint64_t address, size;
    int protection;
  };
  std::vector<File> files() const;

  const rt::SamplerHeader& header() const { return *code_.as<rt::SamplerHeader>(); }
  rt::SampleControl& control() const { return *slots_.as<rt::SampleControl>(); }
  rt::SampleSlot& slot(uint32_t place) const { return *slots_.as<rt::SampleSlot>(place * rt::sample_slot_stride); }
  // The call paths of a slot, which the target cannot see.
  CallTree tree(uint32_t place) const;
  static uint64_t address_of_text() { return rt::sample_slots_base + offsetof(rt::SampleControl, text); }

  // Puts bytes behind all that the tables hold, and says where the target sees them; 0: there is no room. For any thread.
  uint64_t append(std::span<const std::byte> bytes);
  // What the target sees there.
  const std::byte* at(uint64_t address) const { return tables_.mapping.data() + (address - rt::sample_tables_base); }

  // The slot of a key, which it is given if it has none; 0: all are taken.
  uint32_t slot_of(uint64_t key);
  // Gives a slot to the key, and memory to what its first samples will touch: that takes longer than they do.
  void warm(uint64_t key);
  // For another thread.
  void free(uint32_t place);

 private:
  SharedMemory code_, tables_, slots_;
  Mapping trees_;       // shared with the guardian alone
  uint64_t used_ = 64;  // of the tables: no address is 0
};

}  // namespace weir::sample
