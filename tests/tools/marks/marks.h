// What the tool `marks`, its part of the runtime and the programs that ask it agree on. (C, too.)
//
// The tool keeps a byte for each 8 bytes of the program's memory, in a region, with a bit for each that a system call, or a signal, has written. A program
// asks by a system call that no kernel knows:
//
//     syscall(MARKS, operation, a, b, c)
#pragma once

#include <stdint.h>

enum { MARKS = 0x7765 };
enum MarksOperation {
  MARKS_READ = 1,   // c[i] = is the byte a + i marked? for b bytes
  MARKS_CLEAR = 2,  // of [a, a + b)
  MARKS_REGION = 3, // *(MarksRange*)b = where region a is
  MARKS_COUNTS = 4, // *(MarksCounts*)a
  MARKS_LOG = 5,    // from here on what is told is noted: at most MARKS_LOG_SIZE. c, if any: a[0 … b) = what was noted, *c = how many
};

// The tool's regions.
enum { MARKS_SHADOW, MARKS_SHARED, MARKS_LOG_FILE, MARKS_OWN_FILE, MARKS_LOW, MARKS_REGIONS };

struct MarksRange {
  uint64_t begin, end;
};
struct MarksCounts {
  uint64_t told, unknown, without_begin;
};
enum { MARKS_LOG_SIZE = 1000, MARKS_BEGIN = 100, MARKS_END = 101 };
struct MarksNote {
  uint32_t time, use;  // ToldCall::Time; Use, or MARKS_BEGIN, MARKS_END
  uint64_t pc, number;
  int64_t result;
  uint64_t argument, begin, size;
};
