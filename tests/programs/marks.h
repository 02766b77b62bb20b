// For programs that run under the tool `marks`, and ask it.
#pragma once
#include "posix.h"

#include "../tools/marks/marks.h"

static inline long ask_marks(long operation, const void* a, long b, const void* c) {
  return syscall(MARKS, operation, a, b, c);
}

// A region's first words: the third and those behind it are the program's to use. (The tool counts in the second one.)
static inline volatile uint64_t* region(int number) {
  struct MarksRange range = {0, 0};
  ask_marks(MARKS_REGION, (void*)(long)number, (long)&range, NULL);
  CHECK(range.begin && range.end > range.begin);
  return (volatile uint64_t*)range.begin;
}
static inline uint64_t region_size(int number) {
  struct MarksRange range = {0, 0};
  ask_marks(MARKS_REGION, (void*)(long)number, (long)&range, NULL);
  return range.end - range.begin;
}

// How many of these bytes are marked, and are those that are marked the first ones?
static inline int marked(const void* at, int size) {
  static __thread unsigned char marks[1 << 20];
  CHECK(size <= (int)sizeof marks);
  ask_marks(MARKS_READ, at, size, marks);
  int n = 0;
  for (int i = 0; i < size; i++) n += marks[i];
  for (int i = 0; i < n; i++) CHECK(marks[i]);
  return n;
}
static inline void clear_marks(const void* at, long size) { ask_marks(MARKS_CLEAR, at, size, NULL); }
