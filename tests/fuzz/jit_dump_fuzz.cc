// Bytes as the records of a jitdump file, behind a header that is right: nothing is read past their end.
//
// Input: the records, in two parts, as a program appends to them.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "symbols/jit_dump.h"
#include "written_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("jitdump", MFD_CLOEXEC);
  constexpr uint32_t header[] = {0x4a695444, 1, 40, 62, 0, 1, 0, 0, 0, 0};
  CHECK(ftruncate(file, 0) == 0 && pwrite(file, header, sizeof header, 0) == sizeof header);
  weir::symbols::WrittenCode code;
  weir::symbols::JitDump dump;
  for (size_t end : {size / 2, size}) {
    CHECK(pwrite(file, data, end, sizeof header) == static_cast<ssize_t>(end));
    dump.read(file, code);
    check_written_code(code);
  }
  return 0;
}
