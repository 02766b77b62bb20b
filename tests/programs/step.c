// step [-v] PROGRAM ARGS: runs a program natively, one instruction at a time, with ASLR off, and counts what it executed.
// Prints `instructions N` on stderr and, with -v, a line `address count` for each address. The oracle for icount.
// A repeated string instruction stops after each iteration; it counts once. One thread, no exec, no signals but its own.
#include "posix.h"
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

enum { SLOTS = 1 << 20 };
static struct entry { uint64_t address, count; } table[SLOTS];

static void count(uint64_t address) {
  size_t slot = address * 0x9e3779b97f4a7c15u >> 44;
  while (table[slot].count && table[slot].address != address) slot = (slot + 1) % SLOTS;
  table[slot].address = address, table[slot].count++;
}

static int repeats(pid_t child, uint64_t address) {
  unsigned char code[15] = {0};
  struct iovec to = {code, sizeof code}, from = {(void *)address, sizeof code};
  if (process_vm_readv(child, &to, 1, &from, 1, 0) < 1) from.iov_len = 4096 - address % 4096, process_vm_readv(child, &to, 1, &from, 1, 0);
  int rep = 0, i = 0;
  for (; i < 14; i++) {
    unsigned char c = code[i];
    if (c == 0xf2 || c == 0xf3) rep = 1;
    else if (c != 0x66 && c != 0x67 && (c & 0xf0) != 0x40) break;
  }
  return rep && ((code[i] >= 0xa4 && code[i] <= 0xa7) || (code[i] >= 0xaa && code[i] <= 0xaf));
}

static int by_address(const void *a, const void *b) {
  uint64_t x = ((struct entry *)a)->address, y = ((struct entry *)b)->address;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  int verbose = argc > 1 && !strcmp(argv[1], "-v"), status, number = 0;
  pid_t child = fork();
  if (child == 0) {
    personality(ADDR_NO_RANDOMIZE);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(argv[1 + verbose], argv + 1 + verbose);
    _exit(127);
  }
  uint64_t total = 0, last = 0;
  for (waitpid(child, &status, 0); WIFSTOPPED(status); waitpid(child, &status, 0)) {
    struct user_regs_struct registers;
    if (WSTOPSIG(status) == SIGTRAP) {
      CHECK(ptrace(PTRACE_GETREGS, child, 0, &registers) == 0);
      if (registers.rip != last || !repeats(child, last)) total++, count(registers.rip);
      last = registers.rip, number = 0;
    } else {
      number = WSTOPSIG(status);
    }
    ptrace(PTRACE_SINGLESTEP, child, 0, number);
  }
  fprintf(stderr, "instructions %lu\n", total);
  if (verbose) qsort(table, SLOTS, sizeof *table, by_address);
  for (int i = 0; verbose && i < SLOTS; i++) if (table[i].count) fprintf(stderr, "%lx %lu\n", table[i].address, table[i].count);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
