// Functions of an object file of gcc's get probes and a new place, as a static rewriter would give them: they are lowered with the
// placement of object_placement.h, linked at some address in this process, and called. They return what the original ones return and leave the same
// data, and what their counters say is what the original ones do, step by step.
#include "object_placement.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <functional>
#include <map>
#include <thread>

#include "compiled.h"
#include "tools/icount/icount.h"
#include "x86/liveness.h"

namespace weir::instrument {
namespace {

using Function = long(long, long, long);
using Arguments = std::array<long, 3>;

// ---- What a thread has ----

// The slots of a thread block that probes use, and counters.
constexpr uint32_t slots = 4096, cells = 4096;
struct OwnThread {
  std::byte block[slots];
  uint64_t counters[cells];
};
alignas(64) thread_local OwnThread own_thread;

int32_t from_fs(uint64_t offset) {
  CHECK(offset + 8 <= slots || (offset >= rt::counters_offset && offset + 8 <= rt::counters_offset + 8 * cells));
  uint64_t inside = offset < slots ? offset : offsetof(OwnThread, counters) + offset - rt::counters_offset;
  return static_cast<int32_t>(reinterpret_cast<char*>(&own_thread) - static_cast<char*>(__builtin_thread_pointer()) +
                              static_cast<int64_t>(inside));
}

// ---- The object file ----

struct Symbol {
  std::string name;
  uint64_t begin, size;  // in memory
};

// An object file, loaded twice: as it is, and once more its data, for the code that will be made of its functions.
class Object {
 public:
  static constexpr size_t room = 1 << 20;

  explicit Object(const std::string& path) : file_(test::read_bytes(path)) {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, 4 * room, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(memory_ != MAP_FAILED);
    auto* header = at<Elf64_Ehdr>(0);
    sections_ = {at<Elf64_Shdr>(header->e_shoff), header->e_shnum};
    uint64_t used = 0;
    for (const Elf64_Shdr& s : sections_) {
      offsets_.push_back(used);
      if (!(s.sh_flags & SHF_ALLOC)) continue;
      used = (used + 63) / 64 * 64;
      offsets_.back() = used;
      if (s.sh_type != SHT_NOBITS) memcpy(memory_ + used, at<std::byte>(s.sh_offset), s.sh_size);
      if (s.sh_flags & SHF_EXECINSTR && s.sh_size) {
        CHECK(!text_.size());
        text_ = {{address(used)}, {address(used + s.sh_size)}};
      }
      used += s.sh_size;
    }
    CHECK(used < room);
    memcpy(memory_ + room, memory_, room);
    link([](uint64_t a) { return a; }, 0, {});
    for (const Elf64_Sym& s : symbols())
      if (ELF64_ST_TYPE(s.st_info) == STT_FUNC) functions.push_back({name(s), address_of(s), s.st_size});
  }
  ~Object() { munmap(memory_, 4 * room); }

  // Resolves all relocations in the data (and, of the original, the code), for addresses of the program that `moved` moves. `bases`: where
  // tables of distances begin, whose entries count from there.
  void link(const std::function<uint64_t(uint64_t)>& moved, uint64_t distance, const std::vector<uint64_t>& bases) {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_RELA || !(sections_[s.sh_info].sh_flags & SHF_ALLOC)) continue;
      bool is_code = sections_[s.sh_info].sh_flags & SHF_EXECINSTR;
      if (is_code && distance) continue;
      for (const Elf64_Rela& r : std::span(at<Elf64_Rela>(s.sh_offset), s.sh_size / sizeof(Elf64_Rela))) {
        uint64_t place = address(offsets_[s.sh_info] + r.r_offset);
        uint64_t target = address_of(symbols()[ELF64_R_SYM(r.r_info)]) + static_cast<uint64_t>(r.r_addend);
        auto* bytes = reinterpret_cast<char*>(place + distance);
        if (ELF64_R_TYPE(r.r_info) == R_X86_64_64) {
          target = moved(target);
          memcpy(bytes, &target, 8);
          continue;
        }
        CHECK(ELF64_R_TYPE(r.r_info) == R_X86_64_PC32 || ELF64_R_TYPE(r.r_info) == R_X86_64_PLT32);
        uint64_t base = 0;  // the entry of a table is target - base, written as target + (place - base) - place
        for (uint64_t b : bases)
          if (b <= place) base = std::max(base, b);
        uint64_t value = bases.empty() ? target - place : moved(target - (place - base)) - moved(base);
        auto value32 = static_cast<int32_t>(value);
        memcpy(bytes, &value32, 4);
      }
    }
  }

  AppRange text() const { return text_; }
  bool has(uint64_t a) const { return a >= address(0) && a < address(room); }
  std::byte* data_of_copy() const { return memory_ + room; }
  std::byte* data() const { return memory_; }
  // Data that both may write to: all but the code.
  std::vector<std::byte> state(bool of_copy) const {
    std::vector<std::byte> all;
    for (size_t i = 0; i < sections_.size(); i++) {
      const Elf64_Shdr& s = sections_[i];
      if (!(s.sh_flags & SHF_ALLOC) || !(s.sh_flags & SHF_WRITE) || std::string_view(section_name(s)).contains("rel.ro"))
        continue;
      std::byte* begin = memory_ + offsets_[i] + (of_copy ? room : 0);
      all.insert(all.end(), begin, begin + s.sh_size);
    }
    return all;
  }
  void restore(const std::vector<std::byte>& original) { memcpy(memory_, original.data(), room); }
  std::vector<std::byte> everything() const { return {memory_, memory_ + room}; }
  // For code.
  std::span<std::byte> behind() const { return {memory_ + 2 * room, 2 * room}; }
  Function* function(std::string_view name) const {
    for (const Symbol& s : functions)
      if (s.name == name) return reinterpret_cast<Function*>(s.begin);
    return nullptr;
  }

  std::vector<Symbol> functions;

 private:
  template <class T>
  const T* at(uint64_t offset) const {
    return reinterpret_cast<const T*>(file_.data() + offset);
  }
  uint64_t address(uint64_t offset) const { return reinterpret_cast<uint64_t>(memory_) + offset; }
  const Elf64_Shdr& table() const {
    return *std::ranges::find(sections_, static_cast<Elf64_Word>(SHT_SYMTAB), &Elf64_Shdr::sh_type);
  }
  std::span<const Elf64_Sym> symbols() const {
    return {at<Elf64_Sym>(table().sh_offset), table().sh_size / sizeof(Elf64_Sym)};
  }
  std::string name(const Elf64_Sym& s) const { return at<char>(sections_[table().sh_link].sh_offset + s.st_name); }
  const char* section_name(const Elf64_Shdr& s) const {
    return at<char>(sections_[at<Elf64_Ehdr>(0)->e_shstrndx].sh_offset + s.sh_name);
  }
  uint64_t address_of(const Elf64_Sym& s) const {
    CHECK(s.st_shndx != SHN_UNDEF && s.st_shndx < sections_.size());
    return address(offsets_[s.st_shndx] + s.st_value);
  }

  std::vector<std::byte> file_;
  std::byte* memory_;
  std::span<const Elf64_Shdr> sections_;
  std::vector<uint64_t> offsets_;  // by section, in memory
  AppRange text_{};
};

// ---- A static driver, as small as it can be ----

struct Unit {
  x86::Function function;
  Lowered lowered;
  std::vector<std::byte> code;
  std::vector<Relocation> relocations;
};

using Planner = std::function<void(const x86::Function&, Counters&, Plan&)>;

class Rewritten {
 public:
  Rewritten(Object& object, const Planner& planner) : object_(object) {
    x86::ReadMemory read = [&](AppPc pc, size_t size) -> std::span<const std::byte> {
      return object.has(pc.value) ? std::span(reinterpret_cast<const std::byte*>(pc.value), size)
                                  : std::span<const std::byte>();
    };
    for (const Symbol& s : object.functions) {
      Unit& u = units.emplace_back();
      u.function = x86::lift({s.begin}, {{s.begin}, {s.begin + s.size}}, read, read);
      Plan plan;
      planner(u.function, counters, plan);
      CHECK(counters.size() < cells);
      u.code.resize(size_bound(u.function, plan, {s.begin}));
      x86::Liveness live = x86::liveness(u.function);
      ObjectPlacement placement;
      lower({.function = u.function,
             .liveness = live,
             .plan = plan,
             .code = read,
             .out = u.code,
             .base = {},
             .placement = placement},
            u.lowered);
      EXPECT_EQ(u.lowered.not_supported, 0u) << s.name;
      u.code.resize(u.lowered.size);
      u.relocations = placement.take(u.code);
    }
  }

  // At `at`, in the memory behind the object.
  void link(size_t at) {
    memory_ = object_.behind().subspan(at);
    begins_.clear();
    size_t used = write_door();
    for (const Unit& u : units) {
      used = (used + 63) / 64 * 64;
      begins_.push_back(used);
      memcpy(&memory_[used], u.code.data(), u.code.size());
      used += u.code.size();
    }
    std::vector<uint64_t> bases;
    for (size_t i = 0; i < units.size(); i++)
      for (const Relocation& r : units[i].relocations) {
        resolve(begins_[i], r);
        if (r.kind == Relocation::Address && !object_.text().contains({r.target})) bases.push_back(r.target);
      }
    object_.link([this](uint64_t a) { return moved(a, true); }, Object::room, bases);
  }

  Function* function(std::string_view name) const {
    return reinterpret_cast<Function*>(moved(reinterpret_cast<uint64_t>(object_.function(name)), false));
  }

  std::vector<Unit> units;
  Counters counters;

 private:
  // Where something of the program is now. A function whose address is taken is entered as through the table.
  uint64_t moved(uint64_t a, bool is_taken) const {
    if (!object_.text().contains({a})) return a + Object::room;
    for (size_t i = 0; i < units.size(); i++) {
      const Lowered& l = units[i].lowered;
      uint64_t begin = reinterpret_cast<uint64_t>(&memory_[begins_[i]]);
      if (a == units[i].function.entry.value) return begin + (is_taken ? l.table.front().offset : l.entry);
      auto b = std::ranges::find(l.blocks, AppPc{a}, &BlockPlace::app);
      if (b != l.blocks.end()) return begin + b->offset;
    }
    ADD_FAILURE() << fmt::format("{:#x} of the text is in the middle of a block", a - object_.text().begin.value);
    return 0;
  }
  void resolve(size_t begin, const Relocation& r) {
    std::byte* place = &memory_[begin + r.offset];
    int64_t value = 0;
    if (r.kind == Relocation::Thread) {
      value = from_fs(r.target);
    } else {
      uint64_t target = r.kind == Relocation::Door ? reinterpret_cast<uint64_t>(&memory_[0]) : moved(r.target, is_named(r));
      value = static_cast<int64_t>(target - reinterpret_cast<uint64_t>(&memory_[begin + r.end]));
    }
    CHECK(value == static_cast<int32_t>(value));
    memcpy(place, &value, 4);
  }
  // (Of a call or a jump the byte before the displacement, or the two, are its opcode; else it is an operand.)
  bool is_named(const Relocation& r) const {
    for (const Unit& u : units)
      for (const Relocation& other : u.relocations)
        if (&other == &r) {
          auto b = static_cast<uint8_t>(u.code[r.offset - 1]), a = static_cast<uint8_t>(u.code[r.offset - 2]);
          return !(b == 0xe8 || b == 0xe9 || (a == 0x0f && (b & 0xf0) == 0x80));
        }
    return false;
  }
  // The runtime: it counts its calls, and keeps everything else.
  size_t write_door() {
    std::vector<uint32_t> places;
    Emitter e(memory_, {});
    e.reach_thread(0x64, places);
    constexpr uint32_t calls = offsetof(rt::ThreadBlock, target);
    e.mov(thread(gs_spill(3)), x86::RAX);
    e.mov(x86::RAX, thread(calls));
    e.lea(x86::RAX, at(x86::RAX, 1));
    e.mov(thread(calls), x86::RAX);
    e.mov(x86::RAX, thread(gs_spill(3)));
    e.jmp(x86::RCX);
    for (uint32_t p : places) {
      uint32_t offset;
      memcpy(&offset, &memory_[p], 4);
      resolve(0, {Relocation::Thread, p, 0, offset});
    }
    return e.offset();
  }

  Object& object_;
  std::span<std::byte> memory_;
  std::vector<size_t> begins_;
};

// ---- What the original does, step by step ----

struct Steps {
  AppRange text{};
  std::vector<uint32_t> trace;  // offsets in the text
  size_t count = 0;

  void note(uint64_t pc) {
    if (text.contains({pc}) && count < trace.size()) trace[count++] = static_cast<uint32_t>(pc - text.begin.value);
  }
} steps;

// The flags are popped, and the first trap comes behind the instruction that follows.
extern "C" long weir_test_stepped(Function* f, const long* arguments);
asm(R"(
        .text
weir_test_stepped:
        push %rbx
        mov %rdi, %rax
        mov %rsi, %rbx
        mov 0(%rbx), %rdi; mov 8(%rbx), %rsi; mov 16(%rbx), %rdx
        pushfq; orq $0x100, (%rsp); popfq
        call *%rax
        pushfq; andq $~0x100, (%rsp); popfq
        pop %rbx
        ret
)");

// How often each block is executed, and how often its last instruction is followed by the next block or by another.
struct Truth {
  std::map<uint64_t, uint64_t> blocks, fell, entries, returned;
  uint64_t instructions = 0;

  static Truth of(const Object& object, const std::vector<Unit>& units, const std::function<void()>& run) {
    steps.text = object.text();
    steps.trace.resize(8 << 20);
    steps.count = 0;
    struct sigaction action {
    }, old{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t*, void* c) {
      steps.note(static_cast<uint64_t>(static_cast<ucontext_t*>(c)->uc_mcontext.gregs[REG_RIP]));
    };
    sigaction(SIGTRAP, &action, &old);
    run();
    sigaction(SIGTRAP, &old, nullptr);
    CHECK(steps.count && steps.count < steps.trace.size());
    Truth truth;
    truth.instructions = steps.count;
    uint64_t begin = steps.text.begin.value;
    std::map<uint64_t, uint64_t> last;  // of a block: where it ends
    std::map<uint64_t, bool> is_call;
    for (const Unit& u : units)
      for (const x86::Block& b : u.function.blocks) {
        const x86::Insn& insn = u.function.insns_of(b).back();
        last[insn.pc.value] = b.end.value;
        is_call[insn.pc.value] = b.ends == x86::BlockEnd::Call;
      }
    for (size_t i = 0; i < steps.count; i++) {
      uint64_t pc = begin + steps.trace[i];
      truth.blocks[pc]++;
      if (i + 1 == steps.count || !last.contains(pc)) continue;
      if (begin + steps.trace[i + 1] == last[pc] && !is_call[pc]) truth.fell[pc]++;
    }
    return truth;
  }
};

// ---- The tests ----

const std::string& compiled() {
  static const std::string path = [] {
    std::string text;
    for (std::byte b : test::read_bytes(std::string(SOURCE_DIRECTORY) + "/object_program.c")) text += static_cast<char>(b);
    return test::build(
        "object.o", "object.c", text,
        "gcc -c -O2 -fPIC -fvisibility=hidden -fno-reorder-functions -fno-reorder-blocks-and-partition "
        "-fno-asynchronous-unwind-tables -fno-stack-protector -mno-red-zone -fno-section-anchors object.c -o object.o");
  }();
  return path;
}

struct Call {
  std::string name;
  Arguments arguments;
};

std::vector<Call> calls() {
  std::vector<Call> all;
  long seed = 12345;
  auto next = [&] {
    return seed = static_cast<long>(static_cast<unsigned long>(seed) * 6364136223846793005u + 1442695040888963407u) >> 3;
  };
  for (const char* name : {"gcd", "machine", "sorted", "hashed", "flags"})
    for (int i = 0; i < 6; i++) all.push_back({name, {next() | 1, next() >> 8 | 1, next() >> 40}});
  for (long n = 0; n < 12; n++) {
    all.push_back({"fib", {n, 0, 0}});
    all.push_back({"dispatch", {n, next() & 7, next() & 255}});
    all.push_back({"parity", {n * 7, next(), next()}});
  }
  return all;
}

long run(Function* f, const Arguments& a) { return f(a[0], a[1], a[2]); }

// Runs everything with and without, at two addresses, in two threads; the counters are those of the last.
template <class Check>
void check(const Planner& planner, Check check_counters) {
  Object object(compiled());
  const std::vector<std::byte> fresh = object.everything();
  Rewritten rewritten(object, planner);
  std::vector<long> expected;
  Truth truth = Truth::of(object, rewritten.units, [&] {
    for (const Call& c : calls()) expected.push_back(weir_test_stepped(object.function(c.name), c.arguments.data()));
  });
  std::vector<std::byte> state = object.state(false);
  for (size_t at : {size_t{0}, size_t{0x8'1240}}) {
    memcpy(object.data_of_copy(), fresh.data(), fresh.size());
    rewritten.link(at);
    OwnThread seen;
    auto run_all = [&] {
      memset(&own_thread, 0, sizeof own_thread);
      size_t i = 0;
      for (const Call& c : calls()) EXPECT_EQ(run(rewritten.function(c.name), c.arguments), expected[i++]) << c.name;
      seen = own_thread;
    };
    OwnThread mine = own_thread;
    std::thread(run_all).join();
    EXPECT_EQ(memcmp(&mine, &own_thread, sizeof mine), 0) << "counted by another thread";
    EXPECT_EQ(object.state(true), state);
    check_counters(rewritten, truth, seen);
  }
}

TEST(ObjectPlacement, CountsInstructionsAsTheOriginalExecutesThem) {
  icount::Icount tool;
  x86::ReadMemory none = [](AppPc, size_t) { return std::span<const std::byte>(); };
  std::function<AppRange(AppPc)> bounds = [](AppPc at) { return AppRange{at, at}; };
  std::function<IsPart(AppPc)> is_part = [](AppPc) { return IsPart::No; };
  auto planner = [&](const x86::Function& f, Counters& counters, Plan& plan) {
    tool.plan({f, 0, 0, none, none, bounds, is_part, true, false}, counters, plan);
  };
  check(planner, [&](const Rewritten&, const Truth& truth, const OwnThread& seen) {
    uint64_t instructions = 0;
    for (const icount::Block& b : tool.blocks()) {
      auto found = truth.blocks.find(b.begin.value);
      uint64_t n = seen.counters[b.counter.index];
      EXPECT_EQ(n, found == truth.blocks.end() ? 0 : found->second) << fmt::format("block {:#x}", b.begin.value);
      instructions += n * b.instructions;
    }
    EXPECT_EQ(instructions, truth.instructions);
    EXPECT_GT(instructions, 10'000u);
  });
}

// All places that a profile has probes at, with the clock in cells, a conditional part, and a routine of the runtime.
TEST(ObjectPlacement, CountsEdgesEntriesAndReturns) {
  struct Place {
    Where where;
    const x86::Function* function;
    uint64_t block, last, end;
    Counter counter;
  };
  std::vector<Place> places;
  uint64_t routine_at = 0;
  auto planner = [&](const x86::Function& f, Counters& counters, Plan& plan) {
    auto count = [&](Where where, uint32_t b) {
      const x86::Block& block = f.blocks[b];
      Counter c = counters.allocate();
      plan.insert(where, b, {Op{.kind = Op::AddCounter, .counter = c, .value = 1}});
      places.push_back({where, &f, block.begin.value, f.insns_of(block).back().pc.value, block.end.value, c});
    };
    count(Where::Entry, f.block_at(f.entry));
    count(Where::Arrival, f.block_at(f.entry));
    if (!routine_at) {
      routine_at = f.entry.value;
      plan.insert(Where::Entry, 0,
                  {Op{.kind = Op::Set, .temp = Temp::A, .value = 1}, Op{.kind = Op::Set, .temp = Temp::B, .value = 2},
                   Op{.kind = Op::Call, .value = 7}});
    }
    for (uint32_t b = 0; b < f.blocks.size(); b++) {
      const x86::Block& block = f.blocks[b];
      plan.insert(Where::Block, b, {Op{.kind = Op::AddClock, .value = block.count}});
      Counter same = counters.allocate(), none = counters.allocate();
      // The first is always added to, the second never.
      plan.insert(Where::Before, block.first,
                  {Op{.kind = Op::GetRegister, .temp = Temp::A, .reg = x86::RSP},
                   Op{.kind = Op::AddCounter, .counter = same, .value = 1},
                   Op{.kind = Op::SkipUnless, .temp = Temp::A, .count = 1, .value = 5},
                   Op{.kind = Op::AddCounter, .counter = none, .value = 1}});
      places.push_back({Where::Before, &f, block.begin.value, 0, 0, same});
      places.push_back({Where::After, &f, 0, 0, 0, none});
      if (block.ends == x86::BlockEnd::Branch) count(Where::Taken, b), count(Where::FallThrough, b);
    }
  };
  check(planner, [&](const Rewritten& rewritten, const Truth& truth, const OwnThread& seen) {
    auto executed = [&](uint64_t pc) {
      auto found = truth.blocks.find(pc);
      return found == truth.blocks.end() ? 0 : found->second;
    };
    auto fell = [&](uint64_t pc) {
      auto found = truth.fell.find(pc);
      return found == truth.fell.end() ? 0 : found->second;
    };
    for (const Place& p : places) {
      uint64_t n = seen.counters[p.counter.index];
      std::string which = fmt::format("place {} of block {:#x}", int(p.where), p.block);
      uint64_t taken = executed(p.last) - fell(p.last);
      if (p.where == Where::Entry || p.where == Where::Arrival) continue;  // see below
      EXPECT_EQ(n, p.where == Where::Before        ? executed(p.block)
                   : p.where == Where::After       ? 0
                   : p.where == Where::FallThrough ? fell(p.last)
                                                   : taken)
          << which;
    }
    // Into a function there are two ways; pointers to functions lead to the first.
    uint64_t arrivals = 0;
    for (size_t i = 0; i + 1 < places.size(); i++) {
      if (places[i].where != Where::Entry) continue;
      uint64_t entered = seen.counters[places[i].counter.index], arrived = seen.counters[places[i + 1].counter.index];
      EXPECT_LE(arrived, entered);
      arrivals += arrived;
      if (places[i].block == routine_at) {
        uint64_t calls, argument;
        memcpy(&calls, seen.block + offsetof(rt::ThreadBlock, target), 8);
        memcpy(&argument, seen.block + offsetof(rt::ThreadBlock, routine_args) + 8, 8);
        EXPECT_EQ(calls, entered);
        EXPECT_TRUE(!entered || argument == 2);
      }
    }
    EXPECT_EQ(arrivals, 11u * 12 / 2 + 12);  // those of dispatch()
    EXPECT_EQ(seen.counters[0] + seen.counters[1], truth.instructions);
    EXPECT_GT(rewritten.counters.size(), 100u);
  });
}

// Nothing is presumed that only the cache has: %gs, and a processor with more than x86-64 has.
TEST(ObjectPlacement, PresumesNothing) {
  Object object(compiled());
  Rewritten rewritten(object, [](const x86::Function& f, Counters& counters, Plan& plan) {
    for (uint32_t b = 0; b < f.blocks.size(); b++)
      plan.insert(Where::Block, b, {Op{.kind = Op::AddCounter, .counter = counters.allocate(), .value = 1}});
  });
  size_t has_tables = 0, threads = 0;
  for (const Unit& u : rewritten.units) {
    has_tables += !u.function.jump_targets.empty();
    for (const Relocation& r : u.relocations) threads += r.kind == Relocation::Thread;
    EXPECT_TRUE(u.lowered.exits.empty());
    for (size_t at = 0; at < u.code.size();) {
      x86::Insn insn = x86::decode(std::span(u.code).subspan(at), {at});
      ASSERT_TRUE(insn.shape->known);
      EXPECT_FALSE(insn.shape->uses_gs);
      EXPECT_FALSE((insn.shape->reads.vec | insn.shape->writes.vec) >> 16);
      at += insn.shape->length;
    }
  }
  EXPECT_GT(has_tables, 0u);
  EXPECT_GT(threads, 50u);
}

}  // namespace
}  // namespace weir::instrument
