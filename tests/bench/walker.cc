// The walker, compiled as in the sampler, and reading as it does there.
#include "rt/walk.h"

#include <sys/uio.h>

#include "rt/own_memory.h"

namespace weir::rt {

template class Walk<OwnMemory>;
template Sample restore(Trace&, const Code&, const Stack&, const State&, const Options&, OwnMemory&, uint64_t);
template Difference verify(Trace&, const Sample&, const Code&, const Stack&, const State&, const Options&, OwnMemory&);

bool copy_from(uint32_t pid, uint64_t address, void* to, uint64_t size) {
  iovec local{to, size}, remote{reinterpret_cast<void*>(address), size};
  return process_vm_readv(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

}  // namespace weir::rt
