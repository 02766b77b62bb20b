#include "base/zip.h"

#include <zlib.h>

namespace weir {

uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Gzip::Gzip(Sink sink) : sink_(std::move(sink)), stream_(new z_stream{}) {
  constexpr int gzip = 16, window = 15, memory = 8;
  state_ = deflateInit2(stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, window + gzip, memory, Z_DEFAULT_STRATEGY);
}

Gzip::~Gzip() { deflateEnd(stream_.get()); }

void Gzip::add(std::string_view data) {
  constexpr size_t most = 1 << 30;  // (zlib's sizes have 32 bits)
  for (; !data.empty(); data.remove_prefix(std::min(data.size(), most))) deflate(data.substr(0, most), Z_NO_FLUSH);
}

Result<> Gzip::finish() {
  deflate("", Z_FINISH);
  if (state_ != Z_STREAM_END) return fail("zlib: cannot compress ({})", zError(state_));
  return {};
}

void Gzip::deflate(std::string_view data, int flush) {
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream_->avail_in = static_cast<uInt>(data.size());
  do {
    if (state_ != Z_OK) return;
    char out[65536];
    stream_->next_out = reinterpret_cast<Bytef*>(out);
    stream_->avail_out = sizeof out;
    state_ = ::deflate(stream_.get(), flush);
    sink_({out, sizeof out - stream_->avail_out});
  } while (stream_->avail_out == 0);
  if (state_ == Z_BUF_ERROR) state_ = Z_OK;  // (there was nothing left to do)
}

Result<std::string> gzipped(std::string_view data) {
  std::string result;
  Gzip gzip([&](std::string_view text) { result += text; });
  gzip.add(data);
  TRY_VOID(gzip.finish());
  return result;
}

}  // namespace weir
