// Runs sequences, each from a random state, and writes two digests for each: of all that it left, and the same without
// what is dead where it faulted. runner OUT; runner OUT ROUND SEQUENCE prints what one of them left.
//
// A sequence runs on its own stack with its own %fs and %gs. A fault ends it: the handler keeps the state and goes on behind it.
#define _GNU_SOURCE
#include <cpuid.h>
#include <immintrin.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "layout.h"

enum { ROUNDS = 2, COMPONENTS = 8, STATE_SIZE = 8192 };
extern const uint8_t sequences_code[];
extern const uint32_t sequence_offsets[];
extern const struct Live live[];
extern const uint64_t sequence_count, live_count;

// What run_sequence (enter.S) reads and writes.
struct Run {
  uint64_t regs[16], flags, target, own_rsp, own_fs;
  uint64_t left[16], left_flags;
} run;
uint8_t state[STATE_SIZE] __attribute__((aligned(64))), left_state[STATE_SIZE] __attribute__((aligned(64)));
void run_sequence(void);
extern char behind_fault[];

static struct { uint64_t signal, code, address, pc, trap, error; } fault;
static volatile int running;
static volatile uint64_t started, seen;  // runs of sequences

static const struct { uint64_t begin, size; } areas[] = {
    {LOW_AREA, BIG_AREA}, {HIGH_AREA, BIG_AREA}, {FS_AREA, SMALL_AREA}, {GS_AREA, SMALL_AREA}, {STACK_AREA, SMALL_AREA}};
enum { AREAS = sizeof areas / sizeof *areas, PAGE = 4096, PIECE = 1024, POOL = 512 };
static uint8_t pristine[BIG_AREA], pool[POOL][64] __attribute__((aligned(64)));
static uint32_t component_offset[COMPONENTS], component_size[COMPONENTS];

static uint64_t next(uint64_t *s) {
  uint64_t z = *s += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
static uint64_t mix(uint64_t h, uint64_t value) { return (h ^ value) * 0x9fb21c651e98df25ull + (h >> 29); }
static uint64_t hash(uint64_t h, const void *p, size_t size) {
  for (size_t i = 0; i < size; i += 8) {
    uint64_t w = 0;
    memcpy(&w, (const char *)p + i, size - i < 8 ? size - i : 8);
    h = mix(h, w);
  }
  return h;
}

// Random words, and numbers as floating point and small integers have them.
static void fill(uint64_t *words, size_t count, uint64_t *s) {
  for (size_t i = 0; i < count; i++) {
    uint64_t r = next(s);
    double d = (double)(int64_t)next(s) / (1ull << (r >> 8 & 63));
    float f[2] = {(float)d, (float)(int32_t)next(s) / 65536};
    switch (r % 8) {
      case 0: words[i] = next(s); break;
      case 1: memcpy(&words[i], &d, 8); break;
      case 2: memcpy(&words[i], f, 8); break;
      case 3: words[i] = next(s) % 100; break;
      case 4: words[i] = next(s) % 5 ? next(s) & next(s) : 0; break;
      case 5: words[i] = -(next(s) % 3); break;
      default: words[i] = next(s); break;
    }
  }
}

static void set_up(void) {
  uint64_t s = 42;
  for (int i = 0; i < AREAS; i++) {
    if (mmap((void *)(areas[i].begin - PAGE), areas[i].size + 2 * PAGE, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ||
        mprotect((void *)areas[i].begin, areas[i].size, PROT_READ | PROT_WRITE))
      perror("mmap"), exit(2);
  }
  fill((uint64_t *)pristine, sizeof pristine / 8, &s);
  fill((uint64_t *)pool, sizeof pool / 8, &s);
  for (int i = 0; i < AREAS; i++) memcpy((void *)areas[i].begin, pristine, areas[i].size);
  for (int c = 2; c < COMPONENTS; c++) {
    uint32_t c_, d_;
    __cpuid_count(13, c, component_size[c], component_offset[c], c_, d_);
    if (component_offset[c] + component_size[c] > STATE_SIZE) exit(2);
  }
}

// x87 and SSE (the layout of fxsave), AVX, opmasks, the upper halves of zmm0-15, zmm16-31.
static void random_state(uint64_t *s, int x87_unmasked) {
  memset(state, 0, 576);
  uint16_t fcw = 0x37f ^ (next(s) & 0xc00), fsw = (next(s) & 7) << 11;
  if (x87_unmasked) fcw &= ~(next(s) & 63);
  memcpy(state, &fcw, 2), memcpy(state + 2, &fsw, 2);
  state[4] = next(s) & next(s);
  uint32_t mxcsr = 0x1f80 | (next(s) & 63);
  if (next(s) % 2) mxcsr ^= next(s) & 0xe040;
  if (next(s) % 16 == 0) mxcsr &= ~((next(s) & 63) << 7 | 63);
  memcpy(state + 24, &mxcsr, 4);
  for (int i = 0; i < 8; i++) {
    double d;
    memcpy(&d, pool[next(s) % POOL], 8);
    long double x = d;
    memcpy(state + 32 + 16 * i, next(s) % 4 ? (void *)&x : pool[next(s) % POOL], 10);
  }
  for (int v = 0; v < 32; v++) {
    uint64_t own[8];
    const uint8_t *value = pool[next(s) % POOL];
    if (HAS_SMALL_ELEMENTS(v)) {
      for (int i = 0; i < 8; i++) own[i] = next(s) % 64;
      value = (uint8_t *)own;
    }
    if (v < 16) {
      memcpy(state + 160 + 16 * v, value, 16);
      memcpy(state + component_offset[2] + 16 * v, value + 16, 16);
      memcpy(state + component_offset[6] + 32 * v, value + 32, 32);
    } else {
      memcpy(state + component_offset[7] + 64 * (v - 16), value, 64);
    }
  }
  uint64_t *masks = (uint64_t *)(state + component_offset[5]);
  for (int i = 0; i < 8; i++) masks[i] = next(s) % 3 ? next(s) : next(s) % 3 ? -1ull : 0;
  uint64_t all = 0xe7;
  memcpy(state + 512, &all, 8);
}

static void random_registers(uint64_t *s) {
  for (int r = 0; r < 16; r++) {
    uint64_t kind = next(s) % 6, value = next(s);
    if (HIGH_POINTERS >> r & 1) run.regs[r] = HIGH_AREA + BIG_AREA / 2 + (value % 1024 & ~63);
    else if (LOW_POINTERS >> r & 1) run.regs[r] = LOW_AREA + BIG_AREA / 2 + (value % 1024 & ~63);
    else if (SMALL_NUMBERS >> r & 1) run.regs[r] = value % (kind ? 12 : 70);
    else run.regs[r] = kind == 0 ? value : kind == 1 ? (uint32_t)value : kind == 2 ? -(value % 100) : kind == 3 ? value % 2 : value % 256;
  }
  run.regs[4] = STACK_AREA + SMALL_AREA / 2;
  run.flags = next(s) & 0x8d5;
  if (next(s) % 8 == 0) run.flags |= 0x400;
}

__attribute__((target("fsgsbase"), optimize("no-stack-protector"))) static void handler(int signal, siginfo_t *info, void *context) {
  _writefsbase_u64(run.own_fs);
  ucontext_t *u = context;
  greg_t *g = u->uc_mcontext.gregs;
  if (!running) abort();
  static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  for (int i = 0; i < 16; i++) run.left[i] = g[order[i]];
  run.left_flags = g[REG_EFL];
  fault.signal = signal, fault.code = info->si_code, fault.address = (uint64_t)info->si_addr, fault.pc = g[REG_RIP];
  fault.trap = g[REG_TRAPNO], fault.error = g[REG_ERR] & ~1;  // (bit 0: whether somebody touched the page before)
  memcpy(left_state, u->uc_mcontext.fpregs, component_offset[7] + component_size[7]);
  g[REG_RIP] = (uint64_t)behind_fault, g[REG_RSP] = run.own_rsp, g[REG_EFL] = 0x202;
}

// A sequence that is still the same after a tick, or two, goes round in circles.
static void tick(int signal, siginfo_t *info, void *context) {
  greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
  if (!running) return;
  if (seen == started) fault.signal = signal, g[REG_RIP] = (uint64_t)behind_fault, g[REG_RSP] = run.own_rsp, g[REG_EFL] = 0x202;
  seen = started;
}

// What a component that is in its first state has; the last x87 instruction is forgotten, as its address is not the program's.
static void tidy_state(uint8_t *s) {
  uint64_t in_use;
  memcpy(&in_use, s + 512, 8);
  if (!(in_use & 1)) memset(s, 0, 24), s[0] = 0x7f, s[1] = 3, memset(s + 32, 0, 128);
  if (!(in_use & 2)) memset(s + 160, 0, 256);
  memset(s + 5, 0, 19), memset(s + 28, 0, 4);
  for (int i = 0; i < 8; i++) memset(s + 32 + 16 * i + 10, 0, 6);
  for (int c = 2; c < COMPONENTS; c++)
    if (!(in_use >> c & 1)) memset(s + component_offset[c], 0, component_size[c]);
}

static const struct Live *live_at(uint64_t pc) {
  uint64_t low = 0, high = live_count, offset = pc - (uint64_t)sequences_code;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (live[middle].offset < offset) low = middle + 1;
    else high = middle;
  }
  return low < live_count && live[low].offset == offset ? &live[low] : NULL;
}

static void print_left(void) {
  static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"};
  for (int i = 0; i < 16; i++) {
    i < 8 ? printf("%s", names[i]) : printf("r%d", i);
    printf(" %lx (was %lx)\n", run.left[i], run.regs[i]);
  }
  printf("flags %lx (were %lx)\nfault: signal %lu code %ld address %lx pc %lx trap %lu error %lx\n", run.left_flags & 0xdd5, run.flags,
         fault.signal, (long)fault.code, fault.address, fault.pc, fault.trap, fault.error);
  printf("x87 %x %x %x mxcsr %x\n", *(uint16_t *)left_state, *(uint16_t *)(left_state + 2), left_state[4], *(uint32_t *)(left_state + 24));
  for (int i = 0; i < 8; i++) printf("st%d %04x %016lx\n", i, *(uint16_t *)(left_state + 40 + 16 * i), *(uint64_t *)(left_state + 32 + 16 * i));
  for (int i = 0; i < 8; i++) printf("k%d %lx\n", i, ((uint64_t *)(left_state + component_offset[5]))[i]);
  for (int v = 0; v < 32; v++) {
    uint64_t w[8];
    if (v >= 16) memcpy(w, left_state + component_offset[7] + 64 * (v - 16), 64);
    else {
      memcpy(w, left_state + 160 + 16 * v, 16);
      memcpy(w + 2, left_state + component_offset[2] + 16 * v, 16);
      memcpy(w + 4, left_state + component_offset[6] + 32 * v, 32);
    }
    printf("zmm%d", v);
    for (int i = 0; i < 8; i++) printf(" %016lx", w[i]);
    printf("\n");
  }
  for (int i = 0; i < AREAS; i++)
    for (uint64_t k = 0; k < areas[i].size; k += 8)
      if (memcmp((void *)(areas[i].begin + k), pristine + k, 8))
        printf("memory %lx: %016lx (was %016lx)\n", areas[i].begin + k, *(uint64_t *)(areas[i].begin + k), *(uint64_t *)(pristine + k));
}

// A return leaves its address below the stack pointer, under Weir one of the cache: neither counts. `piece` is a copy of `at`.
static void forget_returns(uint8_t *piece, uint64_t at, uint64_t area, uint64_t area_size) {
  uint64_t end = PIECE, rsp = run.left[4];
  bool is_here = rsp >= area && rsp <= area + area_size;
  if (is_here && rsp < at + PIECE) end = rsp < at ? 0 : rsp - at;
  for (uint64_t k = is_here ? rsp % 8 : 0; k + 8 <= end; k += 8) {
    uint64_t w;
    memcpy(&w, piece + k, 8);
    bool low = w >= LOW_PROGRAM && w < LOW_CACHE_END && !(w >= LOW_AREA && w < LOW_AREA + BIG_AREA);
    bool high = w >> 32 == HIGH_CODE >> 32 && !(w >= HIGH_AREA && w < STACK_AREA + SMALL_AREA);
    if (low || high) memset(piece + k, 0, 8);
  }
}

// The memory that was changed.
static uint64_t hash_memory(uint64_t h) {
  uint8_t piece[PIECE];
  for (int i = 0; i < AREAS; i++)
    for (uint64_t k = 0; k < areas[i].size; k += PIECE) {
      uint64_t at = areas[i].begin + k;
      if (!memcmp((void *)at, pristine + k, PIECE)) continue;
      memcpy(piece, (void *)at, PIECE);
      forget_returns(piece, at, areas[i].begin, areas[i].size);
      h = hash(mix(h, at), piece, PIECE);
    }
  return h;
}
static void reset_memory(void) {
  for (int i = 0; i < AREAS; i++)
    for (uint64_t k = 0; k < areas[i].size; k += PIECE)
      if (memcmp((void *)(areas[i].begin + k), pristine + k, PIECE)) memcpy((void *)(areas[i].begin + k), pristine + k, PIECE);
}

// Natively there is nothing, under Weir its table, its cache, its runtime: what happens to a stray access differs.
static bool is_weirs(uint64_t address) {
  for (int i = 0; i < AREAS; i++)
    if (address - areas[i].begin + 0x10000 < 0x20000) return false;
  if (address >= HIGH_CODE && address < HIGH_AREA) return false;
  return address >> 32 == HIGH_CODE >> 32 || (address >= 0x28000000 && address < 0x900000000) ||
         (address >= 0x43d500000000 && address < 0x550000000000);
}

// Of all that was left; and without what is dead at a fault. 0: no matter.
static void digest(uint64_t n, uint64_t digests[2]) {
  if (fault.signal == SIGPROF || (fault.signal == SIGSEGV && is_weirs(fault.address))) {
    digests[0] = digests[1] = 0;
    return;
  }
  uint64_t rest = hash(hash_memory(hash(n, &fault, sizeof fault)), left_state, 416);
  for (int c = 2; c < COMPONENTS; c++)
    if (component_size[c] && c != 3 && c != 4) rest = hash(rest, left_state + component_offset[c], component_size[c]);
  static const struct Live nothing = {0};  // after a jump into the middle of an instruction, or of this program
  const struct Live *known = fault.signal ? live_at(fault.pc) : NULL;
  bool fetches = fault.trap == 14 && fault.error & 16;
  if (fault.signal && !known && !fetches) known = &nothing;
  uint64_t flags = run.left_flags & 0xdd5;
  digests[0] = digests[1] = rest;
  for (int i = 0; i < 16; i++) {
    bool is_dead = known && !(known->registers >> i & 1);
    digests[0] = mix(digests[0], is_dead && i == 1 ? 0 : run.left[i]);  // (rcx carries addresses of the cache)
    digests[1] = mix(digests[1], is_dead ? 0 : run.left[i]);
  }
  digests[0] = mix(digests[0], flags);
  digests[1] = mix(digests[1], known ? flags & (known->flags | ~0xcd5) : flags);
}

static void run_one(uint64_t n, int round) {
  uint64_t s = n * 2654435761u + round;
  random_state(&s, IS_X87_UNMASKED(n));
  random_registers(&s);
  memset(&fault, 0, sizeof fault);
  run.target = (uint64_t)sequences_code + sequence_offsets[n];
  started++;
  running = 1;
  run_sequence();
  running = 0;
  tidy_state(left_state);
}

static void set_up_signals(void) {
  static uint8_t alternate[65536];
  sigaltstack(&(stack_t){.ss_sp = alternate, .ss_size = sizeof alternate}, NULL);
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigfillset(&action.sa_mask);
  for (int i = 0; i < 5; i++) sigaction((int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}[i], &action, NULL);
  action.sa_sigaction = tick, action.sa_flags |= SA_RESTART;
  sigaction(SIGPROF, &action, NULL);
  setitimer(ITIMER_PROF, &(struct itimerval){{0, 20000}, {0, 20000}}, NULL);
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 4) return fprintf(stderr, "usage: runner OUT [EXPECTED 0|1, or: ROUND SEQUENCE]\n"), 2;
  FILE *expected = argc == 4 ? fopen(argv[2], "r") : NULL;
  long only_round = argc == 4 && !expected ? atol(argv[2]) : -1, last = argc == 4 ? atol(argv[3]) : -1;
  FILE *out = fopen(argv[1], "w");
  if (!out) return perror(argv[1]), 2;
  set_up();
  set_up_signals();
  uint64_t faults = 0, skipped = 0;
  for (int round = 0, shown = 0; round < ROUNDS; round++) {
    for (uint64_t n = 0; n < sequence_count; n++) {
      uint64_t digests[2] = {0}, wanted[2] = {1};
      if (expected && fread(wanted, sizeof wanted, 1, expected) != 1) return 2;
      if (wanted[0]) run_one(n, round), digest(n, digests);
      if (round == only_round && (long)n == last) return print_left(), 0;
      if (expected && wanted[last] != digests[last] && shown++ < 3)
        printf("round %d sequence %lu\n", round, n), print_left();
      reset_memory();
      faults += fault.signal != 0;
      skipped += !digests[0];
      fwrite(digests, sizeof digests, 1, out);
    }
  }
  if (fclose(out)) return perror(argv[1]), 2;
  printf("%lu sequences, %d rounds, %lu faults, %lu skipped\n", sequence_count, ROUNDS, faults, skipped);
}
