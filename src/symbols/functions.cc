// The problem: functions from three sources that overlap and contradict each other.
//
// Bounds and names are found apart. Bounds follow the rules of elf/image.cc, so that what was counted is what is named.
// A name is that of
//   1. the best symbol at the first address of the function     (several names for one function are common)
//   2. the symbol that covers the first address, "name+0x28"    (assembly with several FDEs in one function, and holes between them)
//   3. the symbol inside that has at least half of the function (an FDE that begins with padding)
// Invariants: the list is sorted and no two functions share an address; what is found around an address is in the list.
#include "symbols/functions.h"

#include <algorithm>

#include "symbols/demangle.h"

namespace weir::symbols {

namespace {

using Around = SymbolTable::Around;

// The functions that symbols make in a gap between FDEs. One that began before the gap may have a hole in its FDEs there.
void add_gap(const Around& around, VRange gap, std::vector<VRange>& bounds) {
  if (around.before) bounds.push_back({gap.begin, std::min(around.before->end(), gap.end)});
  for (auto s = around.inside.begin(); s != around.inside.end(); ++s) {
    // Another name, or a label inside.
    if (!bounds.empty() && s->begin < bounds.back().end) continue;
    Vaddr end = s->end();
    if (s->size == 0) {
      auto next = std::ranges::upper_bound(s, around.inside.end(), s->begin, {}, &Symbol::begin);
      end = next == around.inside.end() ? s->limit : std::min(s->limit, next->begin);
    }
    end = std::min(end, gap.end);
    if (s->begin < end) bounds.push_back({s->begin, end});
  }
}

// FDEs and the symbols between them, of one executable segment.
void add_segment(elf::EhFrame& frames, SymbolTable& symbols, VRange code, size_t& most, std::vector<VRange>& bounds) {
  for (Vaddr v = code.begin; v < code.end && most > 0; --most) {
    elf::EhFrame::Place place = frames.find(v);
    if (place.function) {
      bounds.push_back({v, std::min(place.function->end, code.end)});
      v = place.function->end;
    } else {
      VRange gap{v, std::min(place.gap.end, code.end)};
      add_gap(symbols.around(gap), gap, bounds);
      v = place.gap.end;
    }
  }
}

std::vector<VRange> list_bounds(const Object& image, SymbolTable& symbols) {
  elf::EhFrame frames(image.contents, image.sections);
  // An FDE takes 16 bytes of the file and an entry of the table 8: a broken table cannot make us look for more.
  size_t most = image.contents.file.size() / 4;
  std::vector<VRange> bounds;
  for (VRange code : image.code()) add_segment(frames, symbols, code, most, bounds);
  return bounds;
}

std::string_view file_name(const Object& image) { return std::string_view(image.path).substr(image.path.rfind('/') + 1); }

// Of those that begin at `v`, the first of `symbols`.
const Symbol* best_at(Vaddr v, std::span<const Symbol> symbols) {
  const Symbol *best = nullptr, *resolver = nullptr;
  for (const Symbol& s : symbols) {
    if (s.begin != v) break;
    if (!resolver && s.type == STT_GNU_IFUNC) resolver = &s;
    if (!best || is_better(s, *best)) best = &s;
  }
  // The name that programs use is the IFUNC's; the resolver may have one of its own besides.
  return resolver && best->type != STT_GNU_IFUNC ? resolver : best;
}

const Symbol* largest_inside(VRange range, std::span<const Symbol> symbols) {
  for (const Symbol& s : symbols)
    if (std::min(s.end(), range.end) - s.begin >= static_cast<int64_t>((range.size() + 1) / 2)) return &s;
  return nullptr;
}

Function named(const Object& image, VRange range, const Around& around) {
  Function f{.range = range};
  if (const Symbol* best = best_at(range.begin, around.inside)) {
    f.linkage_name = best->name;
    f.kind = best->type == STT_GNU_IFUNC ? Kind::Resolver : Kind::Function;
  } else if (around.before) {
    f.whole = around.before->name;
    f.offset = static_cast<uint64_t>(range.begin - around.before->begin);
  } else if (const Symbol* inside = largest_inside(range, around.inside)) {
    f.linkage_name = inside->name;
  } else {
    f.whole = file_name(image);
    f.offset = range.begin.value;
    f.is_nameless = true;
  }
  return f;
}

// Entries of PLTs take the place of what covers them.
std::vector<Function> merge(std::vector<Function> functions, std::vector<Function> entries) {
  std::vector<Function> merged;
  merged.reserve(functions.size() + entries.size());
  auto entry = entries.begin();
  Vaddr end;
  auto add = [&](Function f) {
    if (f.range.begin < end || f.range.begin >= f.range.end) return;
    end = f.range.end;
    merged.push_back(std::move(f));
  };
  for (Function& f : functions) {
    while (entry != entries.end() && entry->range.begin <= f.range.begin) add(std::move(*entry++));
    if (entry != entries.end()) f.range.end = std::min(f.range.end, entry->range.begin);
    add(std::move(f));
  }
  while (entry != entries.end()) add(std::move(*entry++));
  return merged;
}

}  // namespace

std::string unnamed(const Object& image, Vaddr v) { return fmt::format("{}+{:#x}", file_name(image), v.value); }

const std::string& Function::name() const {
  constexpr std::string_view at_plt = "@plt";
  if (!made_name.empty()) return made_name;
  if (linkage_name.empty()) made_name = fmt::format("{}+{:#x}", demangle(whole), offset);
  else if (kind == Kind::PltEntry)
    made_name = demangle(linkage_name.substr(0, linkage_name.size() - at_plt.size())).append(at_plt);
  else if (kind == Kind::Resolver) made_name = demangle(linkage_name) + " [resolver]";
  else if (auto [author, clone] = split_clone(linkage_name); clone.empty()) made_name = demangle(linkage_name);
  else made_name = fmt::format("{} [{}]", demangle(std::string(author)), clone);
  return made_name;
}

std::vector<Function> list_functions(const Object& image, SymbolTable& symbols) {
  symbols.all();
  std::vector<Function> functions;
  std::vector<VRange> bounds = list_bounds(image, symbols);
  functions.reserve(bounds.size());
  for (VRange range : bounds) functions.push_back(named(image, range, symbols.around(range)));
  auto resolver = [&](Vaddr v) -> std::string {
    auto found = std::ranges::lower_bound(functions, v, {}, [](const Function& f) { return f.range.begin; });
    return found != functions.end() && found->range.begin == v ? found->linkage_name : "";
  };
  std::vector<Function> entries = Plt(image, resolver).entries();
  return merge(std::move(functions), std::move(entries));
}

// ---- One function --------------------------------------------------------------------------------------------------------

FunctionFinder::FunctionFinder(const Object& image, SymbolTable& symbols)
    : image_(image),
      symbols_(symbols),
      code_(image.code()),
      frames_(image.contents, image.sections),
      plt_(image, [this](Vaddr v) {
        std::optional<VRange> range = bounds_at(v).function;
        return range && range->begin == v ? named(image_, *range, symbols_.around(*range)).linkage_name : "";
      }) {}

FunctionFinder::Bounds FunctionFinder::bounds_at(Vaddr v) {
  auto code = std::ranges::find_if(code_, [&](VRange c) { return c.contains(v); });
  if (code == code_.end()) return {};
  elf::EhFrame::Place place = frames_.find(v);
  if (place.function) {
    VRange range = elf::intersect(*place.function, *code);
    // FDEs that overlap are cut where those before them end.
    auto before = range.begin > code->begin ? frames_.find(range.begin + -1).function : std::nullopt;
    return before && before->end > range.begin ? Bounds{} : Bounds{.function = range};
  }
  // (Behind an FDE that is broken, or empty, it is not known where the gap begins.)
  if (place.gap.begin == Vaddr{0} && v >= frames_.first()) return {};
  VRange gap = elf::intersect(place.gap, *code);
  std::vector<VRange> bounds;
  add_gap(symbols_.around(gap), gap, bounds);
  auto after = std::ranges::upper_bound(bounds, v, {}, &VRange::begin);
  if (after != bounds.begin() && std::prev(after)->contains(v)) return {.function = *std::prev(after)};
  // The hole ends where its neighbours begin and end, which may be in another segment.
  Bounds found{.hole = VRange{{0}, {UINT64_MAX}}};
  if (after != bounds.begin()) found.hole->begin = std::prev(after)->end;
  else if (place.gap.begin > code->begin) found.hole->begin = gap.begin;
  else if (code != code_.begin()) return {};
  if (after != bounds.end()) found.hole->end = after->begin;
  else if (place.gap.end < code->end) found.hole->end = gap.end;
  else if (std::next(code) != code_.end()) return {};
  bool is_fde = found.hole->end == gap.end && after == bounds.end() && gap.end < code->end;
  if (is_fde && !frames_.find(gap.end).function) return {};
  return found;
}

std::optional<FunctionFinder::Place> FunctionFinder::at(Vaddr v) {
  if (auto entry = plt_.entry_at(v)) return Place{std::move(entry), {}};
  Bounds found = bounds_at(v);
  if (found.function) {
    Function f = named(image_, *found.function, symbols_.around(*found.function));
    for (VRange plt : plt_.ranges()) {  // as merge() does it
      if (plt.contains(f.range.begin)) return {};
      if (plt.begin > f.range.begin) f.range.end = std::min(f.range.end, plt.begin);
    }
    return f.range.contains(v) ? std::optional(Place{std::move(f), {}}) : std::nullopt;
  }
  if (!found.hole) return {};
  VRange hole = *found.hole;
  for (VRange plt : plt_.ranges()) {
    if (plt.end <= v) hole.begin = std::max(hole.begin, plt.end);
    else hole.end = std::min(hole.end, plt.begin);
  }
  return Place{{}, hole};
}

}  // namespace weir::symbols
