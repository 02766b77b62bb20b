#include "sample/sites.h"

#include <elf.h>
#include <emmintrin.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "elf/kept.h"

namespace weir::sample {

namespace {

using namespace std::string_view_literals;

constexpr std::pair<int, Site::Call> guarded_calls[] = {{SYS_execve, Site::Execute},     {SYS_rt_sigaction, Site::Action},
                                                        {SYS_execveat, Site::ExecuteAt}, {SYS_mlockall, Site::Lock},
                                                        {SYS_ptrace, Site::Trace},       {SYS_prctl, Site::Dispatch}};

// The file, by the addresses that it says of itself. What is not there reads as nothing.
class Contents {
 public:
  explicit Contents(const elf::Image& image)
      : image_(image), bytes_(reinterpret_cast<const char*>(image.bytes().data()), image.bytes().size()) {}

  std::string_view at(uint64_t vaddr, uint64_t size) const {
    for (const elf::Segment& s : image_.segments())
      if (uint64_t inside = vaddr - s.vaddr.value;
          s.type == PT_LOAD && inside < s.file_size && size <= s.file_size - inside)
        return bytes_.substr(s.offset + inside, size);
    return {};
  }

  template <class T>
  T value(uint64_t vaddr) const {
    T value{};
    if (std::string_view found = at(vaddr, sizeof value); !found.empty()) memcpy(&value, found.data(), sizeof value);
    return value;
  }

  // Has it a dynamic symbol of that name, its own or another's?
  bool names(std::string_view name) const {
    std::string_view names = at(dynamic(DT_STRTAB), dynamic(DT_STRSZ));
    std::string wanted = '\0' + std::string(name) + '\0';
    return memmem(names.data(), names.size(), wanted.data(), wanted.size()) != nullptr;
  }

  // Its dynamic symbol of that name: where it is, and how large. (The names lie behind the symbols, as all linkers have it.)
  Elf64_Sym defined(std::string_view name) const {
    uint64_t symbols = dynamic(DT_SYMTAB), strings = dynamic(DT_STRTAB);
    for (uint64_t v = symbols; v + sizeof(Elf64_Sym) <= strings; v += sizeof(Elf64_Sym)) {
      auto s = value<Elf64_Sym>(v);
      if (s.st_value && at(strings + s.st_name, name.size()) == name && at(strings + s.st_name + name.size(), 1) == "\0"sv)
        return s;
    }
    return {};
  }

  // For each executable segment: its address and its bytes.
  template <class F>
  void each_text(const F& f) const {
    for (const elf::Segment& s : image_.segments())
      if (s.type == PT_LOAD && (s.flags & PF_X)) f(s.vaddr.value, bytes_.substr(s.offset, s.file_size));
  }

  uint64_t dynamic(int64_t tag) const {
    for (const elf::Segment& s : image_.segments())
      for (uint64_t i = 0; s.type == PT_DYNAMIC && i + sizeof(Elf64_Dyn) <= s.file_size; i += sizeof(Elf64_Dyn))
        if (auto d = value<Elf64_Dyn>(s.vaddr.value + i); d.d_tag == tag) return d.d_un.d_val;
    return 0;
  }

 private:
  const elf::Image& image_;
  std::string_view bytes_;
};

// Calls f(at) for each place with one or two bytes. Hundreds of megabytes are searched for bytes that are not rare.
template <class F>
void each_match(std::string_view text, std::string_view wanted, const F& f) {
  constexpr size_t width = sizeof(__m128i);
  size_t last = wanted.size() - 1, at = 0;
  __m128i first_byte = _mm_set1_epi8(wanted[0]), last_byte = _mm_set1_epi8(wanted[last]);
  auto load = [&](size_t i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + i)); };
  for (; at + width + last <= text.size(); at += width) {
    __m128i equal = _mm_and_si128(_mm_cmpeq_epi8(load(at), first_byte), _mm_cmpeq_epi8(load(at + last), last_byte));
    for (auto found = static_cast<uint32_t>(_mm_movemask_epi8(equal)); found; found &= found - 1)
      f(at + static_cast<size_t>(std::countr_zero(found)));
  }
  for (; at + last < text.size(); at++)
    if (text.substr(at, last + 1) == wanted) f(at);
}

int32_t word(std::string_view text, size_t at) {
  int32_t value = 0;
  if (at + sizeof value <= text.size()) memcpy(&value, text.data() + at, sizeof value);
  return value;
}

constexpr std::string_view syscall_function =
    "\x48\x89\xf8\x48\x89\xf7"sv;  // syscall(): mov %rdi, %rax ; mov %rsi, %rdi ; …

// Compilers and assemblers put the number into eax, and make the call there, or some instructions later. (What only looks so is never met.)
// It is the calls that are looked for: they are rare, and the bytes that set eax are not.
void find_calls(const Contents& file, std::vector<Site>& found) {
  constexpr size_t near = 64;
  file.each_text([&](uint64_t base, std::string_view text) {
    size_t last = 0;  // behind the call before
    each_match(text, "\x0f\x05"sv, [&](size_t at) {
      size_t begin = std::max(last, at - std::min(at, near));
      std::string_view before = text.substr(begin, at - begin);
      last = at + 2;
      if (before.contains(syscall_function)) found.push_back({base + at, Site::Any});
      for (auto [number, kind] : guarded_calls) {
        const char low = static_cast<char>(number & 0xff), high = static_cast<char>(number >> 8);
        const std::string numbers[] = {
            {'\xb8', low, high, 0, 0}, {'\x48', '\xc7', '\xc0', low, high, 0, 0}, {'\x6a', low, '\x58'}};
        if (std::ranges::any_of(numbers, [&](const std::string& set_eax) { return before.contains(set_eax); }))
          return found.push_back({base + at, kind});
      }
    });
  });
}

// The places that the dynamic linker fills with the address of syscall().
std::vector<uint64_t> slots_of_syscall(const Contents& file) {
  std::vector<uint64_t> slots;
  uint64_t symbols = file.dynamic(DT_SYMTAB), strings = file.dynamic(DT_STRTAB);
  for (auto [table, size] : {std::pair{DT_JMPREL, DT_PLTRELSZ}, std::pair{DT_RELA, DT_RELASZ}}) {
    uint64_t begin = file.dynamic(table), length = file.dynamic(size);
    if (!begin || file.at(begin, length).empty()) continue;
    for (uint64_t i = 0; i + sizeof(Elf64_Rela) <= length; i += sizeof(Elf64_Rela)) {
      auto r = file.value<Elf64_Rela>(begin + i);
      uint64_t symbol = ELF64_R_SYM(r.r_info);
      if (!symbol) continue;
      auto name = file.value<Elf64_Sym>(symbols + symbol * sizeof(Elf64_Sym)).st_name;
      if (file.at(strings + name, 8) == "syscall\0"sv) slots.push_back(r.r_offset);
    }
  }
  return slots;
}

// Calls of syscall(), by way of the PLT or not: what number do they have?
void look_at_callers(const Contents& file, Sites& sites) {
  std::vector<uint64_t> slots = slots_of_syscall(file);
  if (slots.empty()) return;
  auto is_slot = [&](uint64_t v) { return std::ranges::find(slots, v) != slots.end(); };
  std::vector<uint64_t> stubs;
  file.each_text([&](uint64_t base, std::string_view text) {
    each_match(text, "\xff\x25"sv, [&](size_t at) {  // jmp *slot(%rip), perhaps behind a prefix and endbr64
      if (!is_slot(base + at + 6 + static_cast<uint64_t>(int64_t{word(text, at + 2)}))) return;
      for (uint64_t before : {0, 1, 4, 5}) stubs.push_back(base + at - before);
    });
  });
  auto [low, high] = std::ranges::minmax_element(stubs);
  uint64_t lowest = stubs.empty() ? UINT64_MAX : *low, highest = stubs.empty() ? 0 : *high;
  constexpr size_t near = 48;
  auto called = [&](std::string_view text, size_t at) {
    std::string_view before = text.substr(at < near ? 0 : at - near, std::min(at, near));
    size_t set_edi = before.rfind('\xbf');  // mov $number, %edi
    int32_t number = set_edi == before.npos ? -1 : word(before, set_edi + 1);
    constexpr int32_t most = 1000;
    bool is_guarded = number == SYS_execve || number == SYS_execveat || number == SYS_rt_sigaction;
    bool is_harmless = number >= 0 && number < most && !is_guarded;
    sites.hides_calls |= !is_harmless;
  };
  file.each_text([&](uint64_t base, std::string_view text) {
    each_match(text, "\xff\x15"sv, [&](size_t at) {  // call *slot(%rip)
      if (is_slot(base + at + 6 + static_cast<uint64_t>(int64_t{word(text, at + 2)}))) called(text, at);
    });
    each_match(text, "\xe8"sv, [&](size_t at) {
      uint64_t to = base + at + 5 + static_cast<uint64_t>(int64_t{word(text, at + 1)});
      if (to >= lowest && to <= highest && std::ranges::find(stubs, to) != stubs.end()) called(text, at);
    });
  });
}

// Of many calls of prctl(2) and ptrace(2) that a C library makes, those are meant that a program makes by its functions.
void keep_functions_alone(const Contents& file, std::vector<Site>& found) {
  for (auto [call, name] : {std::pair{Site::Trace, "ptrace"}, std::pair{Site::Dispatch, "prctl"}}) {
    if (std::ranges::find(found, call, &Site::call) == found.end()) continue;
    Elf64_Sym function = file.defined(name);
    std::erase_if(found, [&](const Site& s) { return s.call == call && s.at - function.st_value >= function.st_size; });
  }
}

constexpr elf::Kind kept_sites{"sites", 0x3273657469737257};  // "Wrsites2"

struct KeptHead {
  uint64_t count;
  uint8_t hides_calls, names_execveat, names_ptrace, names_mlockall, unused[4];
};

struct KeptSite {
  uint64_t at, call;
};

}  // namespace

Sites find_sites(const elf::Image& image) {
  Contents file(image);
  Sites sites;
  find_calls(file, sites.list);
  keep_functions_alone(file, sites.list);
  look_at_callers(file, sites);
  sites.names_execveat = file.names("fexecve") || file.names("execveat");
  sites.names_ptrace = file.names("ptrace");
  sites.names_mlockall = file.names("mlockall");
  return sites;
}

Sites sites_of(const elf::Image& image) {
  if (auto kept = elf::read_kept(image, kept_sites)) {
    KeptHead head{};
    memcpy(&head, kept->bytes.data(), std::min(sizeof head, kept->bytes.size()));
    Sites sites{{}, head.hides_calls != 0, head.names_execveat != 0, head.names_ptrace != 0, head.names_mlockall != 0};
    for (size_t at = sizeof head; at + sizeof(KeptSite) <= kept->bytes.size(); at += sizeof(KeptSite)) {
      KeptSite s;
      memcpy(&s, &kept->bytes[at], sizeof s);
      sites.list.push_back({s.at, static_cast<Site::Call>(std::min<uint64_t>(s.call, Site::Dispatch))});
    }
    if (kept->bytes.size() == sizeof head + head.count * sizeof(KeptSite)) return sites;
  }
  Sites sites = find_sites(image);
  KeptHead head{sites.list.size(), sites.hides_calls, sites.names_execveat, sites.names_ptrace, sites.names_mlockall, {}};
  std::vector<std::byte> bytes(sizeof head + sites.list.size() * sizeof(KeptSite));
  memcpy(bytes.data(), &head, sizeof head);
  for (size_t i = 0; i < sites.list.size(); i++) {
    KeptSite s{sites.list[i].at, sites.list[i].call};
    memcpy(&bytes[sizeof head + i * sizeof s], &s, sizeof s);
  }
  elf::keep(image, kept_sites, bytes);
  return sites;
}

}  // namespace weir::sample
