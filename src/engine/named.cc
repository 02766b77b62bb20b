// Named functions: what is planned for them, and how it comes about that all who call one come to its begin.
//
// A named function is a unit of its own: it begins where its name is, whatever function the unwind tables or other symbols see there, and only
// that unit is entered at its begin. So its probe is met by calls, direct or not, by jumps from other functions and by who falls into it, and
// is not met by loops that lead back to its first instruction.

#include "engine/named.h"

#include <algorithm>

#include "engine/space.h"
#include "x86/stack.h"

namespace weir::engine {

using instrument::Op;
using instrument::Where;

namespace {

// What was found in the images of this process's runs: programs of a run share them.
struct Found {
  std::weak_ptr<elf::Image> image;
  std::shared_ptr<const NamedPlaces> places;
};
struct Cache {
  std::vector<symbols::NamePattern> patterns;
  std::map<const elf::Image*, Found> found;
};

bool is_same(const symbols::NamePattern& p, const instrument::Named& n) {
  return p.symbol == n.symbol && p.image == n.image && p.version == n.version;
}

auto places_from(const NamedPlaces& places, elf::Vaddr v) {
  return std::ranges::lower_bound(places, v, {}, &symbols::NamedFunction::begin);
}

}  // namespace

bool NamedFunctions::wants_returns() const { return std::ranges::any_of(names_, &instrument::Named::returns); }

std::shared_ptr<const NamedPlaces> NamedFunctions::in(const std::shared_ptr<elf::Image>& image) const {
  static Cache cache;
  if (!image) return std::make_shared<NamedPlaces>();
  if (!std::ranges::equal(cache.patterns, names_, is_same)) {
    cache = {};
    for (const instrument::Named& n : names_) cache.patterns.push_back({n.symbol, n.image, n.version});
  }
  constexpr size_t enough = 4096;
  if (cache.found.size() >= enough) std::erase_if(cache.found, [](const auto& f) { return f.second.image.expired(); });
  Found& found = cache.found[image.get()];
  if (found.image.lock() != image)
    found = {image, std::make_shared<const NamedPlaces>(symbols::find_named(*image, cache.patterns))};
  return found.places;
}

uint32_t NamedFunctions::number(instrument::Tool& tool, const instrument::NamedFunction& function) {
  auto [known, is_new] = numbers_.try_emplace({function.image, function.begin, function.name});
  if (is_new) known->second = tool.name(function);
  return known->second;
}

bool Space::is_named(const Region& region, AppPc pc) const {
  if (!region.named) return false;
  elf::Vaddr v{pc.value - region.bias};
  auto place = places_from(*region.named, v);
  return place != region.named->end() && place->begin == v;
}

// Named functions are not inside others.
AppRange Space::without_named(const Region& region, AppRange bounds, AppPc pc) const {
  if (!region.named || region.named->empty()) return bounds;
  auto after = places_from(*region.named, {pc.value - region.bias + 1});
  auto address = [&](auto place) { return AppPc{place->begin.value + region.bias}; };
  if (after != region.named->end()) bounds.end = std::min(bounds.end, std::max(address(after), pc + 1));
  if (after != region.named->begin()) bounds.begin = std::max(bounds.begin, address(std::prev(after)));
  return bounds;
}

// Other units that have its first block, as they loop back to it, are not entered there.
void Space::keep_entries_apart(Translation& t) const {
  const Region& region = *t.region;
  if (!region.named || region.named->empty()) return;
  auto is_others = [&](const auto& place) { return place.app != t.pc && is_named(region, place.app); };
  std::erase_if(t.lowered.table, is_others);
  for (instrument::BlockPlace& b : t.lowered.blocks)
    if (is_others(b)) b.is_entry = false;
}

void Space::plan_named(Translation& t) {
  if (named_.empty()) return;
  if (named_.wants_returns()) plan_ends(t);
  const Region& region = *t.region;
  elf::Vaddr v{t.pc.value - region.bias};
  for (auto p = places_from(*region.named, v); p != region.named->end() && p->begin == v; ++p) {
    const instrument::Named& n = named_[p->pattern];
    uint32_t number = named_.number(*tool_, {p->pattern, p->symbol, region.image_index, t.pc});
    uint32_t wants = (n.returns ? rt::WantsReturn : 0u) | (n.replace ? rt::MayReplace : 0u);
    t.plan.insert(Where::Entry, 0, {{.kind = Op::BeginCall, .counter = {number}, .value = wants}});
  }
}

// Where calls may end: where control comes to from elsewhere but by a call, and behind what moves the stack pointer for good. (In volatile code all
// places that calls return to are units.)
void Space::plan_ends(Translation& t) const {
  const x86::Function& f = t.function;
  auto ends = [](AppPc at) { return Op{.kind = Op::EndCalls, .value = static_cast<int64_t>(at.value)}; };
  t.plan.insert(t.region->is_volatile ? Where::Entry : Where::Arrival, 0, {ends(t.pc)});
  std::vector<x86::BlockId> sites;
  for (const x86::Block& b : f.blocks) {
    if (b.ends == x86::BlockEnd::Call && b.fallthrough != x86::no_block) sites.push_back(b.fallthrough);
    for (uint32_t i = b.first; i < b.first + b.count; i++) {
      const x86::Insn& insn = f.insns[i];
      bool may_move = insn.kind() == x86::Kind::Plain && insn.shape->writes.gpr >> x86::RSP & 1;
      if (!may_move || !x86::moves_stack(t.code_at(insn.pc, insn.shape->length))) continue;
      t.plan.insert(Where::Before, i, {{.kind = Op::NoteStack}});
      t.plan.insert(Where::After, i, {{.kind = Op::TellStack}});
    }
  }
  std::ranges::sort(sites);
  auto same = std::ranges::unique(sites);
  sites.erase(same.begin(), same.end());
  for (x86::BlockId site : sites) t.plan.insert(Where::ReturnSite, site, {ends(f.blocks[site].begin)});
}

}  // namespace weir::engine
