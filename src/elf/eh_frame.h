// Where functions begin and end according to the unwind tables.
#pragma once

#include <optional>
#include <vector>

#include "elf/contents.h"

namespace weir::elf {

class EhFrame {
 public:
  // Neither argument is copied: both outlive this.
  EhFrame(const Contents& contents, std::span<const Section> sections);

  struct Place {
    std::optional<VRange> function;  // the FDE's range that has the address
    VRange gap;                      // where there is none: the addresses around it that no FDE has
    std::optional<Vaddr> fde = {};   // where it is, if the file has the usual table
  };
  Place find(Vaddr v);
  // Where the first FDE begins.
  Vaddr first() const;
  // Does an FDE begin at `v` with rules of its own, as of a function that is under way there?
  bool is_under_way(Vaddr v);

 private:
  struct Record;
  void read_header(const Segment& header);
  void read_all(std::span<const Section> sections);
  Place find_in_table(Vaddr v);
  Place find_in_list(Vaddr v) const;
  std::optional<Record> record_at(Vaddr at) const;
  std::optional<VRange> range_of(Record& fde);  // reads it
  bool read_cie(Vaddr cie);

  const Contents& contents_;
  // .eh_frame_hdr's table, as it lies in the file: pairs of int32, relative to base_. Or, without one, every FDE, sorted.
  Bytes table_;
  Vaddr base_;
  std::vector<VRange> list_;
  std::optional<Vaddr> frames_;  // .eh_frame, by the header
  // What is wanted of the CIE used last: most files have one or two.
  Vaddr last_cie_;
  std::optional<uint8_t> last_encoding_;  // of pointers
  bool last_has_data_ = false;            // its FDEs have augmentation data
};

}  // namespace weir::elf
