#include "cost/model.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/module.h"
#include "cost/memo.h"
#include "x86/insn.h"

namespace weir::cost {

namespace {

constexpr const char* module_name = "libweir_cost.so";

Result<const Module*> module() {
  static const Module* loaded = nullptr;
  if (loaded) return loaded;
  TRY(std::string path, module_path(module_name));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail("{}", dlerror());
  auto* found = static_cast<const Module*>(dlsym(library, module_symbol));
  if (!found || found->version != module_version) return fail("{}: is of another weir; build both anew", path);
  return loaded = found;
}

// The module by size and date and, for a file that is about "this host", the CPU as it calls itself.
uint64_t maker_of(const std::string& path, bool host) {
  struct stat st{};
  if (stat(path.c_str(), &st)) return 0;
  std::array<uint64_t, 3> module{static_cast<uint64_t>(st.st_size), static_cast<uint64_t>(st.st_mtim.tv_sec),
                                 static_cast<uint64_t>(st.st_mtim.tv_nsec)};
  uint64_t maker = checksum_of(std::as_bytes(std::span(module)));
  if (!host) return maker;
  for (unsigned leaf : {0u, 1u, 7u, 0x80000001u}) {  // its maker; family, model and stepping; features
    std::array<unsigned, 4> cpu{};
    __get_cpuid_count(leaf, 0, &cpu[0], &cpu[1], &cpu[2], &cpu[3]);
    if (leaf == 1) cpu[1] = 0;  // (which of its cores this is)
    maker = checksum_of(std::as_bytes(std::span(cpu)), maker);
  }
  return maker;
}

using Word = unsigned __int128;

// The first `size` bytes, at most 15, as a number: two loads that overlap. (What is put together byte by byte cannot be read as
// a whole before all of it has left the CPU's store buffer.)
Word load(const std::byte* at, size_t size) {
  auto two = [&]<class T>(T) -> Word {
    T first, last;
    memcpy(&first, at, sizeof(T));
    memcpy(&last, at + size - sizeof(T), sizeof(T));
    return Word{first} | Word{last} << 8 * (size - sizeof(T));
  };
  return size >= 8 ? two(uint64_t{}) : size >= 4 ? two(uint32_t{}) : size >= 2 ? two(uint16_t{}) : two(uint8_t{});
}

// The instruction with its displacement, branch offset and long immediate filled with ones: that there is a displacement
// (other than 0) matters to some models, and so do some short immediates; the other values do not. The last byte is the length.
struct Canonical {
  Word bytes = 0;
  uint8_t length = 0;  // 0: cut off, or nobody knows how long it is

  Canonical(std::span<const std::byte> code, const x86::Shape& shape) : length(shape.length) {
    if (!length) return;
    bytes = load(code.data(), length);
    constexpr Word ones = Word{0x0101010101010101} << 64 | 0x0101010101010101;
    auto field = [](unsigned offset, unsigned size) { return ((Word{1} << 8 * size) - 1) << 8 * offset; };
    auto fill = [&](Word part) { bytes = (bytes & ~part) | (ones & part); };
    if (Word disp = field(shape.disp_offset, shape.disp_size); bytes & disp) fill(disp);
    if (shape.imm_size > 1 || shape.kind != x86::Kind::Plain) fill(field(shape.imm_offset, shape.imm_size));
    bytes |= Word{length} << 120;
  }
  Key key() const { return {static_cast<uint64_t>(bytes), static_cast<uint64_t>(bytes >> 64)}; }
  std::span<const std::byte> code() const { return std::as_bytes(std::span(&bytes, 1)).first(length); }
};

// The instructions that came last, by hash: most are among them, and these fit into the caches of the CPU.
class Recent {
 public:
  struct Entry {
    Key key;
    Descriptor descriptor;
  };
  Entry& place_of(Key key) {
    uint64_t mixed = (key.low ^ std::rotl(key.high, 29)) * 0x9E3779B97F4A7C15ull;
    return entries_[mixed >> (64 - bits)];
  }

 private:
  static constexpr int bits = 12;
  std::vector<Entry> entries_ = std::vector<Entry>(size_t{1} << bits);
};

}  // namespace

struct Model::State {
  Cpu cpu;
  Memo memo;
  Recent recent;
  MemoFile file;
  BlockSum sum{cpu};
  std::vector<uint32_t> so_far;
  std::vector<x86::Insn> insns;  // of the block at hand, as all of these
  std::vector<Canonical> canonical;
  std::vector<Descriptor> descriptors;
  const Module* module = nullptr;  // null until it is needed
  Source* source = nullptr;
  std::string path;  // of the file; empty: none
  uint64_t maker = 0;
  size_t asked = 0;

  State() = default;
  State(const State&) = delete;
  ~State() {
    if (source) module->close(source);
  }

  Result<> open(const std::string& name) {
    TRY(module, cost::module());
    Cpu opened;
    TRY(source, module->open(name, opened));
    cpu = opened;
    return {};
  }

  Descriptor unknown() const { return {.micro_ops = cpu.width}; }  // one cycle
  Descriptor descriptor(const Canonical& insn) {
    if (!insn.length) return unknown();
    Key key = insn.key();
    Recent::Entry& place = recent.place_of(key);
    if (place.key != key) place = {key, look_up(key, insn.code())};
    return place.descriptor;
  }
  Descriptor look_up(Key key, std::span<const std::byte> code) {
    if (const Descriptor* known = memo.find(key)) return *known;
    if (const Descriptor* known = file.take(key, memo)) return *known;
    asked++;
    // (create() has seen the module; somebody took it away since)
    if (!source && !open(cpu.name)) return unknown();
    return memo.insert(key, module->describe(*source, code, memo.pool()));
  }
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::create(const std::string& cpu, bool keep) {
  auto state = std::make_unique<State>();
  TRY(std::string path, module_path(module_name));
  if (std::string directory = keep ? cache_directory() : ""; !directory.empty()) {
    state->path = fmt::format("{}/cost-{}", directory, cpu.empty() ? "host" : cpu);
    state->maker = maker_of(path, cpu.empty());
  }
  bool found = !state->path.empty() && state->file.open(state->path, state->maker, state->cpu);
  if (!found) TRY_VOID(state->open(cpu));
  return Model(std::move(state));
}

Result<std::vector<std::string>> Model::cpus() {
  TRY(const Module* module, cost::module());
  return module->cpus();
}

const std::string& Model::cpu() const { return state_->cpu.name; }
size_t Model::known() const { return state_->memo.size(); }
size_t Model::asked() const { return state_->asked; }

Cost Model::cost(std::span<const std::byte> block) {
  state_->insns.clear();
  for (auto rest = block; !rest.empty();) {
    state_->insns.push_back(x86::decode(rest, {}));
    size_t length = state_->insns.back().shape->length;
    rest = rest.subspan(length ? length : rest.size());
  }
  return cost(block, state_->insns);
}

// In three rounds, as each has to wait for memory: it waits for all instructions of a block at once.
Cost Model::cost(std::span<const std::byte> block, std::span<const x86::Insn> insns) {
  State& s = *state_;
  s.canonical.clear();
  for (const x86::Insn& i : insns) {
    if (block.empty()) break;
    s.canonical.emplace_back(block, *i.shape);
    size_t length = s.canonical.back().length;
    __builtin_prefetch(&s.recent.place_of(s.canonical.back().key()));
    block = block.subspan(length ? length : block.size());
  }
  s.descriptors.clear();
  for (const Canonical& insn : s.canonical) {
    s.descriptors.push_back(s.descriptor(insn));
    __builtin_prefetch(s.memo.figures(s.descriptors.back()).data());
  }
  Cost cost;
  s.sum.clear();
  s.so_far.clear();
  for (const Descriptor& d : s.descriptors) {
    s.sum.add(d, s.memo.figures(d));
    s.so_far.push_back(s.sum.bounds().cycles());
    cost.unknown += !d.known;
  }
  if (s.so_far.empty()) return cost;
  cost.bounds = s.sum.bounds();
  cost.cycles = s.so_far.back() = std::max(1u, s.so_far.back());
  cost.so_far = s.so_far;
  return cost;
}

void Model::save() {
  const State& s = *state_;
  if (s.asked && !s.path.empty()) s.file.save(s.path, s.maker, s.cpu, s.memo);
}

}  // namespace weir::cost
