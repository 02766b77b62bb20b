// What was found out about an image, kept for later runs.
//
// A file an image in the user's cache directory, `KIND-BUILD_ID`, in front of its contents a head with what tells this image from another with the
// same build-id. It is trusted as much as the directory, which is ours alone, and checked none the less: a file that is not as it should be is
// as good as none. What was not used for a month goes.
#pragma once

#include <memory>
#include <optional>

#include "elf/image.h"

namespace weir::elf {

// The word in a file's head also says which version of its contents it has.
struct Kind {
  const char* name;
  uint64_t word;
};

struct Kept {
  Mapping file;                      // the bytes are here,
  std::unique_ptr<std::byte[]> own;  // or here
  std::span<const std::byte> bytes;
};

std::optional<Kept> read_kept(const Image& image, const Kind& kind);
// Whole or not at all. That it fails is no failure: the next run finds it out again.
void keep(const Image& image, const Kind& kind, std::span<const std::byte> bytes);
// From now on nothing is kept, and nothing is half written: the process is about to end, whatever its threads do.
void keep_no_more();

}  // namespace weir::elf
