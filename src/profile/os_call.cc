#include "profile/os_call.h"

#include <algorithm>
#include <iterator>

namespace weir::profile {
namespace {

struct Name {
  uint32_t number;
  const char* name;
};
// Made from <asm/unistd_64.h>, in the order of the numbers: {0, "read"}, …
constexpr Name names[] = {
#include <os_call_names.inc>
};
static_assert(std::ranges::is_sorted(names, {}, &Name::number));

}  // namespace

std::string os_call_name(uint32_t number) {
  if (number == page_fault) return "page fault";
  auto* found = std::ranges::lower_bound(names, number, {}, &Name::number);
  return found != std::end(names) && found->number == number ? found->name : "syscall " + std::to_string(number);
}

}  // namespace weir::profile
