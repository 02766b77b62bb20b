// Memory operands against real programs: they are executed one instruction at a time, and all that changes in their memory must
// have been told before.
//
// A copy of everything that the program can write is kept beside it. After an instruction, what it was told to write is read again;
// now and then all is compared, the more seldom, the more there is. What else has changed, an instruction has written without our
// knowledge. System calls write what they like: behind them the copy is made anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stepped_program.h"
#include "x86/operands.h"

namespace weir::x86 {
namespace {

// A program's memory as it should be, by what was told.
class ExpectedMemory {
 public:
  explicit ExpectedMemory(const SteppedProgram& program) : program_(program) { renew(); }

  void renew() {
    areas_ = program_.areas();
    for (Area& a : areas_)
      if (a.writable) a.copy.resize(a.end - a.begin), program_.read(a.begin, a.copy);
  }

  // Also where the stack has grown meanwhile.
  bool can_read(const Bytes& b) {
    return std::ranges::any_of(areas_,
                               [&](const Area& a) { return a.readable && a.begin <= b.address && b.address < a.end; }) ||
           grow(b);
  }

  // Reads what was told. False: it cannot be written.
  bool accept(const Bytes& b) {
    Area* a = writable_at(b.address);
    if (!a && grow(b)) a = writable_at(b.address);
    if (!a) return false;
    uint64_t size = std::min(b.size, a->end - b.address);
    program_.read(b.address, std::span(a->copy).subspan(b.address - a->begin, size));
    return size == b.size || accept({a->end, b.size - size});
  }

  size_t size() const {
    size_t all = 0;
    for (const Area& a : areas_) all += a.copy.size();
    return all;
  }

  // The addresses where the program's memory is another than expected.
  std::vector<uint64_t> differences() {
    std::vector<uint64_t> all;
    for (Area& a : areas_) {
      if (!a.writable) continue;
      now_.resize(a.copy.size());
      size_t size = program_.read(a.begin, now_);
      if (memcmp(now_.data(), a.copy.data(), size) == 0) continue;
      for (size_t i = 0; i < size; ++i)
        if (now_[i] != a.copy[i]) all.push_back(a.begin + i);
    }
    return all;
  }

 private:
  Area* writable_at(uint64_t address) {
    for (Area& a : areas_)
      if (a.writable && a.begin <= address && address < a.end) return &a;
    return nullptr;
  }

  // An area that has grown downwards: its new part begins as it is now, which is with zeros but for what was just written.
  bool grow(const Bytes& b) {
    for (Area& now : program_.areas())
      for (Area& a : areas_)
        if (now.end == a.end && now.begin < a.begin && now.begin <= b.address && b.address < a.begin && a.writable) {
          std::vector<std::byte> added(a.begin - now.begin);
          program_.read(now.begin, added);
          a.copy.insert(a.copy.begin(), added.begin(), added.end());
          a.begin = now.begin;
          return true;
        }
    return false;
  }

  const SteppedProgram& program_;
  std::vector<Area> areas_;
  std::vector<std::byte> now_;
};

// What a state of no fixed size takes at most on this processor.
uint32_t largest_state() {
  unsigned a, b, size, d;
  __cpuid_count(13, 0, a, b, size, d);
  return size;
}

class Steps : public testing::Test {
 protected:
  // What is wrong in `limit` steps, of the loader or behind it; the program may end before. Of what is told to be written, every
  // forget-th is forgotten.
  std::string problem_of(const std::vector<std::string>& command, size_t limit, bool skip_loader, size_t forget = 0) {
    SteppedProgram program(command);
    if (skip_loader) program.run_to_entry();
    ExpectedMemory memory(program);
    std::deque<Executed> recent;
    size_t written = 0, next_comparison = 0;
    for (steps_ = 0; steps_ < limit && program.is_stopped(); ++steps_) {
      user_regs_struct registers = program.registers();
      Executed now{registers.rip, {}};
      auto bytes = std::span(now.code).first(program.read(now.pc, now.code));
      Insn insn = decode(bytes, AppPc{now.pc});
      std::vector<Bytes> writes_told;
      for (auto [operand, b] : told(insn, bytes, program, registers)) {
        if (reads(operand.access) && !memory.can_read(b)) return fmt::format("{} reads {:#x}", now.text(), b.address);
        if (writes(operand.access) && (!forget || ++written % forget != 0)) writes_told.push_back(b);
        reads_ += reads(operand.access), writes_ += writes(operand.access);
      }
      recent.push_back(now);
      if (recent.size() > 64) recent.pop_front();
      bool is_foreign = !insn.shape->known || insn.kind() == Kind::Syscall || insn.kind() == Kind::Trap;
      if (is_foreign || steps_ >= next_comparison) {
        std::string changed = difference(memory, recent);
        if (!changed.empty()) return changed;
        next_comparison = steps_ + std::max<size_t>(32, memory.size() / 2048);
      }
      if (!program.step()) break;
      if (is_foreign) {
        memory.renew();
        continue;
      }
      for (const Bytes& b : writes_told)
        if (!memory.accept(b)) return fmt::format("{} writes {:#x}", now.text(), b.address);
    }
    return {};
  }

  void check(const std::vector<std::string>& command, size_t limit, bool skip_loader) {
    if (access(command[0].c_str(), X_OK) != 0) GTEST_SKIP() << command[0] << " is not here";
    EXPECT_EQ(problem_of(command, limit, skip_loader), "");
    EXPECT_GT(reads_, steps_ / 50);
    EXPECT_GT(writes_, steps_ / 100);
  }

  size_t steps_ = 0, reads_ = 0, writes_ = 0;

 private:
  struct Executed {
    uint64_t pc;
    std::byte code[15];

    std::string text() const {
      std::string line = fmt::format("{:#x}:", pc);
      for (std::byte b : code) line += fmt::format(" {:02x}", std::to_integer<int>(b));
      return line;
    }
  };

  static std::string difference(ExpectedMemory& memory, const std::deque<Executed>& recent) {
    auto differences = memory.differences();
    if (differences.empty()) return {};
    std::string text =
        fmt::format("{} bytes from {:#x} are changed, the last instructions were\n", differences.size(), differences[0]);
    for (const Executed& e : recent) text += e.text() + "\n";
    return text;
  }

  std::vector<std::pair<MemoryOperand, Bytes>> told(const Insn& insn, std::span<const std::byte> bytes,
                                                    const SteppedProgram& program, const user_regs_struct& registers) {
    std::vector<std::pair<MemoryOperand, Bytes>> all;
    Registers r = of(registers);
    for (MemoryOperand o : memory_operands(insn, bytes)) {
      if (needs_vectors(o)) program.read_vectors(r);
      if (o.extent == Extent::Repeated && r.gpr[RCX] != 0) o.extent = Extent::Plain;  // a step is one repetition
      if (o.extent == Extent::State && o.size == 0) o.size = largest_state();
      for (const Bytes& b : bytes_of(o, r))
        if (b.size) all.emplace_back(o, b);
    }
    return all;
  }
};

TEST_F(Steps, True) {
  check({"/bin/true"}, 1'000'000, false);
  EXPECT_GT(steps_, 50'000u);
}

TEST_F(Steps, Ls) { check({"/bin/ls", "-l", "/usr/bin"}, 60'000, true); }
TEST_F(Steps, Sqlite) {
  check({"/usr/bin/sqlite3", ":memory:", "select hex(randomblob(9)), printf('%.3f', 2.5)"}, 60'000, true);
}
TEST_F(Steps, Perl) { check({"/usr/bin/perl", "-e", "print join ' ', sort map { $_ * 1.5 } 1 .. 99"}, 60'000, true); }
TEST_F(Steps, Gzip) { check({"/bin/gzip", "-c", "/bin/true"}, 60'000, true); }
TEST_F(Steps, OpenSsl) { check({"/usr/bin/openssl", "dgst", "-sha512", "/bin/true"}, 60'000, true); }
TEST_F(Steps, Shell) { check({"/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i; done"}, 60'000, true); }

// A write that is not told is found.
TEST_F(Steps, FindsWhatIsNotTold) {
  for (size_t n : {100, 1000, 10'000})
    EXPECT_NE(problem_of({"/bin/true"}, 1'000'000, false, n).find("are changed"), std::string::npos) << n;
}

}  // namespace
}  // namespace weir::x86
