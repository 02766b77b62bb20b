// Weir's own memory in the target: what the program may not change, and what it gets if it asks for those very addresses.
//
// Weir can do without thread blocks that no thread has, parts of arenas that hold no code, and pages of the table for low halves that no code has. What
// was given away is the program's for good: nothing of ours is mapped there again. Where it wants more than that, or code comes where the table has
// no place for it, the process begins anew in another space: see Server::move.

#include <algorithm>

#include "engine/space.h"

namespace weir::engine {

namespace {
constexpr uint64_t page = 4096;

// What is in `a` and not in `b`.
std::vector<AppRange> without(AppRange a, std::span<const AppRange> b) {
  std::vector<AppRange> rest{a}, next;
  for (const AppRange& o : b) {
    next.clear();
    for (const AppRange& r : rest) {
      if (!r.overlaps(o)) {
        next.push_back(r);
        continue;
      }
      if (r.begin < o.begin) next.push_back({r.begin, o.begin});
      if (o.end < r.end) next.push_back({o.end, r.end});
    }
    rest.swap(next);
  }
  return rest;
}

AppRange common(AppRange a, AppRange b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }
}  // namespace

// The runtime does not let the program change what is there.
void Space::tell_own(AppRange range) {
  for (const AppRange& part : without(range, given_)) own_.push_back(part);
  std::ranges::sort(own_);
  write_own();
}

void Space::write_own() {
  if (own_.size() > rt::max_own && !std::exchange(is_told_, true))
    say("a program has more than {} code caches; it is not kept from mapping memory over the others", rt::max_own);
  auto* to = page_.as<volatile rt::SpacePage>();
  to->version = to->version + 1;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  to->own_count = static_cast<uint32_t>(std::min<size_t>(own_.size(), rt::max_own));
  for (size_t i = 0; i < to->own_count; i++) {
    to->own[i].begin = own_[i].begin.value;
    to->own[i].end = own_[i].end.value;
  }
  to->claim.begin = claim_.begin.value;
  to->claim.end = claim_.end.value;
  to->given_count = static_cast<uint32_t>(given_low_.size());
  for (size_t i = 0; i < given_low_.size(); i++) {
    to->given[i].begin = given_low_[i].begin;
    to->given[i].end = given_low_[i].end;
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  to->version = to->version + 1;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // (see claim)
}

// A piece that is to be mapped, but for what is the program's by now.
void Space::add_piece(Piece piece) {
  AppRange whole{{piece.address}, {piece.address + piece.size}};
  for (const AppRange& part : without(whole, given_)) {
    Piece rest = piece;
    rest.offset += static_cast<uint64_t>(part.begin - whole.begin);
    rest.address = part.begin.value;
    rest.size = part.size();
    pieces_.push_back(rest);
  }
}

bool Space::is_own(AppPc pc) const {
  return std::ranges::any_of(own_, [&](AppRange own) { return own.contains(pc); });
}

bool Space::is_given(AppRange range) const {
  return std::ranges::any_of(given_, [&](AppRange g) { return g.overlaps(range); });
}

bool Space::has_table_for(AppRange range) const {
  for (const LowRange& low : low_halves(range))
    for (const LowRange& given : given_low_)
      if (low.begin < given.end && given.begin < low.end) return false;
  return true;
}

// Pages of the table without entries of code that there is, or that is promised a place.
std::vector<AppRange> Space::can_give_of_table(AppRange part) const {
  std::vector<AppRange> in_use;
  auto use = [&](AppRange code) {
    for (const LowRange& low : low_halves(code))
      in_use.push_back(
          {{(table_address() + 8 * low.begin) & ~(page - 1)}, {(table_address() + 8 * low.end + page - 1) & ~(page - 1)}});
  };
  for (const AppRange& code : twins_.code()) use(code);
  for (const AppRange& promised : promised_) use(promised);
  return without(part, in_use);
}

std::vector<AppRange> Space::can_give(AppRange own, AppRange wanted) const {
  AppRange part = common(own, wanted);
  if (has_tool_region_in(part)) return {};
  if (is_in_table(part)) return can_give_of_table(part);
  for (const Translated& other : std::span(versions_).subspan(1))
    if (part.overlaps({{other.table_address}, {other.table_address + rt::table_size}})) return {};
  const Arena* arena = arenas_.at({part.begin.value});
  if (!arena) return {part};
  AppPc in_use{arena->base.value + ((arena->used + page - 1) & ~(page - 1))};
  if (part.end <= in_use) return {};
  // There must be room for stubs: see Links::has_room().
  AppRange rest{std::max(part.begin, in_use), part.end};
  size_t stubs = arena->all_links() * instrument::stub_size;
  return static_cast<uint64_t>(rest.begin - in_use) >= stubs ? std::vector{rest} : std::vector<AppRange>{};
}

std::optional<std::vector<AppRange>> Space::parts_to_give(AppRange range, rt::Giving how) const {
  std::vector<AppRange> parts;
  for (const AppRange& own : own_) {
    if (!own.overlaps(range)) continue;
    std::vector<AppRange> some = can_give(own, range);
    uint64_t size = 0;
    for (const AppRange& r : some) size += r.size();
    if (how == rt::Giving::All && size < common(own, range).size()) return {};
    parts.insert(parts.end(), some.begin(), some.end());
  }
  return parts;
}

void Space::give_of_table(AppRange part) {
  given_low_.push_back({(part.begin.value - table_address()) / 8, (part.end.value - table_address()) / 8});
  std::ranges::sort(given_low_, {}, &LowRange::begin);
  if (given_low_.size() <= rt::max_given) return;
  // The two that are nearest become one.
  size_t nearest = 0;
  auto distance = [&](size_t i) { return given_low_[i + 1].begin - given_low_[i].end; };
  for (size_t i = 1; i + 1 < given_low_.size(); i++)
    if (distance(i) < distance(nearest)) nearest = i;
  given_low_[nearest].end = given_low_[nearest + 1].end;
  given_low_.erase(given_low_.begin() + static_cast<ptrdiff_t>(nearest) + 1);
}

void Space::give(std::vector<AppRange>& parts, size_t mapped) {
  for (AppRange& part : parts) {
    if (is_in_table(part)) {
      give_of_table(part);
      continue;
    }
    // What an arena has behind is of no use, then.
    if (Arena* a = arenas_.at({part.begin.value})) {
      part.end = {a->base.value + a->size};
      a->size = static_cast<size_t>(part.begin.value - a->base.value);
      a->is_keepable = false;
    }
  }
  given_.insert(given_.end(), parts.begin(), parts.end());
  std::vector<AppRange> own;
  for (const AppRange& o : own_)
    for (const AppRange& rest : without(o, parts)) own.push_back(rest);
  own_ = std::move(own);
  write_own();
  std::vector<Piece> waiting(pieces_.begin() + static_cast<ptrdiff_t>(mapped), pieces_.end());
  pieces_.resize(mapped);
  for (const Piece& piece : waiting) add_piece(piece);
}

// The table stays where it is if it can, and all that its place can be used for.
Result<std::unique_ptr<Space>> Space::begin_elsewhere(AppRange wanted, bool moves_table) const {
  TRY(auto s, create_empty([&] { return tool_->copy(); }, takings_));
  s->counters_ = counters_;
  s->limit_ = limit_;
  s->given_ = given_;
  s->given_.push_back(wanted);
  s->tool_regions_ = tool_regions_;
  uint64_t first = table_address();
  auto is_free = [&](AppRange r) { return !s->is_given(r) && r.begin.value != table_address(); };
  if (moves_table || wanted.overlaps({{first}, {first + rt::table_size}})) {
    first = rt::high_table_base;
    while (!is_free({{first}, {first + rt::table_size}})) first += rt::table_size;
  } else {
    s->given_low_ = given_low_;
  }
  s->choose_tables(first, is_free);
  TRY(s->twins_, Twins::create());
  TRY_VOID(s->create_memory());
  for (const std::string& name : images_) s->add_image(name);
  for (const AppRange& code : twins_.code()) s->note_code(code);
  if (places_.file && !s->make_places()) return fail("there is no memory for what is known of its code");
  return s;
}

}  // namespace weir::engine
