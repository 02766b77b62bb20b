// A process whose command line, as /proc/PID/cmdline has it, is 1 TiB of zeros.
#pragma once
#include <linux/prctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static inline int have_endless_arguments(void) {
  const unsigned long size = 1ul << 40;
  char* much = (char*)mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  FILE* file = fopen("/proc/self/stat", "r");
  char text[4096] = "";
  unsigned long fields[53] = {0};
  if (much == (char*)MAP_FAILED || !file || !fgets(text, sizeof text, file)) return -1;
  fclose(file);
  char* at = strrchr(text, ')') + 3;  // behind it are the state, and field 4
  for (int i = 4, n; i < 53 && sscanf(at + 1, "%lu%n", &fields[i], &n) >= 0; i++)
    at = strchr(at + 1, ' ') ? strchr(at + 1, ' ') : at;
  struct prctl_mm_map map;
  memset(&map, 0, sizeof map);
  map.start_code = fields[26], map.end_code = fields[27], map.start_stack = fields[28];
  map.start_data = fields[45], map.end_data = fields[46], map.start_brk = map.brk = fields[47];
  map.arg_start = (unsigned long)much, map.arg_end = map.arg_start + size, map.env_start = fields[50],
  map.env_end = fields[51];
  map.exe_fd = ~0u;
  return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}
