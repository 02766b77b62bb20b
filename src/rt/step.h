// One frame to its caller: the rules of rt/unwind_table.h, frame pointers where there are none, and a guess where those do not
// help either.
//
// A step is a function of the frame's registers (State), the tables, and the words that it reads; it says which words these
// were. That is what the walker (rt/walk.h) rests on: same registers, same words, same caller.
//
// Freestanding, async-signal-safe: no allocation, no locks. Every word of the target is read through `Memory`, which may refuse.
#pragma once

#include "rt/unwind_table.h"

namespace weir::rt {

// ---- Code -----------------------------------------------------------------------------------------------------------
// A range of executable addresses. Sorted, apart from each other; one that has no table is code that somebody wrote at run
// time, or a file without call frame information.
struct CodeRange {
  uint64_t begin, end;
  uint64_t bias;           // address = bias + address in the file
  const TableHead* table;  // is_table() has agreed to it
};

struct Code {
  const CodeRange* ranges = nullptr;
  uint32_t count = 0;
  uint32_t generation = 1;  // not 0; another one for every change of what is mapped: what was remembered is forgotten

  const CodeRange* find(uint64_t pc) const {
    const CodeRange* range = ranges;
    for (uint32_t n = count; n > 1;) {
      uint32_t half = n / 2;
      range = range[half].begin <= pc ? range + half : range;
      n -= half;
    }
    return count && pc - range->begin < range->end - range->begin ? range : nullptr;
  }
};

// What came up before. Rules of addresses, most frames of most samples: a small hash table, one entry a place.
struct KnownRule {
  uint64_t pc;
  Rule rule;
  uint32_t generation;  // of the code; 0: empty
};
static_assert(sizeof(KnownRule) == 32);
constexpr uint32_t known_count = 2048;
inline uint32_t known_place(uint64_t pc) { return static_cast<uint32_t>(pc * 0x9E3779B97F4A7C15ull >> 53); }
static_assert(known_count == 1 << (64 - 53));

struct KnownRange {
  uint64_t begin, end;
  TableView table;
};
static_assert(sizeof(KnownRange) == 64);

struct Known {
  KnownRule* rules;      // known_count
  KnownRange ranges[2];  // the last ones that were searched
  uint64_t calls[64];    // addresses that guesses have looked at, and in the highest bit whether they are behind a call
};

// ---- Frames ---------------------------------------------------------------------------------------------------------
// As a signal's context has them, by their numbers in DWARF.
struct SavedRegisters {
  uint64_t words[16];  // r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp

  uint64_t operator[](unsigned reg) const {
    constexpr uint8_t places[] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7};
    return words[places[reg & 15]];
  }
};

struct State {
  uint64_t pc, sp, bp;  // bp 0: not known
  bool is_exact;        // pc is where the frame goes on (it was interrupted); else it is behind a call
  const SavedRegisters*
      registers;  // of the innermost frame, and in the one that called it; else null. They are not compared

  friend bool operator==(const State& a, const State& b) {
    return a.pc == b.pc && a.sp == b.sp && a.bp == b.bp && a.is_exact == b.is_exact;
  }
};

// The stack that the thread was given, where that is known: [low, high). Frames on another one are not held against it.
struct Stack {
  uint64_t low = 0, high = 0;
  bool has(uint64_t sp) const { return high && sp - low <= high - low; }

  friend bool operator==(const Stack&, const Stack&) = default;
};

// Why a walk ended. The first two are the ends of a whole stack; the others cut it off.
enum class Stop : uint8_t {
  None,          // it goes on
  Complete,      // there is no caller: a rule says so, or the return address is 0
  NoCode,        // the address is in no known code
  NoRule,        // nothing is known of this code, and nothing was found by other means
  Unsupported,   // call frame information of a kind that the table does not have
  Unreadable,    // a word could not be read
  OutsideStack,  // a frame would lie outside the stack
  NotOutward,    // a frame would not lie further out than its callee
  TooDeep,       // more frames than there is room for
  Loop,          // signal frames that lead back and forth between stacks
  NeedsRbx,      // only between Stepper and Walk
  Count
};

enum class Means : uint8_t { Cfi, FramePointer, Guess };

struct Use {
  bool cfi = true, frame_pointers = true, guesses = true;

  friend bool operator==(const Use&, const Use&) = default;
};

// The way from a frame to its caller, with the words that were read for it. (Nothing has a default: zeroing it took longer than a
// step.)
struct Step {
  State caller;
  uint64_t slot;         // holds the return address: caller.pc; at the end of the stack 0: none was read
  uint64_t second_slot;  // holds `second`: the caller's rbp; where none was read, the slot again
  uint64_t second;
  uint64_t sp_slot;  // has_sp_word: holds `sp_word`, which the caller's rsp follows from
  uint64_t sp_word;
  Means means;
  bool has_sp_word;
  bool is_unsure;  // it rests on more than its registers and these words
};

// ---- Code that says what a frame is ------------------------------------------------------------------------------------
// The length of the call that ends where `bytes` do, the 8 before an address; 0: there is none. call rel32; call r/m64 with any
// addressing, FF /2 at 2 to 7 bytes before (its prefix is not seen).
constexpr unsigned call_before(uint64_t bytes) {
  auto at = [&](unsigned before) { return static_cast<uint8_t>(bytes >> (64 - 8 * before)); };
  if (at(5) == 0xe8) return 5;
  for (unsigned before = 2; before <= 7; before++) {
    uint8_t modrm = at(before - 1);
    if (at(before) != 0xff || (modrm >> 3 & 7) != 2) continue;
    unsigned mod = modrm >> 6, rm = modrm & 7, size = 2;
    if (mod != 3 && rm == 4) size++;
    bool has_disp32 = mod == 2 || (mod == 0 && rm == 5) || (mod == 0 && rm == 4 && before > 2 && (at(before - 2) & 7) == 5);
    size += has_disp32 ? 4 : mod == 1;
    if (size == before) return size;
  }
  return 0;
}

// Does the code whose first 9 bytes these are return to the kernel? `mov $15, %eax` or `%rax ; syscall`.
constexpr bool is_restorer(uint64_t bytes, uint8_t ninth) {
  return (bytes & 0xff'ffff'ffff'ffff) == 0x05'0f00'0000'0fb8 || (bytes == 0x0f00'0000'0fc0'c748 && ninth == 0x05);
}

constexpr uint64_t max_frame_size = uint64_t{1} << 30;
constexpr uint64_t saved_rbp_at = 120, saved_rbx_at = 128, saved_rsp_at = 160,
                   saved_rip_at = 168;  // in a signal frame, from rsp
constexpr uint32_t guess_words = 512;   // how far a guess looks

template <class Memory>
class Stepper {
 public:
  // `known` is of this generation of the code, or null.
  Stepper(const Code& code, const Stack& stack, Use use, Known* known, Memory& memory)
      : code_(code), stack_(stack), use_(use), known_(known), memory_(memory) {}

  // A frame that goes on there, behind a call, will probably be met: its rule is fetched.
  void expect(uint64_t pc) const {
    if (known_) __builtin_prefetch(&known_->rules[known_place(pc - 1)]);
  }

  // Fills `out` where there is a caller, which is where Stop::None is returned.
  Stop step(const State& s, Step& out) const {
    uint64_t pc = s.is_exact ? s.pc : s.pc - 1;
    if (known_ && use_.cfi) {
      const KnownRule& k = known_->rules[known_place(pc)];
      if (k.pc == pc && k.generation == code_.generation) return by_rule(s, k.rule, 0, out);
    }
    return search(s, pc, out);
  }

  // After NeedsRbx: with it, or without it.
  Stop step_with(const State& s, uint64_t rbx, Step& out) const { return by_rule(s, rule_of(s), rbx, out); }
  Stop step_without(const State& s, Step& out) const { return without_rule(s, Stop::Unsupported, out); }

  Rule rule_of(const State& s) const {
    uint64_t pc = s.is_exact ? s.pc : s.pc - 1;
    const CodeRange* range = code_.find(pc);
    return range && range->table && use_.cfi ? find_rule(*range->table, pc - range->bias) : Rule{};
  }

 private:
  [[gnu::noinline]] Stop search(const State& s, uint64_t pc, Step& out) const {
    const KnownRange* known = known_range(pc);
    KnownRange found;
    if (!known || !use_.cfi) {
      const CodeRange* range = code_.find(pc);
      if (!range) return without_rule(s, Stop::NoCode, out);
      if (!range->table || !use_.cfi) return without_rule(s, Stop::NoRule, out);
      found = {range->begin, range->end, view_of(*range->table, range->bias)};
      if (known_) known_->ranges[1] = known_->ranges[0], known_->ranges[0] = found;
      known = &found;
    }
    const Rule& rule = known->table.find(pc);
    if (rule.kind != Rule::None) {
      if (known_) known_->rules[known_place(pc)] = {pc, rule, code_.generation};
      return by_rule(s, rule, 0, out);
    }
    // "Behind a call" that is the begin of a function: somebody put it there for the first frame of a stack (makecontext).
    if (!s.is_exact && known->table.find(s.pc).kind != Rule::None)
      return out.slot = 0, out.has_sp_word = out.is_unsure = false, Stop::Complete;
    return without_rule(s, Stop::NoRule, out);
  }

  const KnownRange* known_range(uint64_t pc) const {
    if (!known_) return nullptr;
    for (const KnownRange& r : known_->ranges)
      if (pc - r.begin < r.end - r.begin) return &r;
    return nullptr;
  }

  // All but signal frames lie further out than their callee, and not too far.
  Stop check(const State& s, uint64_t cfa) const {
    if (cfa - s.sp - 8 > max_frame_size) return Stop::NotOutward;
    if (stack_.has(s.sp) && !stack_.has(cfa)) return Stop::OutsideStack;
    return Stop::None;
  }

  [[gnu::always_inline]] Stop by_rule(const State& s, const Rule& r, uint64_t rbx, Step& out) const {
    uint64_t cfa;
    out.means = Means::Cfi, out.has_sp_word = out.is_unsure = false;
    switch (r.kind) {
      case Rule::Rsp: cfa = s.sp + r.offset; break;
      case Rule::Rbp: cfa = s.bp + r.offset; break;
      case Rule::Plt: cfa = s.sp + 8 + ((s.pc & 15) >= static_cast<uint32_t>(r.offset) ? 8 : 0); break;
      case Rule::AtRsp:
      case Rule::AtRbp:
        out.has_sp_word = true;
        out.sp_slot = (r.kind == Rule::AtRsp ? s.sp : s.bp) + r.offset;
        if (!memory_.read(out.sp_slot, out.sp_word)) return Stop::Unreadable;
        cfa = out.sp_word + r.add;
        break;
      case Rule::Rbx:
        if (!rbx) return Stop::NeedsRbx;
        out.is_unsure = true;
        cfa = rbx + r.offset;
        break;
      case Rule::Reg:
        if (!s.registers || (!s.is_exact && !is_left_by_register(s, r))) return without_rule(s, Stop::Unsupported, out);
        out.is_unsure = !s.is_exact;
        cfa = (*s.registers)[r.reg] + r.offset;
        break;
      case Rule::AtIndex: {
        if (!s.registers || !s.is_exact) return without_rule(s, Stop::Unsupported, out);
        uint64_t word;
        if (!memory_.read(s.sp + r.offset + (*s.registers)[r.reg] * r.scale, word)) return Stop::Unreadable;
        cfa = word + r.add;
        break;
      }
      case Rule::Signal: return by_signal_frame(s, out);
      case Rule::End: out.slot = 0; return Stop::Complete;
      default: return without_rule(s, Stop::Unsupported, out);
    }
    if (Stop why = check(s, cfa); why != Stop::None) return why;
    out.slot = cfa - 8;
    if (!memory_.read(out.slot, out.caller.pc)) return Stop::Unreadable;
    if (r.rbp == Rule::SavedCfa || r.rbp == Rule::SavedRbp) {
      out.second_slot = (r.rbp == Rule::SavedCfa ? cfa : s.bp) + r.rbp_offset;
      if (!memory_.read(out.second_slot, out.second)) return Stop::Unreadable;
      out.caller.bp = out.second;
    } else {
      out.second_slot = out.slot, out.second = out.caller.pc;
      out.caller.bp = r.rbp == Rule::Same ? s.bp : 0;
    }
    out.caller.sp = cfa;
    out.caller.is_exact = r.is_interrupted;
    return out.caller.pc ? Stop::None : Stop::Complete;
  }

  // The registers are those of the frame that this one has called: those that a call need not keep may still be its own. Cryptography calls
  // its loops so.
  [[gnu::noinline]] bool is_left_by_register(const State& s, const Rule& r) const {
    constexpr uint8_t rbx = 3, r12 = 12;
    uint64_t cfa = (*s.registers)[r.reg] + r.offset, pc;
    return r.reg != rbx && r.reg < r12 && check(s, cfa) == Stop::None && memory_.read(cfa - 8, pc) && is_behind_call(pc);
  }

  // The kernel's struct ucontext is at rsp: the interrupted frame may be on another stack.
  [[gnu::noinline]] Stop by_signal_frame(const State& s, Step& out) const {
    out.means = Means::Cfi, out.has_sp_word = true, out.is_unsure = false;
    out.slot = s.sp + saved_rip_at, out.second_slot = s.sp + saved_rbp_at, out.sp_slot = s.sp + saved_rsp_at;
    if (!memory_.read(out.slot, out.caller.pc) || !memory_.read(out.second_slot, out.second) ||
        !memory_.read(out.sp_slot, out.sp_word))
      return Stop::Unreadable;
    out.caller.sp = out.sp_word, out.caller.bp = out.second, out.caller.is_exact = true;
    return out.caller.pc ? Stop::None : Stop::Complete;
  }

  // Code that somebody wrote at run time is returned to where he likes: Java's interpreter pushes addresses that no call stands before.
  bool is_written_code(uint64_t pc) const {
    const CodeRange* range = code_.find(pc);
    return range && !range->table;
  }

  [[gnu::noinline]] Stop without_rule(const State& s, Stop why, Step& out) const {
    if (is_restorer(s)) return by_signal_frame(s, out);
    out.has_sp_word = out.is_unsure = false;
    if (use_.frame_pointers) {
      // CFA = rbp + 16, rbp = *rbp
      uint64_t cfa = s.bp + 16;
      out.means = Means::FramePointer;
      out.slot = s.bp + 8, out.second_slot = s.bp;
      if (s.bp % 8 == 0 && check(s, cfa) == Stop::None && memory_.read(out.slot, out.caller.pc) &&
          memory_.read(out.second_slot, out.second)) {
        out.caller.sp = cfa, out.caller.bp = out.second, out.caller.is_exact = false;
        if (out.caller.pc == 0) return Stop::Complete;
        if (is_written_code(out.caller.pc) || is_behind_call(out.caller.pc)) return Stop::None;
      }
    }
    return use_.guesses ? guess(s, why, out) : why;
  }

  // The nearest word that points behind a call.
  Stop guess(const State& s, Stop why, Step& out) const {
    out.means = Means::Guess;
    for (uint32_t i = 0; i < guess_words; i++) {
      uint64_t cfa = s.sp + (i + 1) * 8;
      if (check(s, cfa) != Stop::None || !memory_.read(cfa - 8, out.caller.pc)) break;
      if (!is_behind_call(out.caller.pc)) continue;
      out.slot = out.second_slot = cfa - 8, out.second = out.caller.pc;
      out.caller.sp = cfa, out.caller.is_exact = false;
      out.caller.bp = s.bp >= cfa ? s.bp : 0;
      return Stop::None;
    }
    return why;
  }

  // C libraries without CFI, and Go.
  bool is_restorer(const State& s) const {
    uint64_t bytes, next = 0;
    if (!code_.find(s.pc) || !memory_.read(s.pc, bytes)) return false;
    if (!rt::is_restorer(bytes, 0x05)) return false;  // (the ninth byte is read where it matters)
    return rt::is_restorer(bytes, 0) || (memory_.read(s.pc + 8, next) && static_cast<uint8_t>(next) == 0x05);
  }

  bool is_behind_call(uint64_t pc) const {
    const CodeRange* range = code_.find(pc - 1);
    uint64_t bytes;
    if (!range || pc - range->begin < 8) return false;
    // (Code without a table may be written anew.)
    constexpr uint64_t is_call = uint64_t{1} << 63;
    uint64_t* known = known_ && range->table ? &known_->calls[known_place(pc) % 64] : nullptr;
    if (known && (*known & ~is_call) == pc) return *known & is_call;
    bool found = memory_.read(pc - 8, bytes) && call_before(bytes);
    if (known) *known = found ? pc | is_call : pc;
    return found;
  }

  const Code& code_;
  const Stack& stack_;
  Use use_;
  Known* known_;
  Memory& memory_;
};

}  // namespace weir::rt
