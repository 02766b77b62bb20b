// The operations of operate.cc in programs that run: with signals and faults the programs behave as natively; records come whole, and all of
// them, from threads that end, processes that fork, and those that are killed.
#include "instrument/buffer.h"
#include "instrument/operands.h"
#include "probes_fixture.h"
#include "rt/buffer.h"
#include "x86/operands.h"

namespace weir::engine {
namespace {

using instrument::Condition;

x86::MemoryOperands operands_of(const Subject& s, uint32_t i) {
  const x86::Insn& insn = s.function.insns[i];
  return x86::memory_operands(insn, s.code(insn.pc, insn.shape->length));
}

// ---- Nothing is noticed --------------------------------------------------------------------------------------------

// What can be asked of each operand and each transfer, a part out of line, and flags that are overwritten, before every instruction.
void plan_all_operands(const Subject& s, Counters& c, Plan& p) {
  using enum Temp;
  Counter counter = c.allocate();
  for (uint32_t i = 0; i < s.function.insns.size(); i++) {
    const x86::Insn& insn = s.function.insns[i];
    auto operands = operands_of(s, i);
    for (uint8_t n = 0; n < operands.size(); n++) {
      bool is_indexed = operands[n].extent == x86::Extent::Indexed;
      p.insert(Where::Before, i,
               {{.kind = is_indexed ? Op::GetElement : Op::GetAddress, .temp = A, .count = n},
                {.kind = instrument::has_extent(operands[n]) ? Op::GetExtent : Op::GetAddress, .temp = B, .count = n},
                {.kind = Op::Set, .temp = C, .value = int64_t(i)},
                {.kind = Op::Multiply, .temp = C, .other = B, .by_temp = true},
                {.kind = Op::ColdIf, .temp = C, .count = 2, .condition = Condition::AboveOrEqual, .value = 100},
                {.kind = Op::Xor, .temp = C, .other = A, .by_temp = true},
                {.kind = Op::ShiftRight, .temp = C, .other = D, .by_temp = true},
                {.kind = Op::StoreCounter, .temp = C, .counter = counter}});
    }
    bool transfers = insn.kind() == x86::Kind::CallIndirect || insn.kind() == x86::Kind::JumpIndirect ||
                     insn.kind() == x86::Kind::Return;
    if (transfers)
      p.insert(Where::Before, i,
               {{.kind = Op::GetTarget, .temp = D}, {.kind = Op::StoreCounter, .temp = D, .counter = counter}});
  }
}

const char* const busy_c = R"(
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
static volatile long ticks;
static __thread long mine;
static void on_tick(int s) { ticks++; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *work(void *seed) {
  int *numbers = malloc(4000 * sizeof(int));
  unsigned long sum = (unsigned long)seed;
  for (int round = 0; round < 30; round++) {
    for (int i = 0; i < 4000; i++) numbers[i] = (sum = sum * 6364136223846793005ul + 1442695040888963407ul) >> 33;
    qsort(numbers, 4000, sizeof(int), compare);
    char text[300];
    memset(text, 'a' + round % 26, sizeof text), text[299] = 0;
    sum += strlen(text) + numbers[7], mine += numbers[round];
  }
  free(numbers);
  return (void *)(sum + mine);
}
int main() {
  struct itimerval often = {{0, 500}, {0, 500}};
  signal(SIGALRM, on_tick);
  setitimer(ITIMER_REAL, &often, NULL);
  pthread_t threads[3];
  void *sum = 0, *all = work((void *)9);
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], &sum), all += (long)sum;
  printf("%lu\n", (unsigned long)all);
  return ticks == 0;
}
)";

TEST(OperationsRun, Signals) {
  Program p = compile("busy", busy_c, "-pthread");
  run_same({p.path}, plan_all_operands);
}

// ---- Faults --------------------------------------------------------------------------------------------------------

// The probe reads what the instruction is about to read, and faults in its place.
const char* const faults_c = R"(
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
static char *page;
static unsigned long seen[18], address, after[16];
static void on_fault(int s, siginfo_t *info, void *context) {
  ucontext_t *c = context;
  for (int i = 0; i < 16; i++) seen[i] = c->uc_mcontext.gregs[i];
  seen[16] = c->uc_mcontext.gregs[REG_RIP], seen[17] = c->uc_mcontext.gregs[REG_EFL] & 0xcd5;
  address = (unsigned long)info->si_addr;
  mprotect(page, 4096, PROT_READ);
}
unsigned long faulting(void *page, unsigned long flags, unsigned long *after);
asm("faulting: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdx; push %rsi; popfq\n"
    "mov $101, %eax; mov $102, %ecx; mov $103, %edx; mov $104, %ebx; mov $105, %ebp; mov $106, %esi\n"
    "mov $108, %r8d; mov $109, %r9d; mov $110, %r10d; mov $111, %r11d; mov $112, %r12d; mov $113, %r13d; mov $114, %r14d; mov $115, %r15d\n"
    "the_load: mov 8(%rdi,%rcx,4), %rax\n"
    "pushfq; push %rcx; mov 16(%rsp), %rcx; mov %rax, (%rcx); mov %rdx, 8(%rcx); mov %rbx, 16(%rcx); mov %rbp, 24(%rcx); mov %rsi, 32(%rcx)\n"
    "mov %r8, 40(%rcx); mov %r9, 48(%rcx); mov %r10, 56(%rcx); mov %r11, 64(%rcx); mov %r12, 72(%rcx); mov %r13, 80(%rcx)\n"
    "mov %r14, 88(%rcx); mov %r15, 96(%rcx); mov %rdi, 104(%rcx); pop %rax; mov %rax, 112(%rcx); pop %rax; pop %rdx\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; and $0xcd5, %eax; ret");
int main() {
  page = mmap((void *)0x30000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  memset(page, 77, 4096);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  for (unsigned long flags = 0; flags < 64; flags++) {
    unsigned long bits = 0x202, all[6] = {1, 4, 16, 64, 128, 2048};
    for (int i = 0; i < 6; i++) if (flags >> i & 1) bits |= all[i];
    mprotect(page, 4096, PROT_NONE);
    unsigned long result = faulting(page, bits, after);
    printf("%lx %lx:", result, address);
    seen[REG_RSP] = seen[REG_RAX] = 0;  // (the load overwrites it: it was dead)
    for (int i = 0; i < 18; i++) printf(" %lx", seen[i]);
    for (int i = 0; i < 15; i++) printf(" %lx", after[i]);
    puts("");
  }
}
)";

TEST(OperationsRun, Faults) {
  using enum Temp;
  Program p = compile("faults", faults_c);
  const std::vector<Op> probes[] = {
      {{.kind = Op::GetAddress, .temp = A}, {.kind = Op::Load, .temp = B, .other = A, .size = 1}},
      {{.kind = Op::GetAddress, .temp = A},
       {.kind = Op::Set, .temp = B, .value = 5},
       {.kind = Op::Set, .temp = C, .value = 6},
       {.kind = Op::Multiply, .temp = B, .other = C, .by_temp = true},
       {.kind = Op::Load, .temp = D, .other = A, .size = 8}},
      {{.kind = Op::GetAddress, .temp = D},
       {.kind = Op::Set, .temp = A, .value = 5},
       {.kind = Op::Set, .temp = B, .value = 6},
       {.kind = Op::ColdIf, .temp = B, .other = A, .count = 2, .by_temp = true, .condition = Condition::AboveOrEqual},
       {.kind = Op::ShiftLeft, .temp = A, .other = B, .by_temp = true},
       {.kind = Op::Load, .temp = C, .other = D, .size = 2}},
  };
  uint64_t load = p.symbols.at("the_load");
  for (const auto& ops : probes) {
    int inserted = 0;
    run_same({p.path}, [&](const Subject& s, Counters&, Plan& plan) {
      for (uint32_t i = 0; i < s.function.insns.size(); i++)
        if (s.function.insns[i].pc.value == load) plan.insert(Where::Before, i, ops), inserted++;
    });
    EXPECT_GT(inserted, 0);
  }
}

// ---- Records -------------------------------------------------------------------------------------------------------

constexpr uint32_t buffer_offset = rt::tool_offset + 4096, buffer_size = 1000;

// Two words each: a number, and, of a transfer, where it goes; else rdi.
class Recorder : public TestTool {
 public:
  struct Kept {
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> records;
    uint64_t drained = 0, broken = 0;
  };
  Recorder(Planner planner, std::vector<uint64_t>& cells, Kept& kept) : TestTool(std::move(planner), cells), kept_(kept) {}
  std::unique_ptr<Tool> copy() const override { return std::make_unique<Recorder>(*this); }
  void begin_thread(const instrument::ThreadStart& start) override {
    instrument::begin_buffer(start.memory, buffer_offset, buffer_size);
  }
  void drain(const instrument::Asking& thread) override { keep(thread.memory), kept_.drained++; }
  void collect(const ThreadData& thread) override { keep(thread.memory), TestTool::collect(thread); }

 private:
  void keep(const std::byte* memory) {
    auto bytes = instrument::records_of(memory, buffer_offset, buffer_size);
    kept_.broken += bytes.size() % 16 != 0;
    for (size_t i = 0; i + 16 <= bytes.size(); i += 16) {
      uint64_t words[2];
      memcpy(words, &bytes[i], sizeof words);
      kept_.records[{words[0], words[1]}]++;
    }
  }
  Kept& kept_;
};

std::vector<Op> record(uint64_t number, Op second) {
  using enum Temp;
  second.temp = B;
  return {{.kind = Op::BeginRecord, .temp = A, .value = 16},
          {.kind = Op::Set, .temp = B, .value = int64_t(number)},
          {.kind = Op::Store, .temp = B, .other = A},
          second,
          {.kind = Op::Store, .temp = B, .other = A, .value = 8},
          {.kind = Op::EndRecord, .value = 16}};
}

std::pair<Ran, Recorder::Kept> run_recorder(const Words& command, const Planner& planner) {
  Ran ran;
  Recorder::Kept kept;
  Options options{.command = command, .make_tool = [&] { return std::make_unique<Recorder>(planner, ran.cells, kept); }};
  auto status = run(options);
  EXPECT_TRUE(status);
  ran.status = status.value_or(-1);
  EXPECT_EQ(kept.broken, 0u);
  return {ran, kept};
}

const char* const records_c = R"(
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
unsigned long step(unsigned long n);
asm(".globl step; step: lea 1(%rdi), %rax; ret");
static void *run_to(void *n) { for (unsigned long i = 0; i < (unsigned long)n; i = step(i)) {} return NULL; }
int main(int argc, char **argv) {
  pthread_t threads[4];
  run_to((void *)1000);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run_to, (void *)5000);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  run_to((void *)3);
  if (fork() == 0) { run_to((void *)20); if (argc > 2) raise(SIGKILL); _exit(0); }
  wait(NULL);
  run_to((void *)2);
  if (argc == 2) execl(argv[0], argv[0], "again", "and", "on", NULL);
  raise(SIGKILL);
}
)";

TEST(OperationsRun, Records) {
  Program p = compile("records", records_c, "-pthread");
  uint64_t step = p.symbols.at("step");
  auto [ran, kept] = run_recorder({p.path, "first"}, at(step, [&](const Subject&, Counters&, Plan& plan) {
                                    plan.insert(Where::Entry, 0, record(1, {.kind = Op::GetRegister, .reg = x86::RDI}));
                                  }));
  EXPECT_EQ(ran.status & 0xff, SIGKILL);
  EXPECT_GT(kept.drained, 600u);
  constexpr uint64_t runs = 2;
  for (uint64_t i = 0; i < 5000; i++) {
    uint64_t expected = 4 + (i < 1000) + (i < 3) + (i < 20) + (i < 2);
    ASSERT_EQ((kept.records[{1, i}]), runs * expected) << i;
  }
  EXPECT_EQ(kept.records.size(), 5000u);
}

// ---- Targets -------------------------------------------------------------------------------------------------------

const char* const targets_c = R"(
long one(long x), two(long x);
asm(".globl one, two, jump_there, call_there, back; one: lea 1(%rdi), %rax; ret\n two: lea (%rdi,%rdi,2), %rax; ret\n"
    "jump_there: jmp *table(,%rsi,8)\n call_there: push %r12; mov table(,%rsi,8), %r12; call *%r12\n back: pop %r12; ret\n"
    "memory_there: sub $8, %rsp; call *table(,%rsi,8)\n back_too: add $8, %rsp; ret");
long (*table[])(long) = {one, two};
long jump_there(long, long), call_there(long, long), memory_there(long, long);
int main() {
  long sum = 0;
  for (int i = 0; i < 100; i++) sum += jump_there(i, i % 2) + call_there(i, i % 4 == 0) + memory_there(i, i % 5 == 0);
  return sum % 100;
}
)";

TEST(OperationsRun, Targets) {
  Program p = compile("targets", targets_c);
  auto of = [&](const char* name) { return p.symbols.at(name); };
  auto [ran, kept] = run_recorder({p.path}, [&](const Subject& s, Counters&, Plan& plan) {
    for (uint64_t name : {of("jump_there"), of("call_there"), of("memory_there"), of("one"), of("two")})
      if (s.function.entry.value == name)
        for (uint32_t i = 0; i < s.function.insns.size(); i++) {
          x86::Kind k = s.function.insns[i].kind();
          if (k == x86::Kind::CallIndirect || k == x86::Kind::JumpIndirect || k == x86::Kind::Return)
            plan.insert(Where::Before, i, record(name, {.kind = Op::GetTarget}));
        }
  });
  EXPECT_EQ(ran.status, run_native({p.path}).status);
  auto count = [&](const char* from, const char* to) { return kept.records[{of(from), of(to)}]; };
  EXPECT_EQ(count("jump_there", "one"), 50u);
  EXPECT_EQ(count("jump_there", "two"), 50u);
  EXPECT_EQ(count("call_there", "one"), 75u);
  EXPECT_EQ(count("call_there", "two"), 25u);
  EXPECT_EQ(count("memory_there", "one"), 80u);
  EXPECT_EQ(count("memory_there", "two"), 20u);
  EXPECT_EQ(count("one", "back"), 75u);
  EXPECT_EQ(count("two", "back_too"), 20u);
}

}  // namespace
}  // namespace weir::engine
