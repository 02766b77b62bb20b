// The names of the system calls of x86-64 Linux, as the kernel's headers have them.
#pragma once

#include <cstdint>
#include <string>

namespace weir::profile {

std::string os_call_name(uint32_t number);  // "read"; "syscall 9999" for one that the headers do not know

}  // namespace weir::profile
