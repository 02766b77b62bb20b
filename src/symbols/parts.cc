#include "symbols/parts.h"

#include "x86/insn.h"

namespace weir::symbols {

namespace {

constexpr std::string_view cold = ".cold";

// "work.cold" -> "work"; "work.cold.1" may be a function that is called.
std::string_view whole_name(const Function& f) {
  std::string_view name = f.linkage_name;
  return name.ends_with(cold) ? name.substr(0, name.size() - cold.size()) : "";
}

// A symbol has it that begins before: assembly with several FDEs in one function, and holes between them.
bool is_inside(const Function& f) { return f.offset != 0 && !f.is_nameless; }

bool has_number(const Function& f) {
  std::string_view name = f.linkage_name;
  size_t end = name.find_last_not_of("0123456789");
  return end != name.npos && end + 1 < name.size() && name[end] == '.' && name.substr(0, end).ends_with(cold);
}

}  // namespace

bool PartFinder::is_part(const Function& f) {
  if (f.kind != Kind::Function) return false;
  return is_inside(f) || !whole_name(f).empty() || ((f.is_nameless || has_number(f)) && frames_.is_under_way(f.range.begin));
}

const Function* PartFinder::whole_of(const Function& part, const FunctionAt& function_at) {
  if (!is_part(part)) return nullptr;
  if (is_inside(part)) return function_at(part.range.begin + -static_cast<int64_t>(part.offset));
  std::string_view name = whole_name(part);
  const Function* found = nullptr;
  elf::Bytes code = elf::slice(image_.contents.at(part.range.begin), 0, part.range.size());
  for (uint64_t at = 0; at < code.size();) {
    x86::Insn insn = x86::decode(code.subspan(at), {part.range.begin.value + at});
    at += std::max<uint64_t>(insn.shape->length, 1);
    Vaddr target{insn.target.value};
    bool is_jump = insn.kind() == x86::Kind::Jump || insn.kind() == x86::Kind::Branch;
    if (!is_jump || part.range.contains(target)) continue;
    const Function* to = function_at(target);
    if (!to || to->range.begin == target || is_part(*to)) continue;
    if (!name.empty() && to->linkage_name != name) continue;
    if (found && found->range.begin != to->range.begin) return nullptr;
    found = to;
  }
  return found || name.empty() ? found : named(name, function_at);
}

const Function* PartFinder::named(std::string_view name, const FunctionAt& function_at) {
  const Symbol* found = nullptr;
  for (const Symbol& s : symbols_.all()) {
    if (s.name != name) continue;
    if (found && found->begin != s.begin) return nullptr;
    found = &s;
  }
  const Function* f = found ? function_at(found->begin) : nullptr;
  return f && f->range.begin == found->begin ? f : nullptr;
}

}  // namespace weir::symbols
