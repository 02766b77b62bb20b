// A random program that maps, protects, moves, fills, reads, calls and unmaps memory, at fixed and free addresses, and prints what came of each step:
// mappings SEED STEPS. Nothing printed depends on where the kernel puts things, so two runs are the same. Every page that is filled is code: each 8 bytes
// are a function that returns a number, the first 16 one that calls what it is given. Faults are caught, and printed.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { page = 4096, pages = 8, fixed_places = 40, free_places = 8, stable_places = 3 };
static uintptr_t place[fixed_places + free_places];  // 0: a free one that is not mapped
static int in_place[fixed_places + free_places];     // pages of a free one
static unsigned char is_there[fixed_places + free_places][pages];    // is that page mapped?
static unsigned char executable[fixed_places + free_places][pages];  // … so that it can be called?
static unsigned char is_plain[fixed_places + free_places];           // no other place has its low 32 bits, nor may it be Weir's
static uintptr_t stable[stable_places];
static uint64_t state;
static __thread sigjmp_buf out;
static __thread volatile uintptr_t faulted;
static volatile int over;

static uint64_t next(uint64_t *s) { *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17; return *s; }
static unsigned below(unsigned n) { return (next(&state) >> 20) % n; }

static int __attribute__((noinline, aligned(64))) seven(int x) { return x + 7; }
static int __attribute__((noinline, aligned(64))) nine(int x) { return x * 9; }

static void fault(int sig, siginfo_t *info, void *context) {
  faulted = (uintptr_t)info->si_addr;
  siglongjmp(out, sig);
}

static void fill(unsigned char *at, uint32_t seed) {
  static const unsigned char calls[16] = {0x48, 0x83, 0xec, 8, 0xff, 0xd6, 0x48, 0x83, 0xc4, 8, 0x05, 0, 0, 0, 0, 0xc3};
  unsigned char code[page];
  for (uint32_t n = 0; n < page / 8; n++) {
    uint32_t value = (seed * 2654435761u) ^ n * 40503u;
    memcpy(code + 8 * n, (unsigned char[]){0xb8, value, value >> 8, value >> 16, value >> 24, 0xc3, 0x90, 0x90}, 8);
  }
  memcpy(code, calls, 16), memcpy(code + 11, &seed, 4);
  memcpy(at, code, page);
}

static int call(uintptr_t at, int x, int (*f)(int)) {
  long result = 0, rdi = x;
  void *rsi = f;
  __asm__ volatile("mov %%rsp, %%rbx; and $-16, %%rsp; sub $256, %%rsp; call *%%rdx; mov %%rbx, %%rsp"
                   : "+a"(result), "+D"(rdi), "+S"(rsi) : "d"(at) : "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
  return (int)result;
}

static void show(const char *what, int n, long result) { printf("%s %d: %ld\n", what, n, result); }
static void told(const char *what, int n, long result) { show(what, n, result == -1 ? -errno : result); }

static void now_there(int n, unsigned first, unsigned count, int mapped, int protection) {
  memset(is_there[n] + first, mapped, count), memset(executable[n] + first, mapped && (protection & PROT_EXEC), count);
}
static void protect(int n, unsigned first, unsigned count, int protection) {
  told("protect", n, mprotect((void *)(place[n] + first * page), count * page, protection));
  for (unsigned i = first; i < first + count && is_there[n][i]; i++) executable[n][i] = protection & PROT_EXEC;  // up to where nothing is
}

static int some_protection(void) {
  static const int all[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC,
                            PROT_NONE, PROT_READ, PROT_EXEC};
  return all[below(8)];
}

static void map(int n, unsigned first, unsigned count) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (below(4) ? 0 : MAP_NORESERVE), protection = some_protection();
  if (n >= fixed_places) {
    if (place[n]) return;
    unsigned how = below(4);
    void *p = mmap(0, count * page, protection, flags | (how == 0 ? MAP_32BIT : 0), -1, 0);
    show("anywhere", n, p == MAP_FAILED ? -errno : how == 0 && (uintptr_t)p >> 31);
    if (p != MAP_FAILED) place[n] = (uintptr_t)p, in_place[n] = count, now_there(n, 0, pages, 1, protection);
    return;
  }
  uintptr_t at = place[n] + first * page;
  int how = (int[]){MAP_FIXED, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_FIXED_NOREPLACE, 0}[below(5)];
  void *p = mmap((void *)at, count * page, protection, flags | how, -1, 0);
  if (p == (void *)at) now_there(n, first, count, 1, protection);
  if (how || p == (void *)at) return show(how == MAP_FIXED ? "fixed" : how ? "not replaced" : "hint", n, p == MAP_FAILED ? -errno : p == (void *)at);
  if (p != MAP_FAILED) munmap(p, count * page);
  show("hint", n, 0);
}

static void move(int n, unsigned first, unsigned count) {
  int to = below(fixed_places), has = in_place[n];
  if (n >= fixed_places && !place[n]) return;
  if (n >= fixed_places) {  // all of it, so that nothing else is near
    unsigned wanted = 1 + below(pages);
    void *p = mremap((void *)place[n], has * page, wanted * page, MREMAP_MAYMOVE);
    show("grow", n, p == MAP_FAILED ? -errno : 0);
    if (p != MAP_FAILED) place[n] = (uintptr_t)p, in_place[n] = wanted;
  } else if (to != n) {
    unsigned there = below(pages);
    void *p = mremap((void *)(place[n] + first * page), page, page, MREMAP_MAYMOVE | MREMAP_FIXED, place[to] + there * page);
    now_there(to, there, 1, p != MAP_FAILED, executable[n][first] ? PROT_EXEC : 0);  // (where it fails, what was there may be gone)
    if (p != MAP_FAILED) now_there(n, first, 1, 0, 0);
    show("move", n, p == MAP_FAILED ? -errno : 0);
  }
}

static void touch(int n, unsigned first, unsigned how) {
  unsigned char *at = (unsigned char *)place[n] + first * page;
  unsigned which = below(3) ? below(page / 8) & ~1u : ((uintptr_t)seven & (page - 1)) / 8;
  uint32_t seed = below(1 << 20);
  int may_call = executable[n][first] || is_plain[n];  // (a wild pointer may lead to its twin)
  if ((how == 3 || how == 4) && !may_call) return;
  int s = sigsetjmp(out, 1);
  uintptr_t distance = faulted - (uintptr_t)at;
  if (s) return printf("%d: signal %d %s\n", n, s, distance < page ? "there" : faulted < page ? "at 0" : "elsewhere"), (void)0;
  switch (how) {
    case 0: fill(at, seed); break;
    case 1: if (is_there[n][first]) show("read", n, *(volatile int *)(at + 8 * which + 1)); break;  // (Weir's own memory may be read)
    case 2: at[8 * (which | 2) + 1] = seed; break;
    case 3: show("call", n, call((uintptr_t)at + 8 * (which | 2), 5, nine)); break;
    case 4: show("calls", n, call((uintptr_t)at, 5, below(2) ? seven : nine)); break;
    case 5: show("own", n, call((uintptr_t)seven, seed, 0) + call((uintptr_t)nine, seed, 0)); break;
  }
}

static void segment(int n) {
  int id = shmget(IPC_PRIVATE, page, IPC_CREAT | 0600);
  unsigned first = below(pages);
  void *p = shmat(id, (void *)(place[n] + first * page), below(2) ? SHM_REMAP | SHM_EXEC : SHM_EXEC);
  show("segment", n, p == (void *)-1 ? -errno : 0);
  if (p != (void *)-1) {
    fill(p, n);
    show("call", n, call((uintptr_t)p + 64, 1, nine));
    now_there(n, first, 1, 1, PROT_EXEC);
    if (below(2)) told("detach", n, shmdt(p)), now_there(n, first, 1, 0, 0);
  }
  shmctl(id, IPC_RMID, 0);
}

static void step(int depth);
static void child(int depth) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 20; i++) step(depth + 1);
    fflush(stdout), _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0), show("child", 0, status);
}

static void step(int depth) {
  int n = below(fixed_places + free_places), is_free = n >= fixed_places;
  if (is_free && !place[n]) return map(n, 0, 1 + below(pages));
  unsigned limit = is_free ? in_place[n] : pages, first = below(limit), count = 1 + below(limit - first);
  void *at = (void *)(place[n] + first * page);
  switch (below(20)) {
    case 0: case 1: case 2: case 3: return map(n, first, count);
    case 4: case 5: return protect(n, first, count, some_protection());
    case 6:
      if (is_free) first = 0, count = limit, at = (void *)place[n], place[n] = 0;
      told("unmap", n, munmap(at, count * page));
      now_there(n, first, count, 0, 0);
      return;
    case 7: return move(n, first, count);
    case 8: told("forget", n, madvise(at, count * page, MADV_DONTNEED)); return;
    case 9: if (!is_free) segment(n); return;
    case 10: if (below(8) == 0 && depth < 1) child(depth); return;
    case 11: if (below(8) == 0) show("heap", 0, sbrk(below(2) ? 65536 : -4096) == (void *)-1); return;
    default: return touch(n, first, below(6));
  }
}

// Threads go to the code that stays where it is, again and again, and to ours, which has the same low 32 bits.
static void *work(void *seed) {
  uint64_t s = (uintptr_t)seed;
  long wrong = 0;
  uintptr_t low = (uintptr_t)seven & (page - 1);
  while (!over) {
    for (int i = 0; i < 200; i++) {
      unsigned k = next(&s) % stable_places, expected = ((k + 1) * 2654435761u) ^ (uint32_t)(low / 8) * 40503u;
      wrong += call(stable[k] + low, 1, 0) != (int)expected;
      wrong += call(stable[k], 3, nine) != 27 + (int)k + 1;
      wrong += seven(i) != i + 7;
    }
    sched_yield();
  }
  return (void *)wrong;
}

int main(int argc, char **argv) {
  state = 0x9e3779b97f4a7c15ull * (strtoull(argv[1], 0, 0) + 1);
  uint64_t own = (uintptr_t)seven & 0xfffff000;
  static const uintptr_t wanted[] = {0x10000,      0x400000,      0x20000000,    0x3ff00000,     0x50000000,     0x60000000,     0x70000000,     0x7ffe0000,
                                     0x80000000,   0xc0000000,    0xfff00000,    0x100000000,    0x123000000,    0x400000000,    0x800000000,    0x86fff0000,
                                     0x1000000000, 0x10000000000, 0x1fff00000000, 0x200000000000, 0x200020000000, 0x280000000000, 0x300000000000, 0x400000000000};
  int n = 0;
  for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) place[n++] = wanted[i];
  for (uintptr_t k = 0x111; n < fixed_places - 8; k += 0x111) place[n++] = own | k << 32;            // twins of our own code,
  for (uintptr_t k = 0x21; n < fixed_places; k++) place[n++] = place[below(24)] % (1ul << 32) | k << 32;  // … and of each other
  for (int i = 0; i < fixed_places + free_places; i++) {
    is_plain[i] = i >= fixed_places || place[i] >> 36;
    for (int k = 0; k < fixed_places && i < fixed_places; k++) is_plain[i] &= i == k || (uint32_t)place[i] != (uint32_t)place[k];
  }
  for (uintptr_t k = 0; k < stable_places; k++) {
    stable[k] = own | (0x71 + k) << 32;
    if (mmap((void *)stable[k], page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) return perror("mmap"), 1;
    fill((void *)stable[k], k + 1), mprotect((void *)stable[k], page, PROT_READ | PROT_EXEC);
  }
  static char stack[1 << 16];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, 0);
  struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGSEGV, &action, 0), sigaction(SIGBUS, &action, 0), sigaction(SIGILL, &action, 0), sigaction(SIGTRAP, &action, 0);
  pthread_t threads[2];
  long count = argc > 3 && !atoi(argv[3]) ? 0 : 2;  // of threads beside this one
  for (long i = 0; i < count; i++) pthread_create(&threads[i], 0, work, (void *)(i + 1));
  for (int i = 0, steps = atoi(argv[2]); i < steps; i++) step(0);
  over = 1;
  void *wrong;
  for (int i = 0; i < count; i++) pthread_join(threads[i], &wrong), show("wrong", i, (long)wrong);
}
