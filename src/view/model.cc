#include "view/model.h"

#include <regex.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/text.h"
#include "store/compare.h"

namespace weir::view {
namespace {

// What a column is sorted by: the largest first, names from A.
std::function<int64_t(const Function&)> number_of(const std::string& column) {
  auto number = [](uint64_t n) { return static_cast<int64_t>(n); };
  if (column == "self") return [=](const Function& f) { return number(f.self); };
  if (column == "total") return [=](const Function& f) { return number(f.total); };
  if (column == "calls") return [=](const Function& f) { return number(f.calls); };
  if (column == "self_min") return [](const Function& f) { return f.self_min ? int64_t(*f.self_min) : -1; };
  if (column == "self_max") return [](const Function& f) { return f.self_max ? int64_t(*f.self_max) : -1; };
  if (column == "os_calls") return [=](const Function& f) { return number(f.os_calls); };
  if (column == "os_time") return [=](const Function& f) { return number(f.os_time); };
  if (column == "change") return [=](const Function& f) { return number(f.self) - number(f.before ? f.before->self : 0); };
  if (column == "change_total")
    return [=](const Function& f) { return number(f.total) - number(f.before ? f.before->total : 0); };
  return nullptr;
}

const std::string& text_of(const std::string& column, const Function& f) {
  return column == "name" ? f.name : column == "image" ? f.image : f.file;
}

// glibc takes stack for every parenthesis, and memory for every repetition, times those around it.
bool is_moderate(const std::string& regex) {
  uint64_t repetitions = 1;
  for (size_t i = regex.find('{'); i != std::string::npos; i = regex.find('{', i + 1)) {
    size_t end = std::min(regex.find('}', i), regex.size()), comma = regex.find(',', i);
    const char* number = regex.c_str() + (comma < end ? comma : i) + 1;
    repetitions *= 1 + std::min<uint64_t>(strtoull(number, nullptr, 10), 100'000);
    if (repetitions > 100'000) return false;
  }
  return regex.size() <= 1000;
}

// Which names match: a part of them, or a regular expression as grep -Ei.
class Pattern {
 public:
  static Result<Pattern> make(const Model::Order& order) {
    Pattern p(order.filter);
    if (!order.regex || order.filter.empty()) return p;
    if (!is_moderate(order.filter))
      return fail("“{}” is too long a regular expression, or repeats too much", shortened(order.filter, 100));
    p.compiled_ = {new regex_t, [](regex_t* r) { regfree(r), delete r; }};
    if (int error = regcomp(p.compiled_.get(), order.filter.c_str(), REG_EXTENDED | REG_NOSUB | REG_ICASE)) {
      char why[200];
      regerror(error, p.compiled_.get(), why, sizeof why);
      p.compiled_ = {};
      return fail("“{}” is not a regular expression: {}", shortened(order.filter, 100), why);
    }
    return p;
  }
  bool matches(const std::string& name) const {
    if (compiled_) return regexec(compiled_.get(), name.c_str(), 0, nullptr, 0) == 0;
    return text_.empty() || strcasestr(name.c_str(), text_.c_str());
  }

 private:
  explicit Pattern(std::string text) : text_(std::move(text)) {}
  std::string text_;
  std::shared_ptr<regex_t> compiled_;
};

}  // namespace

Result<Model> Model::load(const store::Reader& now, const store::Reader* before) {
  Model model;
  model.compared_ = before;
  TRY_VOID(model.add_functions(now, before));
  TRY_VOID(model.add_calls(now, false));
  if (before) TRY_VOID(model.add_calls(*before, true));
  model.link();
  return model;
}

Result<> Model::add_functions(const store::Reader& now, const store::Reader* before) {
  if (!before) {
    TRY_VOID(now.functions({}, [&](const store::FunctionRow& f) { functions_.push_back(Function{f, {}}); }));
  } else {
    TRY(std::vector<store::Pair> pairs, store::compare(now, *before, store::OsTime::InSelf));
    for (store::Pair& p : pairs)
      if (p.now) first_before_ = std::max(first_before_, p.now->id + 1);
    for (store::Pair& p : pairs) {
      Function f{p.either(), {}};
      if (!p.now) f.id = first_before_ + p.before->id;
      if (p.before) f.before = {p.before->calls, p.before->self, p.before->total};
      if (p.before) page_id_of_before_[p.before->id] = f.id;
      f.ran = p.now.has_value();
      if (!f.ran) {
        f.calls = f.self = f.total = f.os_calls = f.os_time = f.os_time_total = 0;
        f.self_min = f.self_max = std::nullopt;
      }
      functions_.push_back(std::move(f));
    }
  }
  for (uint32_t i = 0; i < functions_.size(); i++) index_[functions_[i].id] = i;
  return {};
}

Result<> Model::add_calls(const store::Reader& reader, bool of_before) {
  return reader.calls({}, [&](const store::CallRow& c) {
    auto page_id = [&](uint32_t id) { return of_before ? id_of_before(id) : id; };
    std::optional<uint32_t> callee = index_of(page_id(c.callee));
    if (!callee) return;
    std::optional<uint32_t> caller = c.caller == store::none ? std::nullopt : index_of(page_id(c.caller));
    if (!caller) {
      functions_[*callee].root = true;
      return;
    }
    auto [it, added] = edge_of_.try_emplace(uint64_t{*caller} << 32 | *callee, static_cast<uint32_t>(edges_.size()));
    if (added) edges_.push_back({*caller, *callee});
    Edge& edge = edges_[it->second];
    if (of_before) {
      edge.before += c.total;
      return;
    }
    edge.calls += c.calls;
    edge.total += c.total;
  });
}

void Model::link() {
  edge_of_.clear();
  out_.resize(functions_.size());
  into_.resize(functions_.size());
  for (uint32_t i = 0; i < edges_.size(); i++) {
    const Edge& e = edges_[i];
    out_[e.caller].push_back(i);
    into_[e.callee].push_back(i);
    if (e.caller == e.callee) functions_[e.caller].recursive = true;
    else functions_[e.caller].children++;
  }
  auto largest = [&](uint32_t a, uint32_t b) { return edges_[a].total > edges_[b].total; };
  for (uint32_t i = 0; i < functions_.size(); i++) {
    std::ranges::stable_sort(out_[i], largest);
    std::ranges::stable_sort(into_[i], largest);
    if (into_[i].empty()) functions_[i].root = true;
  }
}

std::optional<uint32_t> Model::index_of(uint64_t id) const {
  auto it = id < store::none ? index_.find(static_cast<uint32_t>(id)) : index_.end();
  return it == index_.end() ? std::nullopt : std::optional(it->second);
}

uint32_t Model::id_of_before(uint32_t id) const {
  auto it = page_id_of_before_.find(id);
  return it == page_id_of_before_.end() ? store::none : it->second;
}

Result<const std::vector<uint32_t>*> Model::ordered(const Order& order) {
  if (last_order_ == order) return &last_;
  auto number = number_of(order.column);
  bool text = order.column == "name" || order.column == "image" || order.column == "file";
  if (!number && !text) return fail("no column “{}”", shortened(order.column, 100));
  TRY(Pattern pattern, Pattern::make(order));
  last_order_.reset();
  last_.clear();
  for (uint32_t i = 0; i < functions_.size(); i++)
    if (pattern.matches(functions_[i].name)) last_.push_back(i);
  auto by_id = [&](uint32_t a, uint32_t b) { return functions_[a].id < functions_[b].id; };
  if (number) {
    std::vector<int64_t> keys(functions_.size());
    for (uint32_t i : last_) keys[i] = number(functions_[i]);
    std::ranges::sort(last_, [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : by_id(a, b); });
  } else {
    std::ranges::sort(last_, [&](uint32_t a, uint32_t b) {
      int c = text_of(order.column, functions_[a]).compare(text_of(order.column, functions_[b]));
      return c ? c < 0 : by_id(a, b);
    });
  }
  if (order.ascending) std::ranges::reverse(last_);
  last_order_ = order;
  return &last_;
}

}  // namespace weir::view
