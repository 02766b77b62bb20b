// `weir report --check`: what must hold in every profile, whatever ran (docs/report.md has the list). Tests ask it of each profile that
// they make.
#pragma once

#include "report/output.h"
#include "store/reader.h"

namespace weir::report {

// False: something does not hold, and has been told.
Result<bool> check(store::Reader& reader, Output& out);

}  // namespace weir::report
