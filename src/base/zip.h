// zlib, as far as Weir needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/write_file.h"

struct z_stream_s;

namespace weir {

uint32_t crc32_of(std::span<const std::byte> bytes);

// A gzip file, without name and time: the same bytes for the same data. It goes to `sink` as it grows.
class Gzip {
 public:
  explicit Gzip(Sink sink);
  ~Gzip();
  void add(std::string_view data);
  Result<> finish();

 private:
  void deflate(std::string_view data, int flush);
  Sink sink_;
  std::unique_ptr<z_stream_s> stream_;
  int state_;  // zlib's last word
};

Result<std::string> gzipped(std::string_view data);

}  // namespace weir
