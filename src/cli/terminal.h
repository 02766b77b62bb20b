// Where a report goes: its width and colours, and a pager where a person reads.
#pragma once

#include <string>
#include <string_view>

#include "report/output.h"

namespace weir::cli {

// Of stdout. Colour: `auto` is a terminal without NO_COLOR; `always`, `never`. Width: COLUMNS, or the terminal's; 0 where it
// is neither.
report::Style style_of_stdout(report::Format format, const std::string& colour);

// Text for stderr, behind the prefix of messages.
report::Style style_of_messages();

// Takes a report to stdout. As git does: where that is a terminal, through WEIR_PAGER, PAGER or less, until this goes.
class Screen {
 public:
  explicit Screen(bool pager) : wanted_(pager) {}
  Screen(const Screen&) = delete;
  ~Screen();
  bool write(std::string_view text);  // false: it cannot be written

 private:
  void start_pager();
  bool wanted_;
  int pager_ = -1;  // its process
};

}  // namespace weir::cli
