// The descriptors that are known of one CPU, by what an instruction looks like, and the file that keeps them for later runs.
//
// LLVM takes a microsecond or two for an instruction, and a millisecond to be loaded. Programs are made of the same
// few thousand instructions over and over, so a run that finds them in the file needs no LLVM.
//
// The file, in $XDG_CACHE_HOME/weir (~/.cache/weir), is a head and the memory of this class as it is: the hash table, then the pool. It is
// written to a temporary file and renamed. One that is not as it should be, or that another module or (where the CPU is
// "this host") another CPU made, is as good as none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cost/descriptor.h"

namespace weir::cost {

// The bytes of an instruction, with everything that no model looks at made the same (see key_of() in model.cc). The last byte
// is the length, so no key is zero.
struct Key {
  uint64_t low = 0, high = 0;

  friend bool operator==(Key, Key) = default;
};

class Memo {
 public:
  struct Entry {
    Key key;
    Descriptor descriptor;
  };

  // Null where it is not known.
  const Descriptor* find(Key key) const;
  const Descriptor& insert(Key key, const Descriptor& d);
  std::span<const Figure> figures(const Descriptor& d) const { return {pool_.data() + d.first, d.figures()}; }
  std::vector<Figure>& pool() { return pool_; }
  size_t size() const { return size_; }

  // False, and nothing has changed, where there is no file that fits. `maker` says who made it, and of what.
  bool load(const std::string& path, uint64_t maker, Cpu& cpu);
  // Quietly does nothing where it cannot.
  void save(const std::string& path, uint64_t maker, const Cpu& cpu) const;

 private:
  size_t slot(Key key) const;
  void grow();

  std::vector<Entry> table_;  // open addressing, at most half full; its size is a power of two
  std::vector<Figure> pool_;
  size_t size_ = 0;
};

// Of any bytes: what files and keys of this directory are told apart by.
uint64_t checksum_of(std::span<const std::byte> bytes, uint64_t seed = 0);

// Where such files are, for us alone; empty: nowhere.
std::string cache_directory();

}  // namespace weir::cost
