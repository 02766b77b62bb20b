// Unwind tables of images: compiled once, kept on disk.
//
// (See elf/kept.h.) A table that is not as it should be is as good as none.
#pragma once

#include <functional>
#include <memory>

#include "elf/kept.h"
#include "unwind/compile.h"

namespace weir::unwind {

class Table {
 public:
  explicit Table(elf::Kept kept) : kept_(std::move(kept)), bytes_(kept_.bytes) {}
  explicit Table(std::vector<std::byte> made) : made_(std::move(made)), bytes_(made_) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // As is_table() and is_sound() want it: to be mapped into the target, or searched here.
  std::span<const std::byte> bytes() const { return bytes_; }
  const rt::TableHead& head() const { return *reinterpret_cast<const rt::TableHead*>(bytes_.data()); }

 private:
  elf::Kept kept_;               // the bytes are here,
  std::vector<std::byte> made_;  // or here
  std::span<const std::byte> bytes_;
};

// Gives the .debug_frame that belongs to the image, where it has one; only asked when a table is compiled.
using DebugFrame = std::function<std::vector<std::byte>()>;

// From disk, or compiled, and then kept. Tables with and without a `debug_frame` are different files.
Result<std::shared_ptr<const Table>> table_of(const elf::Image& image, const DebugFrame& debug_frame = {});

// Is everything in the table as the compiler makes it: sizes, order, numbers, checksum?
bool is_sound(std::span<const std::byte> table);

}  // namespace weir::unwind
