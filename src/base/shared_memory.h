// Shared memory: a file without a name, mapped here to be written. Its size is fixed; and where Weir alone writes, nobody can ever
// open it, or map it, to do so, whoever has the right to look into Weir.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/result.h"

namespace weir {

struct SharedMemory {
  enum class Writer { Weir, Both };
  Fd file;
  Mapping mapping;

  static Result<SharedMemory> create(const char* name, size_t size, Writer writer = Writer::Weir);
  template <class T>
  T* as(size_t offset = 0) const {
    return reinterpret_cast<T*>(mapping.data() + offset);
  }
};

inline Result<SharedMemory> SharedMemory::create(const char* name, size_t size, Writer writer) {
  SharedMemory m;
  m.file = Fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!m.file) return fail_errno("shared memory {}", name);
  if (ftruncate(m.file.get(), static_cast<off_t>(size)))
    return fail_errno("shared memory {} (ulimit -f must allow it)", name);
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m.file.get(), 0);
  if (p == MAP_FAILED) return fail_errno("shared memory {} (ulimit -v must allow {} MiB)", name, size >> 20);
  m.mapping = Mapping(p, size);
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (writer == Writer::Weir ? F_SEAL_FUTURE_WRITE : 0);
  if (fcntl(m.file.get(), F_ADD_SEALS, seals) || fchmod(m.file.get(), 0600)) return fail_errno("shared memory {}", name);
  return m;
}

// The next byte from `at` on that is in a page that was ever written to, or the end.
inline uint64_t next_in_use(const SharedMemory& memory, uint64_t at) {
  off_t next = lseek(memory.file.get(), static_cast<off_t>(at), SEEK_DATA);
  return next < 0 ? memory.mapping.size() : static_cast<uint64_t>(next);
}

}  // namespace weir
