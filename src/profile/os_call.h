// The names of the system calls of x86-64 Linux, as the kernel's headers have them.
#pragma once

#include <cstdint>
#include <string>

namespace weir::profile {

// Page faults are told as OS calls, of a number that no system call has.
inline constexpr uint32_t page_fault = UINT32_MAX - 1;

std::string os_call_name(uint32_t number);  // "read"; "syscall 9999" for one that the headers do not know

}  // namespace weir::profile
