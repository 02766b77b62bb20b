#include "base/zip.h"

#include <zlib.h>

namespace weir {

uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Result<std::string> gzipped(std::string_view data) {
  z_stream stream{};
  constexpr int gzip = 16, window = 15, memory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window + gzip, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail("zlib: no memory");
  std::string result(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  int code = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) return fail("zlib: cannot compress {} bytes", data.size());
  return result;
}

}  // namespace weir
