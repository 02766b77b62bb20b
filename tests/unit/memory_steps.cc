// memory_steps FILE PROGRAM ARGUMENTS: executes a program of one thread natively, an instruction at a time, and writes what
// `weir run --tool=memory` should count as JSON to FILE: loads and stores by size and by kind of memory. Ends as the program does.
//
// Addresses and extents are those of accesses.h, from the registers before each step; kinds are told by /proc/PID/maps behind it.
#include <elf.h>

#include <cstdio>
#include <map>

#include "base/processor.h"
#include "stepped_program.h"
#include "x86/operands.h"

namespace weir::x86 {
namespace {

struct Mapping {
  uint64_t begin, end;
  bool executable;
  std::string path;
};

class Mappings {
 public:
  explicit Mappings(pid_t pid) : pid_(pid) {}

  void read() {
    all_.clear();
    std::ifstream maps(fmt::format("/proc/{}/maps", pid_));
    for (std::string line; std::getline(maps, line);) {
      Mapping m{};
      char x;
      int path = 0;
      if (sscanf(line.c_str(), "%lx-%lx %*c%*c%c%*c %*x %*s %*u %n", &m.begin, &m.end, &x, &path) != 3) continue;
      m.executable = x == 'x', m.path = line.substr(static_cast<size_t>(path));
      all_.push_back(m);
    }
  }
  std::string kind_of(uint64_t address) {
    for (int again = 0; again < 2; again++, read())
      for (size_t i = 0; i < all_.size(); i++)
        if (all_[i].begin <= address && address < all_[i].end) return kind_of(i, address);
    return "nowhere";
  }

 private:
  static bool is_file(const Mapping& m) { return m.path.starts_with("/") || m.path.starts_with("[vvar"); }
  std::string kind_of(size_t i, uint64_t address) {
    const Mapping& m = all_[i];
    if (m.path == "[stack]") return "stack";
    if (m.executable) return "code";
    if (is_file(m) || (m.path.empty() && i > 0 && is_file(all_[i - 1]) && address < end_of_bss(i - 1))) return "static";
    return "heap";
  }
  // By the program headers of the file.
  uint64_t end_of_bss(size_t i) {
    size_t first = i;
    while (first > 0 && all_[first - 1].path == all_[i].path) first--;
    std::ifstream file(all_[i].path, std::ios::binary);
    Elf64_Ehdr head{};
    file.read(reinterpret_cast<char*>(&head), sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
    uint64_t lowest = ~uint64_t{0}, highest = 0;
    for (int n = 0; n < head.e_phnum; n++) {
      Elf64_Phdr p{};
      file.seekg(static_cast<std::streamoff>(head.e_phoff + sizeof p * static_cast<size_t>(n)));
      file.read(reinterpret_cast<char*>(&p), sizeof p);
      if (p.p_type != PT_LOAD) continue;
      lowest = std::min(lowest, p.p_vaddr & ~0xffful), highest = std::max(highest, p.p_vaddr + p.p_memsz);
    }
    return all_[first].begin + ((highest - lowest + 0xfff) & ~0xffful);
  }

  pid_t pid_;
  std::vector<Mapping> all_;
};

struct Count {
  uint64_t loads = 0, stores = 0, bytes_read = 0, bytes_written = 0;
  void add(bool writes, uint64_t bytes) {
    (writes ? stores : loads)++;
    (writes ? bytes_written : bytes_read) += bytes;
  }
  std::string json() const {
    return fmt::format(R"("loads": {}, "stores": {}, "bytes_read": {}, "bytes_written": {})", loads, stores, bytes_read,
                       bytes_written);
  }
};

struct Counts {
  Count all;
  std::map<std::string, Count> by_kind, by_size;

  void add(const std::string& kind, const std::string& size, bool writes, uint64_t bytes) {
    if (kind == "nowhere") return;
    for (Count* c : {&all, &by_kind[kind], &by_size[size]}) c->add(writes, bytes);
  }
  std::string json() const {
    auto object = [](const std::map<std::string, Count>& counts) {
      std::string text;
      for (auto& [name, count] : counts)
        text += fmt::format("{}\"{}\": {{{}}}", text.empty() ? "" : ", ", name, count.json());
      return text;
    };
    return fmt::format("{{{}, \"by_kind\": {{{}}}, \"by_size\": {{{}}}}}\n", all.json(), object(by_kind), object(by_size));
  }
};

bool is_by_frame(const MemoryOperand& o) {
  return (o.base == RSP || o.base == RBP) && o.index == no_register && o.extent == Extent::Plain &&
         o.segment == Segment::None && !o.wraps_at_32_bits;
}

uint64_t state_size(const Registers& r) {
  uint64_t wanted = r.gpr[RDX] << 32 | static_cast<uint32_t>(r.gpr[RAX]), size = 512 + 64;
  for (const StateComponent& c : processor().state)
    if (wanted >> c.number & 1) size = c.end;
  return size;
}

int run(const std::string& file, std::vector<std::string> command) {
  SteppedProgram program(std::move(command), SteppedProgram::Own);
  Mappings mappings(program.pid());
  mappings.read();
  Counts counts;
  while (program.is_stopped()) {
    user_regs_struct registers = program.registers();
    std::byte code[15];
    auto bytes = std::span(code).first(program.read(registers.rip, code));
    Insn insn = decode(bytes, AppPc{registers.rip});
    Registers r = of(registers);
    std::vector<std::pair<MemoryOperand, Bytes>> accessed;
    for (MemoryOperand o : memory_operands(insn, bytes)) {
      if (o.access == Access::None) continue;
      if (needs_vectors(o)) program.read_vectors(r);
      bool is_masked = o.extent == Extent::Masked || o.extent == Extent::Packed || o.extent == Extent::Indexed;
      if (o.extent == Extent::Repeated && (r.gpr[RCX] & (o.wraps_at_32_bits ? 0xffffffff : ~uint64_t{0})) == 0) continue;
      MemoryOperand one = o;
      if (o.extent == Extent::Repeated) one.extent = Extent::Plain;  // a step is one repetition
      uint64_t base = 0;
      if (o.extent == Extent::Masked || o.extent == Extent::Packed) {  // the kind is that of the operand's first byte
        MemoryOperand whole = o;
        whole.extent = Extent::Plain;
        base = bytes_of(whole, r)[0].address;
      }
      for (const Bytes& b : bytes_of(one, r))
        for (uint64_t n = 0; n < (is_masked ? b.size / o.element : 1); n++)
          accessed.push_back({o, {base ? base : b.address, is_masked ? o.element : b.size}});
      if (o.extent == Extent::State && !o.size) accessed.back().second.size = state_size(r);
    }
    bool is_call = insn.kind() == Kind::Syscall;
    program.step();
    if (is_call) mappings.read();
    for (auto& [o, b] : accessed) {
      std::string kind = mappings.kind_of(b.address);
      if (kind == "stack" && is_by_frame(o)) kind = "frame";
      std::string size = o.extent == Extent::State && !o.size ? "state" : fmt::format("{}", b.size);
      for (bool writing : {false, true})
        if (writing ? writes(o.access) : reads(o.access)) counts.add(kind, size, writing, b.size);
    }
  }
  std::ofstream(file) << counts.json();
  return program.exit_status();
}

}  // namespace
}  // namespace weir::x86

int main(int argc, char** argv) {
  return argc < 3 ? 2 : weir::x86::run(argv[1], std::vector<std::string>(argv + 2, argv + argc));
}
