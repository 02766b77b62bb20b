#include "report/near.h"

#include <algorithm>
#include <utility>

namespace weir::report {
namespace {

constexpr size_t most_names = 3, longest = 100;

std::string lower(std::string_view s) {
  std::string result(s);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return result;
}

// Of two short texts, row by row: d(i, j) = the least of d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + (a[i] ≠ b[j]), and of a swap.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

NearNames::NearNames(std::string_view wanted) : wanted_(lower(wanted.substr(0, longest))) {}

void NearNames::offer(std::string_view name) {
  std::string_view plain = name.substr(0, name.find('('));
  size_t scope = plain.rfind("::");
  size_t most = std::max<size_t>(1, wanted_.size() / 3);
  size_t nearest = most + 1;
  for (std::string_view form : {plain, scope == std::string_view::npos ? plain : plain.substr(scope + 2)}) {
    size_t longer = std::max(form.size(), wanted_.size()), shorter = std::min(form.size(), wanted_.size());
    if (longer - shorter < nearest) nearest = std::min(nearest, distance(wanted_, lower(form)));
  }
  if (nearest > most || std::ranges::find(names_, name) != names_.end()) return;
  auto at = std::ranges::upper_bound(distances_, nearest) - distances_.begin();
  distances_.insert(distances_.begin() + at, nearest);
  names_.insert(names_.begin() + at, std::string(name));
  if (names_.size() > most_names) names_.pop_back(), distances_.pop_back();
}

}  // namespace weir::report
