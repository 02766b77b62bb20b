// The questions about functions: their list, one of them with who called whom, what changed.
#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "store/compare.h"
#include "view/queries.h"

namespace weir::view {

void Queries::put_count(JsonWriter& json, const char* key, uint64_t n) const {
  is_sampled_ ? json.key(key).null() : json.member(key, n);
}

void Queries::put(JsonWriter& json, const Model& model, uint32_t index) const {
  put(json, model.functions()[index], model.compared());
}

void Queries::put(JsonWriter& json, const Function& f, bool compared, bool is_part) const {
  auto if_whole = [&](const char* key, uint64_t n) { is_part ? void(json.key(key).null()) : put_count(json, key, n); };
  auto maybe = [&](const char* key, std::optional<uint64_t> n) { n ? json.member(key, *n) : json.key(key).null(); };
  json.member("id", uint64_t{f.id}).member("name", f.name).member("image", f.image);
  f.file.empty() ? json.key("file").null() : json.member("file", f.file);
  maybe("line", f.line ? std::optional<uint64_t>(f.line) : std::nullopt);
  json.member("offset", f.offset).member("size", f.size).member("self", f.self).member("total", f.total);
  put_count(json, "calls", f.calls);
  maybe("self_min", is_part ? std::nullopt : f.self_min);
  maybe("self_max", is_part ? std::nullopt : f.self_max);
  if_whole("os_calls", f.os_calls);
  if_whole("os_time", f.os_time);
  if_whole("os_time_total", f.os_time_total);
  if_whole("waited", f.waited);
  if_whole("waited_total", f.waited_total);
  json.member("recursive", f.recursive);
  json.member("is_estimate", f.is_estimate);
  json.member("inlining", f.inlining());
  if (!compared) return;
  json.key("before");
  if (!f.before) return static_cast<void>(json.null());
  json.begin_object().member("self", f.before->self).member("total", f.before->total);
  if_whole("calls", f.before->calls);
  if (!f.before->name.empty()) json.member("name", f.before->name);
  if (!f.before->image.empty()) json.member("image", f.before->image);
  json.end_object();
}

Result<> Queries::functions(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  Model::Order order;
  if (std::string column = text_of(p, "sort"); !column.empty()) order.column = column;
  order.ascending = p.contains("ascending");
  order.filter = text_of(p, "filter");
  order.regex = p.contains("regex");
  TRY(const std::vector<uint32_t>* rows, m->ordered(order));
  uint64_t first = std::min<uint64_t>(number_of(p, "offset").value_or(0), rows->size());
  uint64_t count = std::min<uint64_t>(number_of(p, "limit").value_or(rows->size()), rows->size() - first);
  json.member("count", rows->size()).member("first", first).key("rows").begin_array();
  for (uint64_t i = first; i < first + count; i++) {
    json.begin_object();
    put(json, *m, (*rows)[i]);
    json.end_object();
  }
  json.end_array().key("position");
  std::optional<uint64_t> wanted = number_of(p, "locate");
  std::optional<uint32_t> index = wanted ? m->index_of(*wanted) : std::nullopt;
  auto at = index ? std::ranges::find(*rows, *index) : rows->end();
  at == rows->end() ? json.null() : json.value(static_cast<uint64_t>(at - rows->begin()));
  return {};
}

std::string Queries::list_of(const Model& model, const std::vector<uint32_t>& functions) const {
  JsonWriter json = JsonWriter::compact();
  json.begin_object().member("count", functions.size()).member("first", uint64_t{0}).key("rows").begin_array();
  for (uint32_t i : functions) {
    json.begin_object();
    put(json, model, i);
    json.end_object();
  }
  json.end_array().key("position").null().end_object();
  return std::move(json.text);
}

Result<Queries::Found> Queries::find(const Parameters& p) {
  std::optional<uint64_t> id = number_of(p, "id");
  if (!id) return fail("which function?");
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::optional<uint32_t> index = m->index_of(*id);
  if (!index) {
    // It may have run in other threads, or never.
    auto row = reader_->function(static_cast<uint32_t>(*id), store::OsTime::InSelf);
    if (row) return fail("{} did not run{}", shortened(row->name, 100), selected_ ? " in this thread" : "");
    return fail("the profile has no function {}", *id);
  }
  const Function& f = m->functions()[*index];
  store::FunctionRow row = f;
  if (f.ran) return Found{m, *index, &*reader_, row, true};
  row.id = m->before_of_id(f.id);
  return Found{m, *index, &*before_, row, false};
}

Result<> Queries::put_calls(JsonWriter& json, const Found& found, bool callers) {
  const Model& model = *found.model;
  const Function& f = model.functions()[found.index];
  struct Other {
    std::string name;
    uint64_t calls = 0;
    Cycles total = 0;
    std::vector<store::CallRow> sites;
  };
  std::vector<std::pair<uint32_t, Other>> others;
  std::map<uint32_t, size_t> place;
  store::CallQuery query;
  (callers ? query.callee : query.caller) = found.row.id;
  query.by_site = true;
  TRY_VOID(found.reader->calls(query, [&](const store::CallRow& c) {
    uint32_t other = found.page_id(callers ? c.caller : c.callee);
    auto [it, added] = place.try_emplace(other, others.size());
    if (added) others.push_back({other, {callers ? c.caller_name : c.callee_name, 0, 0, {}}});
    Other& o = others[it->second].second;
    o.sites.push_back(c);
    if (!found.ran) o.sites.back().total = store::scaled(c.total, scale_);
    o.calls += c.calls;
    o.total += o.sites.back().total;
  }));
  std::ranges::stable_sort(others, std::ranges::greater(), [](auto& o) { return o.second.total; });
  constexpr size_t most_others = 2000;
  size_t left = others.size() - std::min(others.size(), most_others);
  others.resize(others.size() - left);
  std::unordered_map<uint32_t, Cycles> before_of;  // by id
  for (uint32_t e : callers ? model.into(found.index) : model.out(found.index)) {
    const Edge& edge = model.edges()[e];
    before_of[model.functions()[callers ? edge.caller : edge.callee].id] = edge.before;
  }
  Cycles whole = f.ran ? f.total : f.before->total;
  json.member(callers ? "more_callers" : "more_callees", left).key(callers ? "callers" : "callees").begin_array();
  for (auto& [other, o] : others) {
    json.begin_object().key("id");
    other == store::none ? json.null() : json.value(uint64_t{other});
    put_count(json, "calls", o.calls);
    json.member("name", o.name).member("total", f.ran ? o.total : Cycles{0});
    json.member("share", whole ? static_cast<double>(o.total) / static_cast<double>(whole) : 0.0);
    if (model.compared()) {
      auto before = before_of.find(other);
      json.member("before", before != before_of.end() ? before->second : f.ran ? 0 : o.total);
    }
    json.key("sites").begin_array();
    constexpr size_t most_sites = 12;
    for (size_t i = 0; i < o.sites.size() && i < most_sites; i++) {
      const store::CallRow& c = o.sites[i];
      std::string where = c.file.empty() ? fmt::format("+{:#x}", c.offset - c.caller_offset)
                                         : fmt::format("{}:{}", base_name(c.file), c.line);
      json.begin_object().member("place", where).member("kind", c.site_kind);
      put_count(json, "calls", c.calls);
      json.member("total", c.total).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
  return {};
}

Result<> Queries::function(const Parameters& p, JsonWriter& json) {
  TRY(Found f, find(p));
  json.key("function").begin_object();
  put(json, *f.model, f.index);
  json.end_object();
  TRY_VOID(put_calls(json, f, true));
  TRY_VOID(put_calls(json, f, false));
  json.key("os_calls").begin_array();
  TRY_VOID(f.reader->os_calls(true, f.row.id, [&](const store::OsRow& o) {
    json.begin_object().member("name", o.name).member("number", uint64_t{o.number}).member("class", o.os_class);
    json.member("calls", o.calls).member("errors", o.errors);
    json.member("waited", o.waited).member("time", o.time).end_object();
  }));
  json.end_array();
  return {};
}

Result<> Queries::changes(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  if (!before_) return fail("there is no run to compare with; start it with: weir view FILE --diff OLD");
  if (!m->compared())
    return fail(
        "this thread is compared with none: the run before has no thread, or several, of its name; select all threads");
  constexpr size_t most = 1000;
  auto change = [](const Function& f) {
    return static_cast<int64_t>(f.self) - static_cast<int64_t>(f.before ? f.before->self : 0);
  };
  std::vector<uint32_t> worse, better, added, removed, renamed;
  for (uint32_t i = 0; i < m->functions().size(); i++) {
    const Function& f = m->functions()[i];
    if (!f.ran) removed.push_back(i);
    else if (!f.before) added.push_back(i);
    else if (change(f) > 0) worse.push_back(i);
    else if (change(f) < 0) better.push_back(i);
    else if (!f.before->name.empty() || !f.before->image.empty()) renamed.push_back(i);
  }
  auto list = [&](const char* key, std::vector<uint32_t>& rows) {
    std::ranges::stable_sort(rows, std::ranges::greater(), [&](uint32_t i) { return std::abs(change(m->functions()[i])); });
    if (rows.size() > most) rows.resize(most);
    json.key(key).begin_array();
    for (uint32_t i : rows) {
      json.begin_object();
      put(json, *m, i);
      json.end_object();
    }
    json.end_array();
  };
  list("worse", worse);
  list("better", better);
  list("added", added);
  list("removed", removed);
  list("renamed", renamed);
  return {};
}

}  // namespace weir::view
