// Counts row by row, and those that cannot be. Weir writes none; but a profile must be readable whatever is in it, so that a bad row
// costs nothing but itself.
#include "base/text.h"
#include "store/reader.h"

namespace weir::store {

Result<> Reader::counts_of_functions(const Each<FunctionCounts>& each) const {
  Statement rows = db_.prepare(
      "SELECT function, thread, calls, self, total, os_calls, os_time, os_time_total, waited, waited_total, "
      "self_min, self_max FROM function_count ORDER BY function, thread");
  while (rows.next())
    each({rows.u32(0), rows.u32(1), rows.figure(2), rows.figure(3), rows.figure(4), rows.figure(5), rows.figure(6),
          rows.figure(7), rows.figure(8), rows.figure(9), rows.figure_if_any(10), rows.figure_if_any(11)});
  return rows.end();
}

Result<> Reader::counts_of_calls(const Each<CallCounts>& each) const {
  Statement rows = db_.prepare(
      "SELECT callee, site, thread, calls, total, os_time_total, waited_total, self_min, self_max FROM call_count "
      "ORDER BY callee, site, thread");
  while (rows.next())
    each({rows.u32(0), rows.u32(1), rows.u32(2), rows.figure(3), rows.figure(4), rows.figure(5), rows.figure(6),
          rows.figure_if_any(7), rows.figure_if_any(8)});
  return rows.end();
}

Result<> Reader::counts_of_blocks(const Each<BlockCounts>& each) const {
  Statement rows = db_.prepare(
      "SELECT c.block, b.function, c.thread, c.count, c.extra, b.instructions, b.cycles FROM block_count c "
      "LEFT JOIN block b ON b.id = c.block ORDER BY c.block, c.thread");
  while (rows.next())
    each({rows.u32(0), rows.u32(1), rows.u32(2), rows.figure(3), rows.figure(4), rows.figure(5), rows.figure(6)});
  return rows.end();
}

Result<> Reader::sums_of_os_calls(const Each<OsSums>& each) const {
  Statement rows = db_.prepare("SELECT thread, sum(time), sum(coalesce(waited, 0)) FROM os_count GROUP BY thread");
  while (rows.next()) each({rows.u32(0), rows.figure(1), rows.figure(2)});
  return rows.end();
}

// (What is NULL in all rows, such as the calls of a sampled profile, is not known, and not bad.)
Result<std::string> Reader::bad_rows() const {
  std::string is_bad;
  for (const char* column : {"calls", "self", "total", "os_time_total", "waited_total"})
    is_bad += fmt::format("{}coalesce({} NOT BETWEEN 0 AND {}, 0)", is_bad.empty() ? "" : " OR ", column, most);
  TRY(uint64_t functions, db_.number(fmt::format("SELECT count(*) FROM function_count WHERE {} OR self IS NULL OR total "
                                                 "IS NULL",
                                                 is_bad)));
  TRY(uint64_t calls, db_.number(fmt::format("SELECT count(*) FROM call_count WHERE total IS NULL OR total NOT BETWEEN 0 "
                                             "AND {0} OR coalesce(calls NOT BETWEEN 0 AND {0}, 0)",
                                             most)));
  if (!functions && !calls) return "";
  return fmt::format(
      "{} of functions and {} of calls have figures that cannot be, which are left out of all sums "
      "(weir report --check names them)",
      counted(functions, "row"), counted(calls, "row"));
}

}  // namespace weir::store
