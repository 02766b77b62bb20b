// The module: LLVM's scheduling models, asked about one instruction at a time.
//
// An instruction is decoded to an MCInst; its opcode has a scheduling class, which some CPUs resolve further by the operands
// (a zero idiom, a three-part lea). The class gives micro-ops, uses of resources, a latency for each definition and, by
// ReadAdvance, when each operand is needed. Operands are counted as LLVM does: definition n is the n-th explicit one and, behind
// these, the implicit ones; use n is the n-th operand that is no definition and, behind these, the implicit ones.

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "cost/descriptor.h"
#include "cost/strings.h"

extern "C" void LLVMInitializeX86TargetInfo();
extern "C" void LLVMInitializeX86TargetMC();
extern "C" void LLVMInitializeX86Disassembler();

namespace weir::cost {

namespace {

constexpr const char* triple = "x86_64-unknown-linux-gnu";

const llvm::Target& target() {
  static const llvm::Target* const found = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
    std::string error;
    return llvm::TargetRegistry::lookupTarget(triple, error);
  }();
  CHECK(found);
  return *found;
}

// (The decoder knows the instructions of all CPUs, whatever this one has.)
std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const std::string& cpu) {
  return std::unique_ptr<llvm::MCSubtargetInfo>(target().createMCSubtargetInfo(triple, cpu, ""));
}

}  // namespace

struct Source {
  std::unique_ptr<llvm::MCSubtargetInfo> cpu;
  std::unique_ptr<llvm::MCRegisterInfo> registers{target().createMCRegInfo(triple)};
  std::unique_ptr<llvm::MCAsmInfo> assembler{target().createMCAsmInfo(*registers, triple, llvm::MCTargetOptions())};
  std::unique_ptr<llvm::MCInstrInfo> instructions{target().createMCInstrInfo()};
  std::unique_ptr<llvm::MCInstrAnalysis> analysis{target().createMCInstrAnalysis(instructions.get())};
  llvm::MCContext context{llvm::Triple(triple), assembler.get(), registers.get(), cpu.get()};
  std::unique_ptr<llvm::MCDisassembler> decoder{target().createMCDisassembler(*cpu, context)};
  llvm::MCRegister stack_pointer, shadow_stack_pointer;
  bool eliminates_moves = false;

  const llvm::MCSchedModel& model() const { return cpu->getSchedModel(); }
};

namespace {

// The class of an instruction, resolved as far as it goes; null where the model has none.
const llvm::MCSchedClassDesc* class_of(const Source& s, const llvm::MCInst& insn) {
  const llvm::MCSchedModel& model = s.model();
  unsigned id = s.instructions->get(insn.getOpcode()).getSchedClass();
  while (id && model.getSchedClassDesc(id)->isVariant())
    id = s.cpu->resolveVariantSchedClass(id, &insn, s.instructions.get(), model.getProcessorID());
  const llvm::MCSchedClassDesc* found = model.getSchedClassDesc(id);
  return id && found->isValid() ? found : nullptr;
}

class Describer {
 public:
  Describer(const Source& s, const llvm::MCInst& insn, bool locked, const llvm::MCSchedClassDesc& scheduling,
            std::vector<Figure>& pool)
      : s_(s),
        insn_(insn),
        locked_(locked),
        class_(scheduling),
        about_(s.instructions->get(insn.getOpcode())),
        pool_(pool) {}

  Descriptor describe() {
    Descriptor d;
    d.known = true;
    d.micro_ops = class_.NumMicroOps;
    d.first = static_cast<uint32_t>(pool_.size());
    bool eliminated = s_.eliminates_moves && s_.analysis->isOptimizableRegisterMove(insn_, s_.model().getProcessorID());
    d.reads = add_reads();
    d.writes = add_writes(eliminated);
    if (!eliminated) d.uses = add_uses();
    if (holds_back()) d.holds = static_cast<uint16_t>(longest());
    return d;
  }

 private:
  uint8_t add_reads() {
    llvm::APInt independent;
    bool breaks = s_.analysis->isDependencyBreaking(insn_, independent, s_.model().getProcessorID());
    size_t before = pool_.size();
    unsigned index = 0;
    for (unsigned i = about_.getNumDefs(); i < about_.getNumOperands() && i < insn_.getNumOperands(); i++, index++) {
      bool ignored = breaks && (independent.isZero() || (index < independent.getBitWidth() && independent[index]));
      if (insn_.getOperand(i).isReg() && !ignored) add(insn_.getOperand(i).getReg(), advance(index));
    }
    for (llvm::MCPhysReg reg : about_.implicit_uses()) add(reg, advance(index++));
    return count_since(before);
  }

  uint8_t add_writes(bool eliminated) {
    size_t before = pool_.size();
    unsigned index = 0;
    for (; index < about_.getNumDefs(); index++)
      if (insn_.getOperand(index).isReg()) add(insn_.getOperand(index).getReg(), eliminated ? 0 : latency(index));
    // push, pop, call and ret move the stack pointer in front of the execution, at no cost, on every x86-64 CPU.
    for (llvm::MCPhysReg reg : about_.implicit_defs()) {
      add(reg, moves_stack(reg) ? 0 : latency(index));
      index++;
    }
    return count_since(before);
  }

  uint8_t add_uses() {
    size_t before = pool_.size();
    for (const auto* e = s_.cpu->getWriteProcResBegin(&class_); e != s_.cpu->getWriteProcResEnd(&class_); ++e)
      if (int cycles = e->ReleaseAtCycle - e->AcquireAtCycle; cycles > 0)
        pool_.push_back({.of = static_cast<uint8_t>(e->ProcResourceIdx), .cycles = static_cast<int16_t>(cycles)});
    return count_since(before);
  }

  // Of use `index`. That it may depend on who wrote the operand (the 0) is not used by any x86 model of LLVM 19.
  int advance(unsigned index) const { return s_.cpu->getReadAdvanceCycles(&class_, index, 0); }

  // Of definition `index`; no figure in the tables, or a negative one, means the longest of the class.
  int latency(unsigned index) const {
    if (index < class_.NumWriteLatencyEntries)
      if (int cycles = s_.cpu->getWriteLatencyEntry(&class_, index)->Cycles; cycles >= 0) return cycles;
    return longest();
  }
  int longest() const { return std::max(0, llvm::MCSchedModel::computeInstrLatency(*s_.cpu, class_)); }

  // Loads behind a locked instruction (xchg with memory is one), a fence or a pause do not start before it is done.
  bool holds_back() const {
    llvm::StringRef name = s_.instructions->getName(insn_.getOpcode());
    return locked_ || (name.starts_with("XCHG") && about_.mayStore()) || name == "MFENCE" || name == "LFENCE" ||
           name == "PAUSE" || name == "CPUID";
  }

  bool moves_stack(llvm::MCRegister reg) const {
    return reg == s_.shadow_stack_pointer || (reg == s_.stack_pointer && about_.hasImplicitUseOfPhysReg(reg));
  }

  void add(llvm::MCRegister reg, int cycles) {
    if (!reg || s_.registers->isConstant(reg)) return;
    for (llvm::MCRegUnit unit : s_.registers->regunits(reg))
      pool_.push_back({.of = static_cast<uint8_t>(unit), .cycles = static_cast<int16_t>(cycles)});
  }

  uint8_t count_since(size_t before) const {
    CHECK(pool_.size() - before <= UINT8_MAX);
    return static_cast<uint8_t>(pool_.size() - before);
  }

  const Source& s_;
  const llvm::MCInst& insn_;
  bool locked_;
  const llvm::MCSchedClassDesc& class_;
  const llvm::MCInstrDesc& about_;
  std::vector<Figure>& pool_;
};

// As far as LLVM knows it.
Descriptor described(Source& s, llvm::ArrayRef<uint8_t> code, std::vector<Figure>& pool) {
  // To LLVM, `lock` is an instruction of its own.
  constexpr uint8_t lock = 0xf0;
  bool locked = code.front() == lock;
  if (locked) code = code.drop_front();
  llvm::MCInst insn;
  uint64_t size = 0;
  bool decoded = s.decoder->getInstruction(insn, size, code, 0, llvm::nulls()) == llvm::MCDisassembler::Success;
  if (!decoded || size != code.size()) return {};
  const llvm::MCSchedClassDesc* scheduling = class_of(s, insn);
  return scheduling ? Describer(s, insn, locked, *scheduling, pool).describe() : Descriptor{};
}

Descriptor describe(Source& s, std::span<const std::byte> bytes, std::vector<Figure>& pool) {
  Descriptor d = described(s, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, pool);
  if (!d.known) d.micro_ops = static_cast<uint16_t>(s.model().IssueWidth);  // one cycle
  if (auto string = string_instruction(bytes); string && d.known) {
    d.micro_ops = string_micro_ops, d.uses = 0;
    if (string->repeated) d.holds = string->repetition.start;
    for (Figure& write : std::span(pool).subspan(d.first + d.reads, d.writes)) write.cycles = string_latency;
  }
  return d;
}

std::vector<std::string> cpus() {
  std::vector<std::string> names;
  for (const llvm::SubtargetSubTypeKV& cpu : subtarget("generic")->getAllProcessorDescriptions())
    if (cpu.SchedModel && cpu.SchedModel->hasInstrSchedModel()) names.push_back(cpu.Key);
  return names;
}

// The register of that name: LLVM's own numbers for them are not in its public headers.
llvm::MCRegister register_called(const llvm::MCRegisterInfo& registers, std::string_view name) {
  for (unsigned reg = 1; reg < registers.getNumRegs(); reg++)
    if (registers.getName(reg) == name) return reg;
  return {};
}

bool eliminates_moves(const llvm::MCSchedModel& model) {
  if (!model.hasExtraProcessorInfo()) return false;
  const llvm::MCExtraProcessorInfo& more = model.getExtraProcessorInfo();
  return std::any_of(more.RegisterFiles, more.RegisterFiles + more.NumRegisterFiles, [](const auto& file) {
    return file.MaxMovesEliminatedPerCycle && !file.AllowZeroMoveEliminationOnly;
  });
}

Result<Source*> open(const std::string& asked, Cpu& cpu) {
  std::vector<std::string> known = cpus();
  cpu.name = asked.empty() ? llvm::sys::getHostCPUName().str() : asked;
  if (std::ranges::find(known, cpu.name) == known.end())
    return fail(
        "{}: LLVM has no scheduling model of this CPU; try --cpu skylake, icelake-server, alderlake, znver3 or znver4",
        cpu.name);
  auto s = std::make_unique<Source>(subtarget(cpu.name));
  const llvm::MCSchedModel& model = s->model();
  CHECK(s->registers->getNumRegUnits() <= max_units && model.getNumProcResourceKinds() <= max_resources);
  s->stack_pointer = register_called(*s->registers, "RSP");
  s->shadow_stack_pointer = register_called(*s->registers, "SSP");
  s->eliminates_moves = eliminates_moves(model);
  cpu.width = static_cast<uint16_t>(model.IssueWidth);
  for (unsigned i = 0; i < model.getNumProcResourceKinds(); i++)
    cpu.capacity.push_back(static_cast<uint16_t>(std::max(1u, model.getProcResource(i)->NumUnits)));
  return s.release();
}

void close(Source* s) { delete s; }

}  // namespace

extern "C" [[gnu::visibility("default")]] const Module weir_cost_module{module_version, open, close, describe, cpus};

}  // namespace weir::cost
