// A program that does Weir harm, as far as it can: it knows where the runtime's memory lies (rt/abi.h), and writes there.
//
//   hostile SEED SECONDS PLANS [FILE]     PLANS: letters, one thread each (see `plans` below); FILE: how much was forged
//
// All that is random comes from SEED, so that a run can be had again, as far as threads let it. The program may well die of what
// it does to itself: it is Weir that must not.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <iterator>

#include "../programs/endless.h"
#include "tools/count/runtime/memory.h"

using namespace weir::rt;
using namespace weir::count::runtime;

namespace {

uint64_t none, *forged = &none, wake_every = 1;
timespec deadline;
const char* self_path;

struct Random {
  uint64_t state;
  uint64_t next() {
    state += 0x9E3779B97F4A7C15;
    uint64_t z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return next() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
};

bool is_over() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > deadline.tv_sec || (now.tv_sec == deadline.tv_sec && now.tv_nsec > deadline.tv_nsec);
}

ThreadBlock* block_of(uint64_t slot) { return reinterpret_cast<ThreadBlock*>(blocks_base + slot * block_stride); }
ControlBlock* control() { return reinterpret_cast<ControlBlock*>(blocks_base); }

// Numbers that checks forget: ends of ranges, their neighbours, sums that wrap, and addresses that mean something.
uint64_t number(Random& random) {
  static const uint64_t ends[] = {0,
                                  1,
                                  7,
                                  8,
                                  4095,
                                  4096,
                                  max_slots,
                                  max_calls,
                                  max_os,
                                  max_others,
                                  max_parked,
                                  max_counters,
                                  max_contexts,
                                  frames_offset,
                                  INT32_MAX,
                                  UINT32_MAX,
                                  1ull << 32,
                                  1ull << 47,
                                  INT64_MAX,
                                  1ull << 63,
                                  UINT64_MAX,
                                  table_base,
                                  space_base,
                                  runtime_base,
                                  blocks_base,
                                  home_base,
                                  low_arena_begin,
                                  block_stride};
  switch (random.below(8)) {
    case 0: return random.next();
    case 1: return random.below(256);
    case 2: return reinterpret_cast<uint64_t>(&number) + random.below(1 << 12);
    case 3: return reinterpret_cast<uint64_t>(&memcpy) + random.below(1 << 16);
    case 4: return blocks_base + random.below(64) * block_stride + random.below(block_stride);
    case 5: return reinterpret_cast<uint64_t>(&random) + random.below(1 << 14) - (1 << 13);
    default: return ends[random.below(std::size(ends))] + random.below(5) - 2;
  }
}

void ring() {
  __atomic_fetch_add(&control()->doorbell, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &control()->doorbell, 1, 1, nullptr, nullptr, 0);
}

void post(uint64_t slot) {
  __atomic_fetch_or(&control()->posted[slot / 64 % std::size(control()->posted)], uint64_t{1} << slot % 64,
                    __ATOMIC_SEQ_CST);
  if (__atomic_add_fetch(forged, 1, __ATOMIC_RELAXED) % wake_every == 0) ring();
}

// ---- In whose name ----------------------------------------------------------------------------------------------
// Victims are threads that want nothing: what is done to their slots does not end the program, so that it can be done often.
uint64_t victims[8];

void* want_nothing(void* slot) {
  auto tid = static_cast<uint32_t>(gettid());
  for (uint64_t i = 1; i < 64; i++)
    if (block_of(i)->tid == tid) __atomic_store_n(static_cast<uint64_t*>(slot), i, __ATOMIC_RELEASE);
  for (;;) pause();
}

uint64_t some_slot(Random& random, uint64_t others) {
  return random.one_in(others) ? 1 + random.below(16) : victims[random.below(std::size(victims))];
}

// ---- What a thread may do -----------------------------------------------------------------------------------------

bool ask(uint64_t slot) {
  RequestBlock& r = block_of(slot)->request;
  __atomic_store_n(&r.state, RequestState::Posted, __ATOMIC_RELEASE);
  post(slot);
  auto state = [&] { return __atomic_load_n(&r.state, __ATOMIC_ACQUIRE); };
  for (int i = 0; i < 1000 && state() == RequestState::Posted; i++) sched_yield();
  return state() == RequestState::Answered;
}

// As the runtime does it.
void make_calls(ThreadBlock* tb) {
  long descriptor = -1;
  for (uint64_t i = 0; i < tb->request.calls && i < max_calls; i++) {
    Call c = tb->calls[i];
    if (c.flags & UsesText) c.args[1] = reinterpret_cast<uint64_t>(tb->calls[i].text);
    if (c.flags & UsesDescriptor) c.args[c.nr == SYS_close ? 0 : 4] = static_cast<uint64_t>(descriptor);
    long result = syscall(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5]);
    if (c.flags & Opens) descriptor = result;
  }
  tb->request.calls = tb->request.args[0] = 0;
}

// Requests in the name of slots that others use, or nobody: any kind, any arguments.
void forge_requests(Random& random) {
  uint64_t slot = random.one_in(32) ? random.below(max_slots) : some_slot(random, 4096);
  RequestBlock& r = block_of(slot)->request;
  for (uint64_t& a : r.args) a = number(random);
  auto kinds = static_cast<uint64_t>(Request::Called) + 2;
  r.kind = random.one_in(16) ? Request(random.next()) : Request(random.below(kinds));
  // Ids that exist get further.
  if (r.kind == Request::Hello)
    r.args[0] = uint64_t(getpid()), r.args[1] = uint64_t(random.one_in(2) ? getpid() : gettid());
  if (r.kind == Request::Place || r.kind == Request::Mapped) r.args[r.kind == Request::Place ? 0 : 3] = random.below(12);
  if (r.kind == Request::NewThread && random.one_in(2))
    r.args[0] = random.one_in(2) ? SIGCHLD : CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
  if (r.kind == Request::Called)
    r.args[0] = random.below(max_calls + 2), r.args[1] = random.one_in(2) ? -EMFILE : number(random);
  if (random.one_in(2)) r.args[0] &= 0xffff'ffff;
  // (A slot is lost then, or our own code is new again while we make calls: the program seldom survives it.)
  bool is_last = r.kind == Request::ThreadEnd || r.kind == Request::Change || r.kind == Request::Stale;
  if (is_last && !random.one_in(200)) r.kind = random.one_in(2) ? Request::Where : Request::Link;
  bool was_answered = ask(slot);
  // The system calls that came with an answer are made, most often, as nobody else gets one before.
  for (int i = 0; i < 8 && was_answered && r.calls && !random.one_in(500); i++) {
    make_calls(block_of(slot));
    r.kind = Request::Called;
    was_answered = ask(slot);
  }
}

// A request that changes while it is read.
void race_requests(Random& random) {
  uint64_t slot = some_slot(random, 256);
  RequestBlock& r = block_of(slot)->request;
  uint64_t a = number(random), b = number(random);
  for (int i = 0; i < 2000; i++) {
    for (uint64_t& argument : r.args) __atomic_store_n(&argument, i % 2 ? a : b, __ATOMIC_RELAXED);
    r.kind = Request(i % (uint32_t(Request::Called) + 2));
    r.state = RequestState(i % 3);
    if (i % 100 == 0) post(slot);
  }
}

// Bits of slots that have no request, and all of them.
void ring_for_nothing(Random& random) {
  if (random.one_in(4)) memset(control()->posted, -1, sizeof control()->posted);
  control()->weir_pid = uint32_t(number(random));
  control()->sleeping = uint32_t(random.next());
  post(random.below(max_slots));
}

// Words of thread blocks: all but what the runtime needs to come to its next request.
void spoil_blocks(Random& random) {
  auto* tb = block_of(some_slot(random, 64));
  auto* words = reinterpret_cast<uint64_t*>(tb);
  size_t first = offsetof(ThreadBlock, misses) / 8, count = sizeof(ThreadBlock) / 8;
  if (random.one_in(50)) first = 0;
  uint64_t at = first + random.below(count - first);
  bool is_stack = at * 8 >= offsetof(ThreadBlock, signal_stack) && at * 8 < offsetof(ThreadBlock, calls);
  if (!is_stack) words[at] = number(random);
  __atomic_fetch_add(forged, 1, __ATOMIC_RELAXED);
}

// What the profile is made of: counters, frames, records, contexts, and how many there are.
void spoil_counts(Random& random) {
  auto* memory = reinterpret_cast<char*>(block_of(some_slot(random, 8)));
  auto* t = reinterpret_cast<State*>(memory + state_offset);
  auto any = [&](uint32_t offset, uint32_t size) {
    *reinterpret_cast<uint64_t*>(memory + offset + random.below(size / 8) * 8) = number(random);
  };
  switch (random.below(10)) {
    case 0: any(counters_offset, 64 << 10); break;
    case 1: any(frames_offset, 64 << 10); break;
    case 2: any(others_offset, 64 << 10); break;
    case 3: any(os_offset, 64 << 10); break;
    case 4: any(state_offset, sizeof(State)); break;
    case 5: any(others_list_offset, 4096); break;
    case 6: any(os_list_offset, 4096); break;
    case 7: any(contexts_offset, 64 << 10); break;
    case 8: (random.one_in(2) ? t->others : t->os) = uint32_t(number(random)); break;
    case 9: t->contexts = uint32_t(number(random)); break;
  }
  if (random.one_in(20)) reinterpret_cast<ThreadBlock*>(memory)->frames.top = number(random);
  if (random.one_in(20)) reinterpret_cast<ThreadBlock*>(memory)->clock.zmm31_offset = uint32_t(number(random));
  __atomic_fetch_add(forged, 1, __ATOMIC_RELAXED);
}

// Files, descriptors and a memory map that make a reader wait, or count for ever.
void set_traps(Random& random) {
  switch (random.below(4)) {
    case 0: {
      int ends[2];
      if (pipe(ends)) break;
      RequestBlock& r = block_of(1)->request;
      r.args[0] = r.args[3] = uint64_t(ends[0]);
      r.kind = random.one_in(2) ? Request::Place : Request::Mapped;
      close(ends[1]);  // (who opens the other end waits for a writer)
      r.state = RequestState::Posted;
      post(1);
      usleep(100);
      close(ends[0]);
      break;
    }
    case 1: have_endless_arguments(); break;
    case 2: {
      int fd = open(self_path, O_RDONLY);
      void* code = mmap(nullptr, 1ull << 36, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
      if (code != MAP_FAILED && random.one_in(2)) munmap(code, 1ull << 36);
      close(fd);
      break;
    }
    case 3: mprotect(reinterpret_cast<void*>(space_base), 4096, PROT_READ | PROT_WRITE); break;
  }
  __atomic_fetch_add(forged, 1, __ATOMIC_RELAXED);
}

// Children that are killed at any moment: before they have said a word, while they execute another program …
void lose_children(Random& random) {
  pid_t child = random.one_in(3) ? vfork() : fork();
  if (child == 0) {
    if (random.one_in(2)) execl("/bin/true", "true", nullptr);
    _exit(0);
  }
  if (child < 0) return;
  if (random.one_in(2)) usleep(static_cast<useconds_t>(random.below(3000)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  __atomic_fetch_add(forged, 1, __ATOMIC_RELAXED);
}

// Something that Weir has to do meanwhile.
void work(Random& random) {
  char text[64];
  for (int i = 0; i < 200; i++)
    snprintf(text, sizeof text, "%f %lx", static_cast<double>(random.next()), strtoul(text, nullptr, 16));
}

struct Plan {
  char letter;
  void (*step)(Random&);
  useconds_t pause;
};
constexpr Plan plans[] = {{'r', forge_requests, 20}, {'t', race_requests, 50}, {'n', ring_for_nothing, 50},
                          {'b', spoil_blocks, 200},  {'c', spoil_counts, 5},   {'f', set_traps, 1000},
                          {'k', lose_children, 500}, {'w', work, 10}};

struct Thread {
  const Plan* plan;
  Random random;
};

void* run(void* argument) {
  auto* thread = static_cast<Thread*>(argument);
  while (!is_over()) {
    thread->plan->step(thread->random);
    if (thread->random.one_in(8)) usleep(thread->plan->pause);
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  self_path = argv[0];
  Random random{strtoull(argv[1], nullptr, 10)};
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  auto nanoseconds = static_cast<uint64_t>(atof(argv[2]) * 1e9) + uint64_t(deadline.tv_nsec);
  deadline.tv_sec += time_t(nanoseconds / 1'000'000'000), deadline.tv_nsec = long(nanoseconds % 1'000'000'000);
  wake_every = 1 + random.below(4);
  if (argc > 4) {
    int fd = open(argv[4], O_RDWR);
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) forged = static_cast<uint64_t*>(page);
  }
  // Attached to, it begins natively.
  for (char byte; mincore(block_of(1), 4096, reinterpret_cast<unsigned char*>(&byte));) {
    if (is_over()) return 0;
    puts("waiting"), fflush(stdout);
    usleep(10'000);
  }
  for (uint64_t& slot : victims) {
    pthread_t id;
    pthread_create(&id, nullptr, want_nothing, &slot);
    while (!__atomic_load_n(&slot, __ATOMIC_ACQUIRE) && !is_over()) usleep(100);
  }
  // Who makes calls for Weir gets no answer meanwhile, and so must not come to code that is new.
  static ThreadBlock rehearsal;
  rehearsal.calls[0] = {SYS_openat, {uint64_t(AT_FDCWD), 0, O_RDONLY}, "/dev/null", UsesText | Opens};
  rehearsal.calls[1] = {SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, 0, 0}, "", UsesDescriptor};
  rehearsal.calls[2] = {SYS_close, {}, "", UsesDescriptor};
  rehearsal.request.calls = 3;
  make_calls(&rehearsal);
  for (int i = 0; i < 100; i++) post(0), sched_yield();
  static Thread threads[64];
  pthread_t ids[64];
  size_t count = 0;
  for (const char* letter = argv[3]; *letter && count < std::size(threads); letter++)
    for (const Plan& plan : plans)
      if (plan.letter == *letter) {
        threads[count] = {&plan, {random.next()}};
        pthread_create(&ids[count], nullptr, run, &threads[count]);
        count++;
      }
  // Nobody must wait for a thread that waits for an answer which it has spoilt itself.
  while (!is_over()) usleep(1000);
  _exit(0);
}
