// A program whose signals are random, by a seed, and which checks what signals promise: nothing is lost, nothing comes twice, queued ones stay in
// order, masks are as they were set, registers are as they were left, and calls are interrupted as said. It prints `ok`, or the first line that
// is not so. See signals.py.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(c) ((c) ? (void)0 : failed(__LINE__, #c))
static void failed(int line, const char* what) {
  char text[256];
  int n = snprintf(text, sizeof text, "line %d: not so: %s\n", line, what);
  if (write(1, text, (size_t)n) < 0) {}
  _exit(99);
}

static uint64_t random_state;
static uint64_t next(uint64_t below) {  // (by the main thread alone)
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return (random_state * 0x2545F4914F6CDD1D >> 33) % below;
}

enum { workers_most = 3, kinds = 10, altstack_size = 256 << 10 };
// Signals that are sent: each kind has its own action, chosen by the seed.
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
static int sent_kinds[kinds] = {SIGUSR1, SIGUSR2, SIGHUP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
static struct sigaction actions[65];
static volatile int plain_acks[65], thread_acks[65];  // by what si_code says of the sender
static int has_resethand;
static int is_raised[65];  // by instructions. What is sent to a thread just when it raises the same is merged with that: the one or the other
static double patience = 20;  // seconds for a signal to come
static int may_end_more;      // select and ppoll, too, may be ended by a signal that another thread takes: see docs/limits.md, Sampling

struct worker {
  pthread_t thread;
  pid_t tid;
  char* altstack;
  volatile int stop, depth;
  volatile uint64_t handled;  // handlers that ran
  volatile int queued;        // the last number of those that were queued to this thread
  volatile int raised[65];    // by its own instructions
  volatile uint64_t fault_address;
  sigset_t mask;
  uint64_t rounds;
};
static struct worker workers[workers_most];
static int worker_count;
static __thread struct worker* self;
static volatile int process_queued[4096];  // numbers that were queued to the process
static char* guarded;                                // a page that cannot be read

static uint64_t bits(const sigset_t* set) { uint64_t b; memcpy(&b, set, 8); return b; }
static uint64_t bit(int sig) { return (uint64_t)1 << (sig - 1); }
static uint64_t own_mask(void) { uint64_t now = 0; syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, 8); return now; }

// ---- Handlers -----------------------------------------------------------------------------------------------------
static int is_own(const char* p) { return self && p >= self->altstack && p < self->altstack + altstack_size; }

static void check_state(int sig, ucontext_t* uc, char* here) {
  uint64_t expected = bits(&uc->uc_sigmask) | bits(&actions[sig].sa_mask) | (actions[sig].sa_flags & SA_NODEFER ? 0 : bit(sig));
  expected &= ~(bit(SIGKILL) | bit(SIGSTOP));
  CHECK(own_mask() == expected);
  uint32_t mxcsr, flags;
  uint16_t control;
  __asm__ volatile("stmxcsr %0; fnstcw %1; pushfq; popq %%rax; movl %%eax, %2" : "=m"(mxcsr), "=m"(control), "=m"(flags)::"rax");
  CHECK(mxcsr == 0x1f80 && control == 0x37f && !(flags & 0x500));
  char* rsp = (char*)uc->uc_mcontext.gregs[REG_RSP];
  if (self) CHECK(is_own(here) == (is_own(rsp) || (actions[sig].sa_flags & SA_ONSTACK)));
}

// An instruction that faults, and the number of bytes behind which to go on: see raise_fault.
static void skip(ucontext_t* uc, int length) { uc->uc_mcontext.gregs[REG_RIP] += length; }

static void handler(int sig, siginfo_t* info, void* context) {
  volatile uint64_t canary[16];
  for (int i = 0; i < 16; i++) canary[i] = (uint64_t)sig * 1000 + (uint64_t)i;
  ucontext_t* uc = context;
  int saved_errno = errno;
  CHECK(info->si_signo == sig);
  check_state(sig, uc, (char*)&canary);
  struct worker* w = self;
  if (w) w->depth++;
  if (has_resethand && actions[sig].sa_flags & SA_RESETHAND) {
    struct sigaction now;
    CHECK(sigaction(sig, NULL, &now) == 0);
    CHECK(now.sa_handler == SIG_DFL);
    CHECK(sigaction(sig, &actions[sig], NULL) == 0);
  }
  if (info->si_code > 0) {  // raised
    CHECK(w != NULL);
    w->raised[sig]++;
    if (sig == SIGSEGV) CHECK(info->si_addr == (void*)w->fault_address), skip(uc, 3);
    if (sig == SIGFPE) skip(uc, 3);
    if (sig == SIGILL) skip(uc, 2);
    if (sig == SIGFPE || sig == SIGILL) CHECK(info->si_addr == (void*)w->fault_address);
  } else if (info->si_code == SI_QUEUE && w && sig >= SIGRTMIN + 2) {  // numbers in a row to this thread
    CHECK(info->si_value.sival_int == w->queued + 1);
    w->queued++;
  } else if (info->si_code == SI_QUEUE) {
    CHECK(__sync_fetch_and_add(&process_queued[info->si_value.sival_int], 1) == 0);
  } else if (info->si_code == SI_TKILL) {
    __sync_fetch_and_add(&thread_acks[sig], 1);
  } else if (info->si_code == SI_USER) {
    __sync_fetch_and_add(&plain_acks[sig], 1);
  }
  if (w && w->depth < 3 && sig % 3 == 0 && sig != SIGPROF) {  // what takes a while, and comes to the engine
    void* p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && munmap(p, 4096) == 0);
  }
  for (int i = 0; i < 16; i++) CHECK(canary[i] == (uint64_t)sig * 1000 + (uint64_t)i);
  if (w) w->depth--, w->handled++;
  errno = saved_errno;
}

static void choose_actions(void) {
  int first = SIGRTMIN, last = SIGRTMIN + 3;
  has_resethand = worker_count == 1 && next(2);  // (another thread might be ended by the next one)
  for (int sig = 1; sig <= 64; sig++) {
    int is_used = (sig >= first && sig <= last) || sig == SIGALRM || sig == SIGPROF;
    for (int i = 0; i < kinds; i++) is_used |= sent_kinds[i] == sig;
    if (!is_used) continue;
    struct sigaction* a = &actions[sig];
    a->sa_sigaction = handler;
    a->sa_flags = SA_SIGINFO;
    if (next(2)) a->sa_flags |= SA_ONSTACK;
    if (next(2)) a->sa_flags |= SA_RESTART;
    if (next(4) == 0 && sig != SIGALRM && sig != SIGPROF) a->sa_flags |= SA_NODEFER;
    if (has_resethand && sig == SIGHUP) a->sa_flags = (a->sa_flags & ~SA_NODEFER) | SA_RESETHAND;
    sigemptyset(&a->sa_mask);
    int blocked = (int)next(6);
    for (int i = 0; i < blocked; i++) sigaddset(&a->sa_mask, sent_kinds[next(3)]);
    if (next(4) == 0) sigaddset(&a->sa_mask, SIGRTMIN + (int)next(4));
    if (next(8) == 0) sigfillset(&a->sa_mask);
    // A fault whose signal is blocked ends a program: handlers raise none, but queued ones stay in order only if they do not nest.
    if (sig >= SIGRTMIN) a->sa_flags &= ~SA_NODEFER;
    CHECK(sigaction(sig, a, NULL) == 0);
  }
  // One handler of numbers in a row may not interrupt the other.
  for (int sig = SIGRTMIN + 2; sig <= SIGRTMIN + 3; sig++) {
    sigaddset(&actions[sig].sa_mask, SIGRTMIN + 2), sigaddset(&actions[sig].sa_mask, SIGRTMIN + 3);
    CHECK(sigaction(sig, &actions[sig], NULL) == 0);
  }
}

// ---- What workers do ----------------------------------------------------------------------------------------------
typedef uint64_t step_function(uint64_t);
__attribute__((noinline)) static uint64_t step_a(uint64_t x) { return x * 3 + (x >> 7); }
__attribute__((noinline)) static uint64_t step_b(uint64_t x) { return x & 64 ? x / 3 : x * 5; }
__attribute__((noinline)) static uint64_t fib(uint64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static step_function* volatile steps[] = {step_a, step_b};
static uint64_t compute(void) {
  uint64_t sum = 1;
  double d = 1;
  for (int i = 0; i < 400; i++) {
    sum = steps[i & 1](sum), d = d * 1.0001 + i;
    switch (sum % 7) {
      case 0: sum += 5; break;
      case 1: sum ^= (uint64_t)i; break;
      case 2: sum -= 9; break;
      case 3: sum <<= 1; break;
      case 4: sum = ~sum; break;
      case 5: sum += (uint64_t)(d / 1000); break;
    }
  }
  return sum + fib(10);
}

// All registers and flags are as they were, whatever comes between.
static void check_registers(void) {
  uint64_t bad = 0;
  __asm__ volatile(
      "mov $0x1111, %%r8; mov $0x2222, %%r9; mov $0x3333, %%r10; mov $0x4444, %%r11; mov $0x5555, %%r12; mov $0x6666, %%r13\n"
      "movq %%r8, %%xmm7; movq %%r9, %%xmm15; mov $2000, %%ecx; stc\n"
      "1: jnc 2f; jmp 3f; 3: call 4f; lea -1(%%rcx), %%rcx; jrcxz 5f; jmp 1b\n"
      "4: ret\n"
      "2: mov $1, %0\n"
      "5: cmp $0x1111, %%r8; jne 6f; cmp $0x2222, %%r9; jne 6f; cmp $0x3333, %%r10; jne 6f; cmp $0x4444, %%r11; jne 6f; cmp $0x5555, %%r12; jne 6f\n"
      "cmp $0x6666, %%r13; jne 6f; movq %%xmm7, %%r8; movq %%xmm15, %%r9; cmp $0x1111, %%r8; jne 6f; cmp $0x2222, %%r9; je 7f\n"
      "6: mov $2, %0\n7:\n"
      : "+r"(bad)::"r8", "r9", "r10", "r11", "r12", "r13", "rcx", "xmm7", "xmm15", "cc", "memory");
  CHECK(bad == 0);
}

__attribute__((noinline)) static void raise_fault(int which) {
  int sig = faults[which];
  if (sig == SIGBUS || !is_raised[sig]) return;
  int before = self->raised[sig];
  uint64_t kept = 0x1234;
  switch (sig) {
    case SIGSEGV:
      self->fault_address = (uint64_t)guarded;
      __asm__ volatile("mov %1, %%rax; mov (%%rax), %%rax; mov %0, %0" : "+r"(kept) : "r"(guarded) : "rax", "memory");
      break;
    case SIGFPE:
      __asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %1; xor %%ecx, %%ecx; mov $7, %%eax; cqo; 1: idiv %%rcx" : "+r"(kept), "=m"(self->fault_address)::"rax", "rcx", "rdx", "cc");
      break;
    case SIGILL: __asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %1; 1: ud2" : "+r"(kept), "=m"(self->fault_address)::"rax", "memory"); break;
    case SIGTRAP: __asm__ volatile("int3" : "+r"(kept)::"memory"); break;
  }
  CHECK(kept == 0x1234 && self->raised[sig] == before + 1);
}

static __thread sigjmp_buf jump;
static __thread volatile int jumps;
static void jumping(int sig) { (void)sig; jumps++; siglongjmp(jump, 1); }

static void block_for_a_while(uint64_t kind) {
  struct timespec t = {0, 50000};
  uint64_t before = self->handled;
  int result = 0;
  struct pollfd none = {-1, 0, 0};
  errno = 0;
  switch (kind % 8) {
    case 0: result = nanosleep(&t, NULL); break;
    case 1: result = ppoll(&none, 1, &t, NULL); break;
    case 2: result = select(0, NULL, NULL, NULL, &(struct timeval){0, 50}); break;
    case 3: {
      sem_t never;
      struct timespec end;
      CHECK(sem_init(&never, 0, 0) == 0 && clock_gettime(CLOCK_REALTIME, &end) == 0);
      end.tv_nsec += t.tv_nsec, end.tv_sec += end.tv_nsec / 1000000000, end.tv_nsec %= 1000000000;
      result = sem_timedwait(&never, &end);
      if (result && errno == ETIMEDOUT) result = 0;
      break;
    }
    case 4: { int e = epoll_create1(0); struct epoll_event event; result = epoll_wait(e, &event, 1, 1); CHECK(close(e) == 0); errno = result ? EINTR : 0; break; }
    case 5: { sigset_t set; sigemptyset(&set); result = sigtimedwait(&set, NULL, &t); if (result < 0 && errno == EAGAIN) result = 0; break; }
    case 6: { pid_t child = fork(); if (!child) _exit(5); int status; while ((result = waitpid(child, &status, 0)) < 0) CHECK(errno == EINTR && self->handled != before); CHECK(WEXITSTATUS(status) == 5); result = 0; break; }
    case 7: sched_yield(); break;
  }
  // (Some calls are also ended by a signal that another thread then takes.)
  int may_end = kind % 8 == 4 || kind % 8 == 5 || (may_end_more && (kind % 8 == 1 || kind % 8 == 2));
  if (result < 0) CHECK(errno == EINTR && (self->handled != before || may_end));
}

static void* work(void* argument) {
  self = argument;
  self->tid = (pid_t)syscall(SYS_gettid);
  stack_t stack = {self->altstack, 0, altstack_size};
  CHECK(sigaltstack(&stack, NULL) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &self->mask, NULL) == 0);
  uint64_t expected = compute();
  struct sigaction j = {.sa_handler = jumping, .sa_flags = SA_NODEFER};
  if (self == workers) CHECK(sigaction(SIGWINCH, &j, NULL) == 0);
  while (!self->stop) {
    uint64_t what = self->rounds++ * 0x9E3779B97F4A7C15 >> 40;
    CHECK(compute() == expected);
    check_registers();
    if (what % 4 == 0) raise_fault((int)(what / 4 % 5));
    if (what % 4 == 1) block_for_a_while(what / 4);
    if (self == workers && what % 16 == 2) {
      int before = jumps;
      sigset_t others;  // (the handler of one that comes together with it would be jumped over)
      sigfillset(&others), sigdelset(&others, SIGWINCH);
      CHECK(pthread_sigmask(SIG_SETMASK, &others, NULL) == 0);
      if (!sigsetjmp(jump, 1)) raise(SIGWINCH), CHECK(0);
      CHECK(jumps == before + 1 && own_mask() == (bits(&others) & ~(bit(SIGKILL) | bit(SIGSTOP))));
      CHECK(pthread_sigmask(SIG_SETMASK, &self->mask, NULL) == 0);
    }
    CHECK(own_mask() == bits(&self->mask));
  }
  return NULL;
}

// ---- Who sends ----------------------------------------------------------------------------------------------------
static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static int has_come(volatile int* count, int value) {
  double begin = seconds();
  for (int i = 0; *count < value; i++) {
    i < 100 ? sched_yield() : usleep(20);
    if (i % 256 == 0 && seconds() - begin > patience) return 0;
  }
  return 1;
}

static void lost(const char* how, int sig) {
  char text[64];
  snprintf(text, sizeof text, "lost: signal %d of %s", sig, how);
  failed(__LINE__, text);
}

struct plan {
  int kinds[64], count;
};
// To the process, or to a thread; the next one when that was handled. (`kill` and `tgkill` wait apart from one another.)
static void* send_to_process(void* argument) {
  const struct plan* p = argument;
  for (int i = 0; i < p->count; i++) {
    int sig = p->kinds[i], before = plain_acks[sig];
    CHECK(kill(getpid(), sig) == 0);
    if (!has_come(&plain_acks[sig], before + 1)) lost("kill", sig);
  }
  return NULL;
}
static void* send_to_thread(void* argument) {
  const struct plan* p = argument;
  for (int i = 0; i < p->count; i++) {
    int sig = p->kinds[i], before = thread_acks[sig];
    CHECK(syscall(SYS_tgkill, getpid(), workers[i % worker_count].tid, sig) == 0);
    if (!has_come(&thread_acks[sig], before + 1)) lost("tgkill", sig);
  }
  return NULL;
}
static void* queue_numbers(void* argument) {
  const struct plan* p = argument;
  for (int i = 0; i < p->count * 8; i++) {
    union sigval value = {.sival_int = i + 1};
    int sig = SIGRTMIN + 2 + p->kinds[0] % 2;
    while (pthread_sigqueue(workers[0].thread, sig, value)) CHECK(errno == EAGAIN || errno == 0), usleep(100);
    value.sival_int = i;
    while (sigqueue(getpid(), SIGRTMIN + i % 2, value)) CHECK(errno == EAGAIN), usleep(100);
    if (i % 16 == 0) usleep(100);
  }
  CHECK(has_come(&workers[0].queued, p->count * 8));
  for (int i = 0; i < p->count * 8; i++) CHECK(has_come(&process_queued[i], 1));
  return NULL;
}

// ---- Calls that must be interrupted, and calls that must not ------------------------------------------------------
static volatile int blocked_tid, returned, result, result_errno;
static int ends[2], listener, wait_kind;
static void quiet(int sig) { (void)sig; }
static void* block_in_call(void* argument) {
  (void)argument;
  blocked_tid = (int)syscall(SYS_gettid);
  char byte;
  struct pollfd p = {ends[0], POLLIN, 0};
  sigset_t none;
  sigemptyset(&none);
  int r = -1, word = 0;
  switch (wait_kind) {
    case 0: r = (int)read(ends[0], &byte, 1); break;
    case 1: r = poll(&p, 1, -1); break;
    case 2: r = sigsuspend(&none); break;
    case 3: r = accept(listener, NULL, NULL); break;
    case 4: { int e = epoll_create1(0); struct epoll_event event; r = epoll_pwait(e, &event, 1, -1, &none); break; }
    case 5: r = (int)syscall(SYS_futex, &word, 0, 0, NULL, NULL, 0); break;
    case 6: r = pause(); break;
    case 7: r = nanosleep(&(struct timespec){1000, 0}, NULL); break;
  }
  result_errno = errno, result = r;
  __sync_synchronize();
  returned = 1;
  return NULL;
}
static int is_in_call(void) {
  static const int numbers[] = {SYS_read, SYS_poll, SYS_rt_sigsuspend, SYS_accept, SYS_epoll_pwait, SYS_futex, SYS_pause, SYS_nanosleep};
  char path[64], text[64] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", blocked_tid);
  int fd = open(path, O_RDONLY), n = fd < 0 ? -1 : (int)read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  int number = n > 0 && text[0] >= '0' && text[0] <= '9' ? atoi(text) : -1;
  return number == numbers[wait_kind] || (number == SYS_clock_nanosleep && wait_kind == 7) || number == SYS_restart_syscall;
}
static void check_blocking(int restarts) {
  struct sigaction a = {.sa_handler = quiet, .sa_flags = restarts ? SA_RESTART : 0};
  CHECK(sigaction(SIGURG, &a, NULL) == 0);
  int always_ends = wait_kind == 1 || wait_kind == 2 || wait_kind == 4 || wait_kind == 6 || wait_kind == 7;
  returned = blocked_tid = 0;
  pthread_t thread;
  CHECK(pipe(ends) == 0);
  CHECK(pthread_create(&thread, NULL, block_in_call, NULL) == 0);
  while (!blocked_tid || !is_in_call()) sched_yield();
  usleep(200);
  CHECK(pthread_kill(thread, SIGURG) == 0);
  if (restarts && !always_ends) {
    usleep(2000);
    CHECK(!returned);
    if (wait_kind == 0) CHECK(write(ends[1], "x", 1) == 1);
    else a.sa_flags = 0, sigaction(SIGURG, &a, NULL);
  }
  double begin = seconds();
  for (; !returned; usleep(50)) {
    CHECK(seconds() - begin < patience);
    // (One that comes just before the call is begun again does not end it.)
    if (restarts && !always_ends && wait_kind != 0 && is_in_call()) pthread_kill(thread, SIGURG), usleep(1000);
  }
  pthread_join(thread, NULL);
  if (restarts && wait_kind == 0) CHECK(result == 1);
  else CHECK(result == -1 && result_errno == EINTR);
  close(ends[0]), close(ends[1]);
}

int main(int argc, char** argv) {
  random_state = strtoull(argc > 1 ? argv[1] : "1", NULL, 10) * 0x9E3779B97F4A7C15 + 1;
  if (argc > 2) patience = atof(argv[2]);
  may_end_more = argc > 3;
  for (int i = 0; i < 8; i++) next(2);
  guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sockaddr_un name = {AF_UNIX, ""};
  listener = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(bind(listener, (struct sockaddr*)&name, sizeof(sa_family_t)) == 0 && listen(listener, 1) == 0);
  worker_count = 1 + (int)next(workers_most);
  for (int i = 0; i < 5; i++) is_raised[faults[i]] = faults[i] == SIGTRAP || (faults[i] != SIGBUS && next(2));
  choose_actions();
  sigset_t all;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);  // workers have masks of their own; this thread handles nothing
  for (int i = 0; i < worker_count; i++) {
    workers[i].altstack = aligned_alloc(64, altstack_size);
    if (next(2)) sigaddset(&workers[i].mask, SIGCONT);
    CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < worker_count; i++)
    while (!workers[i].rounds) sched_yield();
  static struct plan plans[3];
  pthread_t senders[3];
  for (int k = 0; k < 3; k++) {
    plans[k].count = 8 + (int)next(56);
    for (int i = 0; i < 64; i++) {
      do plans[k].kinds[i] = sent_kinds[next(8)];
      while (k == 1 && is_raised[plans[k].kinds[i]]);
    }
  }
  int64_t period = (int64_t)(20 << next(8));  // µs; natively a handler takes a few
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  switch (next(4)) {
    case 0: CHECK(setitimer(ITIMER_REAL, &(struct itimerval){{0, period}, {0, period}}, NULL) == 0); break;
    case 1: CHECK(timer_settime(timer, 0, &(struct itimerspec){{0, period * 1000}, {0, 1}}, NULL) == 0); break;
    case 2: CHECK(setitimer(ITIMER_PROF, &(struct itimerval){{0, period}, {0, period}}, NULL) == 0); break;
  }
  CHECK(pthread_create(&senders[0], NULL, send_to_process, &plans[0]) == 0);
  CHECK(pthread_create(&senders[1], NULL, send_to_thread, &plans[1]) == 0);
  CHECK(pthread_create(&senders[2], NULL, queue_numbers, &plans[2]) == 0);
  for (int k = 0; k < 3; k++) pthread_join(senders[k], NULL);
  CHECK(timer_delete(timer) == 0);
  CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0 && setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL) == 0);
  for (int i = 0; i < worker_count; i++) {
    workers[i].stop = 1;
    pthread_join(workers[i].thread, NULL);
  }
  sigset_t some = all;
  sigdelset(&some, SIGURG);
  sigdelset(&some, SIGTRAP);  // (a sample that waits behind this mask would end a call that has a mask of its own)
  CHECK(pthread_sigmask(SIG_SETMASK, &some, NULL) == 0);
  for (int i = 0; i < 4; i++) wait_kind = (int)next(8), check_blocking((int)next(2));
  CHECK(write(1, "ok\n", 3) == 3);
  return 0;
}
