// Twins: addresses of code that have the same low 32 bits.
//
// The table knows an address by its low half. Where code lies, or may come to lie, at two addresses that differ in the upper half alone, the
// entry of that low half stays empty: whoever goes there misses, and the runtime looks the whole address up in a second table, by hash
// (rt::TwinTable), before it asks. A twin costs some tens of nanoseconds each time, and nothing where there is none.
#pragma once

#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "base/shared_memory.h"
#include "instrument/tool.h"
#include "rt/abi.h"

namespace weir::engine {

// Low halves: [begin, end) of 2^32.
struct LowRange {
  uint64_t begin, end;
};
// Those of a range: one, or two where it passes a multiple of 4 GiB, or all.
std::vector<LowRange> low_halves(AppRange range);
bool share_low_halves(AppRange a, AppRange b);

class Twins {
 public:
  static Result<Twins> create();
  Result<Twins> copy() const;

  // Memory that is executable, or was. Returns the low halves that have become shared.
  std::vector<LowRange> add(AppRange range);
  // … and is no more, for sure. Returns those that are not shared any more.
  std::vector<LowRange> remove(AppRange range);
  bool covers(AppRange range) const;
  // Would it share no low half?
  bool has_room_for(AppRange range) const;
  const std::vector<AppRange>& code() const { return code_; }  // by address; neighbours are joined

  bool is_shared(AppPc pc) const { return !shared_.empty() && is_in_shared(pc.value & 0xffffffff); }
  bool is_shared(AppRange range) const;
  // As entries of the table of a version: of addresses that are shared.
  CachePc find(AppPc pc, instrument::Version version) const;
  void enter(AppPc pc, instrument::Version version, CachePc to);
  // Takes out all entries of these low halves.
  struct Entry {
    AppPc pc;
    instrument::Version version;
    CachePc to;
  };
  std::vector<Entry> take(LowRange low);

  int file() const { return memory_.file.get(); }

 private:
  rt::TwinTable* table() const { return memory_.as<rt::TwinTable>(); }
  rt::Twin* place_of(uint64_t key) const;
  bool is_in_shared(uint64_t low) const;
  std::vector<LowRange> shared_with(AppRange range) const;
  std::vector<LowRange> find_shared() const;
  void grow();

  std::vector<AppRange> code_;
  std::vector<LowRange> shared_;  // in order, joined
  SharedMemory memory_;
  size_t used_ = 0;  // places
};

}  // namespace weir::engine
