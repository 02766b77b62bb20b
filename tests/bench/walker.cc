// The walker, compiled as in the sampler.
#include "../unit/guarded_memory.h"
#include "rt/walk.h"

namespace weir::rt {

template class Walk<GuardedMemory>;
template Sample restore(Trace&, CallTree&, const Code&, const Stack&, const State&, const Options&, GuardedMemory&);
template Difference verify(Trace&, const Sample&, const Code&, const Stack&, const State&, const Options&, GuardedMemory&);

}  // namespace weir::rt
