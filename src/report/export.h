// `weir export`: a profile as other tools read it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/write_file.h"
#include "store/reader.h"

namespace weir::report {

inline constexpr const char* formats[] = {"callgrind", "folded", "pprof", "speedscope", "firefox", "dot",
                                          "svg",       "csv",    "json",  "llvm",       "bolt"};

// Writes the selected threads of a profile to `path` ("-": standard output), in one of these formats.
Result<> write_export(const store::Reader& reader, const std::string& format, const std::string& path);

Result<> write_output(const std::string& path, const Writer& write);  // the same, of what `write` gives

Result<> export_callgrind(const store::Reader& reader, const Sink& sink);
Result<> export_folded(const store::Reader& reader, const Sink& sink);
Result<> export_pprof(const store::Reader& reader, const Sink& sink);
Result<> export_firefox(const store::Reader& reader, const Sink& sink);
Result<> export_dot(const store::Reader& reader, const Sink& sink);
Result<> export_svg(const store::Reader& reader, const Sink& sink);
Result<> export_csv(const store::Reader& reader, const Sink& sink);
Result<> export_json(const store::Reader& reader, const Sink& sink);
Result<> export_llvm(const store::Reader& reader, const Sink& sink);
Result<> export_bolt(const store::Reader& reader, const Sink& sink);
Result<> export_speedscope(const store::Reader& reader, const Sink& sink);

// The calling-context tree, with the threads laid over each other, unless they are told apart. Parents come before their children.
struct Path {
  uint32_t parent = store::none;  // index
  uint32_t function = store::none;
  uint32_t site = store::none;  // in the parent; none where sites are not told apart
  uint64_t calls = 0;
  store::Cycles self = 0, os_time = 0;
  uint32_t thread = store::none;  // of several the first
  store::Cycles waited = 0;
  std::vector<store::LeafRow> leaves =
      {};  // of a sampled profile, where they are asked for: where in the function it was sampled
};
struct Apart {
  bool sites = false, threads = false, leaves = false;
};
Result<std::vector<Path>> merged_paths(const store::Reader& reader, Apart apart);

// Whole stacks, for formats that hold such: those of a recursion are as large as the square of its depth, so of a deep one the middle is
// left out, which is said.
class Stacks {
 public:
  explicit Stacks(const std::vector<Path>& paths);
  // From this path out to its root; `none` is in the place of those that are left out.
  std::vector<uint32_t> of(uint32_t path) const;
  uint32_t left_out(uint32_t path) const { return depths_[path] - std::min(depths_[path], longest); }
  uint32_t most_left_out() const { return most_left_out_; }
  static std::string gap_name(uint32_t left_out) { return fmt::format("[{} frames left out]", left_out); }

 private:
  static constexpr uint32_t longest = 1000, outer = longest / 2;
  const std::vector<Path>& paths_;
  std::vector<uint32_t> depths_;
  std::vector<uint32_t> outer_;  // the last of the outer frames that are kept, of deep ones
  uint32_t most_left_out_ = 0;
};

// By thread, its paths depth first: what a function called lies side by side.
std::unordered_map<uint32_t, std::vector<uint32_t>> depth_first(const std::vector<Path>& paths);

}  // namespace weir::report
