// What the exact profile does in line: times of calls, in frames and of leaves.
#pragma once

#include "instrument/inline_code.h"

namespace weir::count {

// Operations of its own.
enum OwnOp : int64_t {
  BeginLeaf,  // a call of a function that calls nobody begins: it needs no frame
  EndLeaf,    // … and has returned
};

const instrument::InlineCode& inline_code();

}  // namespace weir::count
