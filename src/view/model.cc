#include "view/model.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/components.h"
#include "base/pattern.h"
#include "base/text.h"

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
  if (column == "waited") return [=](const Function& f) { return number(f.waited); };
  if (column == "waited_total") return [=](const Function& f) { return number(f.waited_total); };
  if (column == "change") return [=](const Function& f) { return number(f.self) - number(f.before ? f.before->self : 0); };
  if (column == "change_total")
    return [=](const Function& f) { return number(f.total) - number(f.before ? f.before->total : 0); };
  return nullptr;
}

const std::string& text_of(const std::string& column, const Function& f) {
  return column == "name" ? f.name : column == "image" ? f.image : f.file;
}

// Which names match: a part of them, or a regular expression. Large and small letters are the same.
Result<std::function<bool(const std::string&)>> matcher_of(const Model::Order& order) {
  if (!order.regex)
    return [part = order.filter](const std::string& name) { return strcasestr(name.c_str(), part.c_str()) != nullptr; };
  TRY(Pattern pattern, Pattern::make(order.filter, Pattern::Case::Ignored));
  return [pattern](const std::string& name) { return pattern.matches_name(name); };
}

}  // namespace

Result<Model> Model::load(const store::Reader& now, const Comparison* compared) {
  Model model;
  model.compared_ = compared;
  model.scale_ = compared ? compared->scale : 1;
  TRY_VOID(model.add_functions(now, compared));
  TRY_VOID(model.add_calls(now, false));
  if (compared) TRY_VOID(model.add_calls(compared->before(), true));
  model.link();
  return model;
}

Result<> Model::add_functions(const store::Reader& now, const Comparison* compared) {
  if (!compared) {
    TRY_VOID(now.functions({}, [&](const store::FunctionRow& f) { functions_.push_back(Function{f, {}}); }));
  } else {
    TRY(std::vector<store::Pair> pairs, store::compare(compared->match, store::OsTime::InSelf, {{scale_}, {1}}));
    // The same number whatever threads are selected: the page keeps ids.
    TRY(store::Totals totals, now.totals());
    first_before_ = static_cast<uint32_t>(totals.functions);
    for (store::Pair& p : pairs)
      if (p.now) first_before_ = std::max(first_before_, p.now->id + 1);
    for (store::Pair& p : pairs) {
      Function f{p.either(), {}};
      if (!p.now) f.id = first_before_ + p.before->id;
      if (p.before) f.before = {p.before->calls, p.before->self, p.before->total};
      if (p.before && p.is_renamed) f.before->name = p.before->name;
      if (p.before && p.is_moved) f.before->image = p.before->image;
      if (p.before) page_id_of_before_[p.before->id] = f.id;
      f.ran = p.now.has_value();
      if (!f.ran) {
        f.calls = f.self = f.total = f.os_calls = f.os_time = f.os_time_total = f.waited = f.waited_total = 0;
        f.self_min = f.self_max = std::nullopt;
      }
      functions_.push_back(std::move(f));
    }
  }
  // What has the number of nobody, or that of another, was written by no Weir.
  std::erase_if(functions_, [&](const Function& f) { return f.id == store::none || !index_.try_emplace(f.id, 0).second; });
  for (uint32_t i = 0; i < functions_.size(); i++) {
    index_[functions_[i].id] = i;
    calls_ += functions_[i].calls;
  }
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
    edge.is_tail &= c.site_kind == "tail call";
    if (of_before) {
      edge.before += store::scaled(c.total, scale_);
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
  mark_recursion();
}

// Functions that lead to themselves. A component may be one of the graph only, whose arcs were never taken on one path; where they were, some
// call happened within the same function, and has no time of its own. A tail call leads out of its function: the dynamic linker's resolver
// would make one component of half the program.
void Model::mark_recursion() {
  std::vector<std::vector<uint32_t>> out(functions_.size());
  for (const Edge& e : edges_)
    if (!e.is_tail) out[e.caller].push_back(e.callee);
  base::Components components(out);
  auto closes = [&](const Edge& e) {
    bool is_of_now = e.calls > 0 || e.before == 0;
    return components.of(e.caller) == components.of(e.callee) && is_of_now && !e.is_tail && e.total == 0 &&
           functions_[e.callee].total > 0;
  };
  std::vector<bool> is_closed(components.all().size());
  for (const Edge& e : edges_)
    if (closes(e)) is_closed[components.of(e.caller)] = true;
  for (uint32_t f = 0; f < functions_.size(); f++)
    if (is_closed[components.of(f)] && components.all()[components.of(f)].size() > 1) functions_[f].recursive = true;
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
  TRY(auto matches, matcher_of(order));
  last_order_.reset();
  last_.clear();
  for (uint32_t i = 0; i < functions_.size(); i++)
    if (matches(functions_[i].name)) last_.push_back(i);
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
