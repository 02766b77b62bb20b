// A mapped file that somebody truncates is a SIGBUS for whoever reads it. While one of these lives, pages that are gone
// read as zeros instead: a broken file, and those are expected. Other threads may have one besides the first.
#pragma once

namespace weir {

class TruncationGuard {
 public:
  TruncationGuard();
  ~TruncationGuard();
  TruncationGuard(const TruncationGuard&) = delete;
  TruncationGuard& operator=(const TruncationGuard&) = delete;
};

}  // namespace weir
