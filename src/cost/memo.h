// The descriptors that are known of one CPU, by what an instruction looks like, and the file that keeps them for later runs.
//
// LLVM takes half a microsecond for an instruction, and a millisecond to be loaded. Programs are made of the same few
// thousand instructions over and over, so a run that finds them in the file needs no LLVM.
//
// The file, in $XDG_CACHE_HOME/weir (~/.cache/weir), is a head and a memo as it lies in memory: the hash table, then the pool. It is
// mapped, and read where it is asked: head and entries have checksums of their own. It is written to a temporary file and
// renamed. What is not as it should be, or was made by another module or (where the CPU is "this host") on another CPU, is as
// good as none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/cache.h"
#include "base/fd.h"
#include "cost/descriptor.h"

namespace weir::cost {

// The bytes of an instruction, with everything that no model looks at made the same (see Canonical in model.cc). The last
// byte is the length, so no key is zero.
struct Key {
  uint64_t low = 0, high = 0;

  friend bool operator==(Key, Key) = default;
};

struct Entry {
  Key key;
  Descriptor descriptor;
  uint32_t checksum = 0;  // of the entry and its figures; in files only
};

// What is known in this run.
class Memo {
 public:
  const Descriptor* find(Key key) const;  // null: not known
  // A new one, whose figures are the last of the pool.
  const Descriptor& insert(Key key, const Descriptor& d);
  // A copy, with its figures.
  const Descriptor& insert(Key key, Descriptor d, std::span<const Figure> figures);

  std::span<const Figure> figures(const Descriptor& d) const { return {pool_.data() + d.first, d.figures()}; }
  std::vector<Figure>& pool() { return pool_; }
  size_t size() const { return size_; }
  std::span<const Entry> table() const { return table_; }

 private:
  void grow();

  std::vector<Entry> table_;  // open addressing, at most half full; its size is a power of two
  std::vector<Figure> pool_;
  size_t size_ = 0;
};

// What earlier runs have left.
class MemoFile {
 public:
  // `maker` says who wrote it, and of what. False, and the file is empty: there is none that fits.
  bool open(const std::string& path, uint64_t maker, Cpu& cpu);
  // Copies an entry to the memo; null: it is not in the file, or not sound.
  const Descriptor* take(Key key, Memo& memo) const;
  // Writes a file with what is in this one and in the memo. Quietly does nothing where it cannot.
  void save(const std::string& path, uint64_t maker, const Cpu& cpu, Memo memo) const;

 private:
  bool is_sound(const Entry& e) const;

  Mapping file_;
  std::span<const Entry> table_;
  std::span<const Figure> pool_;
  size_t resources_ = 0;
};

}  // namespace weir::cost
