// The kinds of pages: asked for when a page is met first, forgotten when its mapping changes.
#include "rt/runtime.h"
#include "tools/memory/runtime/memory.h"

namespace weir::memory::runtime {

using rt::ThreadBlock;

namespace {

uint16_t* table_of_process(const ThreadBlock* tb) {
  uint64_t first = rt::address(tb->actions) - offsetof(ThreadBlock, own_actions);
  return reinterpret_cast<uint16_t*>(first + table_offset);
}

uint16_t& entry_of(uint16_t* table, uint64_t page) { return table[page & ((1 << table_bits) - 1)]; }

Answer ask_weir(ThreadBlock* tb, uint64_t address, uint64_t stack_pointer) {
  rt::ToolRequest request{};
  rt::to_words(Question{address, stack_pointer}, request.words);
  return rt::from_words<Answer>(rt::ask(tb, request).words);
}

// As much of an answer as is likely to be met soon.
void note(uint16_t* table, uint64_t address, const Answer& is) {
  constexpr uint64_t around = 32 << 20;
  uint64_t begin = is.begin + around < address ? address - around : is.begin;
  uint64_t end = is.end > address + around ? address + around : is.end;
  for (uint64_t page = begin >> page_bits; page << page_bits < end; page++)
    __atomic_store_n(&entry_of(table, page), static_cast<uint16_t>(upper_bits(page << page_bits) | (is.kind + 1)),
                     __ATOMIC_RELAXED);
}

// A thread begins with a table of its own, which is empty: so it comes here before it counts anything, and tells where its stack is.
void begin(ThreadBlock* tb) {
  uint16_t* table = table_of_process(tb);
  tb->tool[TableWord] = rt::address(table);
  tb->tool[HasAskedWord] = 1;
  uint64_t rsp = tb->regs.gpr[4];
  Answer stack = ask_weir(tb, rsp, rsp);
  if (stack.kind == Stack) note(table, rsp, stack);
}

void routine(ThreadBlock* tb, uint32_t /*number*/, uint64_t address, uint64_t) {
  if (!tb->tool[HasAskedWord]) begin(tb);
  auto* table = reinterpret_cast<uint16_t*>(tb->tool[TableWord]);
  uint64_t known = (entry_of(table, address >> page_bits) ^ upper_bits(address)) - 1;
  if (known >= known_kinds) {
    Answer is = ask_weir(tb, address, 0);
    if (is.begin < is.end) note(table, address, is);
    known = is.kind;
  }
  tb->routine_args[0] = known;
}

void forget(ThreadBlock* tb, uint64_t begin, uint64_t size) {
  constexpr uint64_t many = 1 << 30, MADV_REMOVE = 9;
  uint16_t* table = table_of_process(tb);
  if (size > many && !tb->quiet && !rt::is_error(rt::sys(rt::SYS_madvise, rt::address(table), table_size, MADV_REMOVE)))
    return;
  uint64_t pages = (size + begin % page_size + page_size - 1) >> page_bits;
  for (uint64_t i = 0; i < pages && i >> table_bits == 0; i++) {
    uint16_t& entry = entry_of(table, (begin >> page_bits) + i);
    if (entry) __atomic_store_n(&entry, 0, __ATOMIC_RELAXED);
  }
}

// The program changes its mappings. Before it does, as another thread may get the addresses at once; and behind it, as others may have
// met the pages meanwhile. (What brk gives back nobody gets but by MAP_FIXED.)
void forget_changed(ThreadBlock* tb) {
  constexpr uint64_t MAP_FIXED = 0x10, MREMAP_FIXED = 2, everything = uint64_t{1} << 46;
  const uint64_t(&r)[16] = tb->regs.gpr;
  uint64_t first = r[7], second = r[6], third = r[2], fourth = r[10], fifth = r[8];
  switch (int64_t(r[0])) {
    case rt::SYS_mmap:
      if (fourth & MAP_FIXED) forget(tb, first, second);
      break;
    case rt::SYS_mremap:
      if (fourth & MREMAP_FIXED) forget(tb, fifth, third);
      [[fallthrough]];
    case rt::SYS_munmap:
    case rt::SYS_mprotect:
    case rt::SYS_pkey_mprotect: return forget(tb, first, second);
    case rt::SYS_shmat:
    case rt::SYS_shmdt: return forget(tb, 0, everything);
    default: break;
  }
}

constexpr rt::Hooks make_hooks() {
  rt::Hooks hooks{};
  hooks.routine = routine;
  hooks.kernel_begins = hooks.kernel_ends = forget_changed;
  return hooks;
}
constexpr rt::Hooks hooks = make_hooks();

}  // namespace

TOOL_RUNTIME(memory) = {"memory", &hooks, {}};

}  // namespace weir::memory::runtime
