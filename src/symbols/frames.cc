#include "symbols/frames.h"

#include "symbols/functions.h"

namespace weir::symbols {

namespace {

// The element that has `v`, for addresses that only grow: `i` is the answer for an earlier one.
template <class Element>
size_t advance(const std::vector<Element>& elements, size_t i, Vaddr v) {
  while (i + 1 < elements.size() && elements[i + 1].begin <= v) ++i;
  return i;
}

template <class Element>
size_t index_at(const std::vector<Element>& elements, Vaddr v) {
  const Element* found = last_at(elements, v);
  return found ? static_cast<size_t>(found - elements.data()) : 0;
}

}  // namespace

std::span<const Frame> FrameFinder::at(Vaddr v) {
  CHECK(same_.begin <= v);
  if (!same_.contains(v)) find(v);
  return frames_;
}

const Function* FrameFinder::find_function(Vaddr v) {
  if (!function_ || !function_->range.contains(v)) function_ = function_at_(v);
  return function_;
}

void FrameFinder::find_unit(Vaddr v) {
  if (unit_.unit && unit_.range.contains(v)) return;
  unit_ = info_.unit_at(v);
  if (!unit_.unit) return;
  row_ = index_at(unit_.unit->rows(), v);
  stretch_ = index_at(unit_.unit->stretches(), v);
}

void FrameFinder::find(Vaddr v) {
  frames_.clear();
  same_ = {v, {UINT64_MAX}};
  const Function* function = find_function(v);
  until(function ? function->range.end : v + 1);
  find_unit(v);
  Unit* unit = unit_.unit;
  Place place;
  uint32_t scope = none;
  if (unit) {
    until(unit_.range.end);
    const std::vector<LineRow>& rows = unit->rows();
    row_ = advance(rows, row_, v);
    if (row_ < rows.size() && rows[row_].begin <= v) place = unit->place_of(rows[row_]);
    if (row_ + 1 < rows.size()) until(rows[row_ + 1].begin);
    const std::vector<Unit::Stretch>& stretches = unit->stretches();
    stretch_ = advance(stretches, stretch_, v);
    if (stretch_ < stretches.size() && stretches[stretch_].begin <= v) scope = stretches[stretch_].scope;
    if (stretch_ + 1 < stretches.size()) until(stretches[stretch_ + 1].begin);
    // Before the first row or stretch nothing is known, and that ends at any byte.
    if (place.file.empty() || scope == none) until(v + 1);
  } else {
    until(v + 1);
  }
  for (; scope != none && unit->scope(scope).is_inlined; scope = unit->scope(scope).parent) {
    frames_.push_back({unit->name_of(scope), place, unit_.number_of(scope)});
    place = unit->call_place(scope);
  }
  if (function) frames_.push_back({function->name(), place});
  else if (scope != none) frames_.push_back({unit->name_of(scope), place});
  else frames_.push_back({unnamed_ = unnamed(image_, v), place});
}

}  // namespace weir::symbols
