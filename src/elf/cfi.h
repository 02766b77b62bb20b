// Call frame information as it lies in a file: the records of .eh_frame and .debug_frame, every access checked.
//
// Who needs only the bounds of a function asks elf/eh_frame.h; who needs the rules runs the instructions that come from here.
// After the LSB Core Specification ("Exception Frames") and DWARF 5, section 6.4.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "elf/contents.h"

namespace weir::elf {

// ---- Encoded pointers: DW_EH_PE_* -----------------------------------------------------------------------------------
// The low four bits are a format, the next three what the value is relative to.
constexpr uint8_t absolute_pointer = 0x00, udata4_pointer = 0x03, data_relative_sdata4_pointer = 0x3b;
uint64_t read_format(Cursor& c, uint8_t encoding);
// An address. What it may be relative to besides itself is `data_base`, where there is one.
Vaddr read_pointer(Cursor& c, uint8_t encoding, std::optional<Vaddr> data_base);

// ---- Records --------------------------------------------------------------------------------------------------------
// What a group of functions shares.
struct Cie {
  uint8_t encoding = absolute_pointer;  // of addresses in FDEs
  uint64_t code_align = 0;
  int64_t data_align = 0;
  uint64_t return_register = 0;
  bool is_signal_frame = false;        // 'S': the caller was interrupted, it did not call
  bool has_augmentation_data = false;  // 'z': FDEs have a length and that many bytes in front of the instructions
  Cursor instructions{{}, {}};
};

// What is said of one function.
struct Fde {
  const Cie& cie;
  VRange range;  // not empty
  Cursor instructions;
};

class FrameSection {
 public:
  enum Kind { Eh, Debug };
  FrameSection(Bytes bytes, Vaddr address, Kind kind) : bytes_(bytes), address_(address), kind_(kind) {}

  // Ends at the record of length 0 (.eh_frame), at the first one whose length is wrong, or at the end. Returns how many FDEs
  // could not be read.
  size_t for_each(const std::function<void(const Fde&)>& take);

 private:
  struct Record;
  std::optional<Record> record_at(uint64_t offset) const;
  const Cie* cie_at(uint64_t offset);

  Bytes bytes_;
  Vaddr address_;
  Kind kind_;
  std::unordered_map<uint64_t, std::optional<Cie>> cies_;  // by offset
  uint64_t last_offset_ = UINT64_MAX;
  const Cie* last_ = nullptr;
};

}  // namespace weir::elf
