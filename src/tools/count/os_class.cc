// The classes of OS calls, as the runtime has them.

#include "tools/count/count.h"

namespace weir::count {

rt::OsClass os_class(uint32_t number) {
  static constexpr rt::OsClass classes[] = {
#define OS_CALL(number, name, os_class, fixed, per_page, by_result) rt::OsClass::os_class,
#include "rt/os_calls.inc"
#undef OS_CALL
  };
  return number < std::size(classes) ? classes[number] : rt::OsClass::Timed;
}

}  // namespace weir::count
