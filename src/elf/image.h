// An ELF file as the engine needs it: where its functions begin and end, found on demand and fast.
//
// The bounds of a function come from .eh_frame_hdr (a sorted table, searched where it lies), then from symbols (read when
// first needed); what neither knows has no bounds. Every byte of the file is read through checks: a broken file gives
// fewer answers, never a wrong access.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"

namespace weir::elf {

// An address as the file has it (p_vaddr): the address in memory less the load bias.
using Vaddr = Address<struct VaddrTag>;
using VRange = Range<Vaddr>;

// A program header. Its part of the file is inside the file, and its addresses do not wrap.
struct Segment {
  uint32_t type, flags;
  uint64_t offset, file_size, memory_size;
  Vaddr vaddr;
  uint64_t align;
};

// Tables are read on first need, from const functions too: an Image is for one thread at a time.
class Image {
 public:
  // From an open file (it may be deleted or renamed on disk).
  static Result<std::unique_ptr<Image>> open(Fd file, std::string path);
  // From bytes that are in memory already: the vDSO.
  static Result<std::unique_ptr<Image>> from_memory(std::vector<std::byte> bytes, std::string path);
  ~Image();

  const std::string& path() const;
  std::span<const Segment> segments() const;
  std::span<const std::byte> bytes() const;  // the whole file
  timespec modified() const;                 // the file's date, when it was opened,
  timespec changed() const;                  // … and the kernel's own, which nobody can set
  std::string build_id() const;              // hexadecimal, empty where there is none
  // Linked with AddressSanitizer, whose shadow takes the addresses from 2 GiB on.
  bool uses_address_sanitizer() const;
  // The function that `v` is in: never empty, and inside one executable segment. An FDE wins over a symbol; a symbol
  // without a size ends at the next one; an entry of a PLT is a function.
  std::optional<VRange> function_bounds(Vaddr v) const;
  // Is what begins at `v` a part of a function that stands elsewhere, and jumps there? Its symbol says so, or, if it has none, its unwind
  // rules, which are those of a function under way.
  bool is_part(Vaddr v) const;
  // Does a symbol say that a function begins at `v`?
  bool has_symbol(Vaddr v) const;
  // Does an FDE have it?
  bool has_frame(Vaddr v) const;
  // Where none is: the begin of the next one, or the end of the code.
  Vaddr next_function(Vaddr v) const;

 private:
  struct Parts;
  explicit Image(std::unique_ptr<Parts>);
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::elf
