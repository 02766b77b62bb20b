// The classes of OS calls, as the runtime has them.

#include "tools/count/count.h"

namespace weir::count {

runtime::OsClass os_class(uint32_t number) {
  static constexpr runtime::OsClass classes[] = {
#define OS_CALL(number, name, os_class, fixed, per_page, by_result) runtime::OsClass::os_class,
#include "tools/count/os_calls.inc"
#undef OS_CALL
  };
  return number < std::size(classes) ? classes[number] : runtime::OsClass::Timed;
}

}  // namespace weir::count
