// Writes thousands of random sequences, each a function, as a file for the assembler: sequences SEED COUNT low|high OUT, or,
// with lines of hexadecimal bytes on the standard input, sequences - COUNT low|high OUT. runner.c runs them.
//
// A sequence has 1 to 16 instructions: plain ones (instructions.cc), and branches forward, calls of small functions,
// indirect jumps and calls, pushes and pops.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "instructions.h"
#include "layout.h"
#include "x86/liveness.h"

using namespace differential;
using namespace weir;

namespace {

struct Fix {
  size_t at;  // of a displacement, which ends at at + size
  int size;
  size_t slot;  // that it leads to
};

class Writer {
 public:
  Writer(Random& random, uint64_t base, const std::vector<uint64_t>& callees, Allowed allowed)
      : random_(random), base_(base), callees_(callees), allowed_(allowed) {}

  // Empty: a short branch did not reach.
  Bytes write(size_t slots, bool is_callee) {
    is_callee_ = is_callee;
    for (size_t i = 0; i < slots; i++) {
      slots_.push_back(code_.size());
      unsigned kind = static_cast<unsigned>(random_.below(100));
      if (kind < 72 || (is_callee && kind < 92)) add(random_instruction(random_, registers_, pc(), allowed_));
      else if (kind < 82) branch();
      else if (kind < 90 && !callees_.empty()) call();
      else if (kind < 92) jump_indirect();
      else if (kind < 98) stack();
      else point(pick_register());
    }
    slots_.push_back(code_.size());
    if (!is_callee && !callees_.empty() && random_.percent(3)) transfer(0xe9, callee());
    else if (!is_callee && random_.percent(4)) add({0xc2, uint8_t(random_.below(8) * 8), 0});
    else add({0xc3});
    return resolve() ? code_ : Bytes{};
  }

 private:
  uint64_t pc() const { return base_ + code_.size(); }
  void add(const Bytes& b) { code_.insert(code_.end(), b.begin(), b.end()); }
  void add32(int64_t value) {
    for (int i = 0; i < 4; i++) code_.push_back(static_cast<uint8_t>(value >> 8 * i));
  }
  void transfer(uint8_t opcode, uint64_t target) {
    add({opcode});
    add32(static_cast<int64_t>(target - pc() - 4));
  }
  uint64_t callee() { return callees_[random_.below(callees_.size())]; }
  int pick_register() {
    for (;;)
      if (int r = static_cast<int>(random_.below(16)); r != 4) return r;
  }
  void to_slot(int size) {
    fixes_.push_back({code_.size(), size, slots_.size() + 1 + random_.below(3)});
    for (int i = 0; i < size; i++) code_.push_back(0);
  }

  void branch() {
    unsigned kind = static_cast<unsigned>(random_.below(100));
    bool is_short = random_.percent(60);
    uint8_t condition = random_.byte() & 15;
    if (kind < 15) {
      if (random_.percent(15)) add({0x67});
      registers_.clobber(1);
      add({uint8_t(0xe0 | random_.below(4))});  // loopne, loope, loop, jrcxz
      return to_slot(1);
    }
    if (kind < 30) add({uint8_t(is_short ? 0xeb : 0xe9)});
    else if (is_short) add({uint8_t(0x70 | condition)});
    else add({0x0f, uint8_t(0x80 | condition)});
    to_slot(is_short ? 1 : 4);
  }

  // lea r, [rip + target]
  void lea(int r, uint64_t target) {
    add({uint8_t(0x48 | r >> 3 << 2), 0x8d, uint8_t(5 | (r & 7) << 3)});
    add32(static_cast<int64_t>(target - pc() - 4));
    registers_.clobber(r);
    registers_.code |= 1 << r;
  }
  void lea_slot(int r) {
    add({uint8_t(0x48 | r >> 3 << 2), 0x8d, uint8_t(5 | (r & 7) << 3)});
    to_slot(4);
    registers_.clobber(r);
    registers_.code |= 1 << r;
  }
  void with_memory(const Memory& m, uint8_t rex, uint8_t opcode, int reg) {
    if (m.segment) add({m.segment});
    rex |= (reg >> 3 << 2) | m.extends_index << 1 | m.extends_base;
    if (rex) add({uint8_t(rex | 0x40)});
    add({opcode, uint8_t(m.modrm | (reg & 7) << 3)});
    if (m.has_sib) add({m.sib});
    if (m.is_rip_relative) add32(static_cast<int64_t>(area() - pc() - 4));
    else add(m.displacement);
  }
  uint64_t area() const { return (base_ < HIGH_CODE ? LOW_AREA : HIGH_AREA) + BIG_AREA / 2; }

  void call() {
    int r = pick_register();
    switch (random_.below(4)) {
      case 0:
      case 1: return transfer(0xe8, callee());
      case 2: lea(r, callee()); return add({uint8_t(0x40 | r >> 3), 0xff, uint8_t(0xd0 | (r & 7))});
      default:
        lea(r, callee());
        Memory m = random_memory(random_, registers_);
        with_memory(m, 8, 0x89, r);
        return with_memory(m, 0, 0xff, 2);
    }
  }

  void jump_indirect() {
    int r = pick_register();
    lea_slot(r);
    if (callees_.empty() || random_.percent(70)) {
      if (random_.percent(20)) add({0x3e});  // notrack
      return add({uint8_t(0x40 | r >> 3), 0xff, uint8_t(0xe0 | (r & 7))});
    }
    add({uint8_t(0x40 | r >> 3), uint8_t(0x50 | (r & 7)), 0xc3});  // push r; ret
  }

  void stack() {
    int r = pick_register();
    while (registers_.code >> r & 1) r = pick_register();  // (it would be returned to, again and again)
    switch (is_callee_ ? 4 : random_.below(5)) {
      case 0: return add({uint8_t(0x40 | r >> 3), uint8_t(0x50 | (r & 7))});
      case 1: registers_.clobber(r); return add({uint8_t(0x40 | r >> 3), uint8_t(0x58 | (r & 7))});
      case 2: registers_.clobber(r); return add({0x9c, uint8_t(0x40 | r >> 3), uint8_t(0x58 | (r & 7))});  // pushf; pop r
      case 3:
        add({0x68});  // push imm32; popf
        add32(static_cast<int64_t>(random_.next() & 0xcd5));
        return add({0x9d});
      default: {
        int other = pick_register();
        registers_.clobber(other);
        return add(
            {uint8_t(0x40 | r >> 3), uint8_t(0x50 | (r & 7)), uint8_t(0x40 | other >> 3), uint8_t(0x58 | (other & 7))});
      }
    }
  }

  // A register becomes a pointer again.
  void point(int r) {
    lea(r, area() + (random_.below(2048) & ~63));
    registers_.clobber(r);
    registers_.pointers |= 1 << r;
  }

  bool resolve() {
    for (const Fix& f : fixes_) {
      size_t to = slots_[std::min(f.slot, slots_.size() - 1)];
      auto distance = static_cast<int64_t>(to) - static_cast<int64_t>(f.at) - f.size;
      if (f.size == 1 && distance > 127) return false;
      memcpy(&code_[f.at], &distance, f.size);
    }
    return true;
  }

  Random& random_;
  uint64_t base_;
  const std::vector<uint64_t>& callees_;
  Allowed allowed_;
  bool is_callee_ = false;
  Registers registers_ = Registers::at_begin();
  Bytes code_;
  std::vector<size_t> slots_;
  std::vector<Fix> fixes_;
};

// All functions, one behind the other.
struct Blob {
  uint64_t base;
  Bytes bytes;
  std::vector<std::pair<size_t, size_t>> functions;  // offset, size
  std::vector<uint32_t> sequences;                   // offsets

  uint64_t next() {
    while (bytes.size() % 16) bytes.push_back(0xcc);
    return base + bytes.size();
  }
  void add(const Bytes& code) {
    functions.push_back({bytes.size(), code.size()});
    bytes.insert(bytes.end(), code.begin(), code.end());
  }
};

void add_random(Blob& blob, uint64_t seed, size_t count) {
  Random random{seed};
  std::vector<uint64_t> callees, none;
  auto add = [&](size_t slots, bool is_callee, Allowed allowed) {
    for (;;) {
      uint64_t at = blob.next();
      // The last callees call the first. Who moves the stack as it likes must not find addresses of returns there.
      Bytes code = Writer(random, at, allowed.stack_moves || (is_callee && callees.size() < 48) ? none : callees, allowed)
                       .write(slots, is_callee);
      if (code.empty()) continue;
      blob.add(code);
      return at;
    }
  };
  for (int i = 0; i < 64; i++) callees.push_back(add(1 + random.below(4), true, {}));
  for (size_t i = 0; i < count; i++)
    blob.sequences.push_back(
        static_cast<uint32_t>(add(1 + random.below(16), false, {!IS_X87_UNMASKED(i), i % 8 == 0}) - blob.base));
}

// What was found, from hexadecimal lines; each is `count` sequences, so that it runs with as many states.
void add_listed(Blob& blob, size_t count) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line.substr(0, line.find('#')));
    Bytes code;
    for (unsigned byte; in >> std::hex >> byte;) code.push_back(static_cast<uint8_t>(byte));
    if (code.empty()) continue;
    auto offset = static_cast<uint32_t>(blob.next() - blob.base);
    blob.add(code);
    blob.sequences.insert(blob.sequences.end(), count, offset);
  }
}

std::vector<Live> live_of(const Blob& blob) {
  std::vector<Live> result;
  auto bytes = std::as_bytes(std::span(blob.bytes));
  x86::ReadMemory read = [&](AppPc pc, size_t size) -> std::span<const std::byte> {
    uint64_t at = pc.value - blob.base;
    return at < bytes.size() ? bytes.subspan(at, std::min(size, bytes.size() - at)) : std::span<const std::byte>{};
  };
  auto flags = [](uint8_t f) {
    auto bit = [&](x86::Flag which, int n) { return f & which ? 1 << n : 0; };
    return static_cast<unsigned short>(bit(x86::CF, 0) | bit(x86::PF, 2) | bit(x86::AF, 4) | bit(x86::ZF, 6) |
                                       bit(x86::SF, 7) | bit(x86::DF, 10) | bit(x86::OF, 11));
  };
  std::vector<bool> seen(blob.bytes.size());
  for (auto [offset, size] : blob.functions) {
    AppRange bounds{AppPc{blob.base + offset}, AppPc{blob.base + offset + size}};
    // From the entry, and from where indirect jumps lead.
    for (AppPc pc = bounds.begin; pc < bounds.end; pc = pc + x86::decode(read(pc, 15), pc).shape->length) {
      if (seen[pc.value - blob.base]) continue;
      x86::Function f = x86::lift(pc, bounds, read, read);
      x86::Liveness live = x86::liveness(f);
      for (x86::BlockId b = 0; b < f.blocks.size(); b++) {
        auto inside = live.inside(f, b);
        for (size_t i = 0; i < f.blocks[b].count; i++) {
          auto at = static_cast<uint32_t>(f.insns_of(f.blocks[b])[i].pc.value - blob.base);
          if (!seen[at]) result.push_back({at, inside[i].gpr, flags(inside[i].flags)});
          seen[at] = true;
        }
      }
    }
  }
  std::ranges::sort(result, {}, &Live::offset);
  return result;
}

template <class T>
void write_file(const std::string& name, const std::vector<T>& values) {
  std::ofstream out(name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: sequences SEED|- COUNT low|high OUT\n"), 2;
  std::string out = argv[4];
  Blob blob{strcmp(argv[3], "high") ? uint64_t{LOW_CODE} : uint64_t{HIGH_CODE}, {}, {}, {}};
  size_t count = strtoul(argv[2], nullptr, 0);
  if (strcmp(argv[1], "-")) add_random(blob, strtoull(argv[1], nullptr, 0), count);
  else add_listed(blob, count);
  write_file(out + ".code", blob.bytes);
  write_file(out + ".sequences", blob.sequences);
  write_file(out + ".live", live_of(blob));
  std::ofstream s(out + ".S");
  s << ".section .sequences,\"ax\",@progbits\nsequences_code: .incbin \"" << out << ".code\"\n";
  for (size_t i = 0; i < blob.functions.size(); i++) {
    auto [offset, size] = blob.functions[i];
    s << ".set f" << i << ", sequences_code + " << offset << "; .type f" << i << ", @function; .size f" << i << ", " << size
      << "\n";
  }
  s << ".section .rodata\n.globl sequences_code, sequence_offsets, sequence_count, live, "
       "live_count\n.balign 8\n"
    << "sequence_offsets: .incbin \"" << out << ".sequences\"\n.balign 8\nlive: .incbin \"" << out << ".live\"\n.balign 8\n"
    << "sequence_count: .quad " << blob.sequences.size() << "\nlive_count: .quad (sequence_count - live) / 8\n"
    << ".section .note.GNU-stack,\"\",@progbits\n";
}
