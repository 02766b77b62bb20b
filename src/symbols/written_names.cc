#include "symbols/written_names.h"

namespace weir::symbols {

bool is_written(std::string_view image) {
  return (image.starts_with('[') && image != "[vdso]") || image.starts_with("/memfd:");
}

void WrittenNames::read(pid_t pid, int64_t started, int perf_map, bool has_written) {
  if (!jit_dump_file_ && has_written) jit_dump_file_ = find_jit_dump(pid, started);
  read(perf_map, jit_dump_file_ ? jit_dump_file_.get() : -1);
}

void WrittenNames::read(int perf_map, int jit_dump) {
  if (perf_map >= 0) perf_map_.read(perf_map, *code_);
  if (jit_dump >= 0) jit_dump_.read(jit_dump, *code_);
}

}  // namespace weir::symbols
