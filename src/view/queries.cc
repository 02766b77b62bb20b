// Opening the files, and the questions about the run, its functions and who called whom.
#include "view/queries.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/text.h"

namespace weir::view {
namespace {

// Which file this is: another one may have taken its name.
std::string identity_of(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return "";
  return fmt::format("{}:{}:{}:{}.{}", st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

const char* unit_of(const profile::Run& run) {
  return run.sampling ? "samples" : run.clock == "instructions" ? "instructions" : "cycles";
}

// What a time of 1 is worth; 0: no time.
double units_per_second(const profile::Run& run) {
  return run.sampling ? run.sampling->rate : static_cast<double>(run.cycles_per_second);
}

void put_sampling(JsonWriter& json, const profile::Sampling& s) {
  json.key("sampling").begin_object().member("event", s.event).member("source", s.source).member("rate", s.rate);
  json.member("period", s.period).member("unwind", s.unwind).member("samples", s.samples).member("lost", s.lost);
  json.member("truncated", s.truncated).member("frames", s.frames).member("frames_heuristic", s.frames_heuristic);
  json.member("late", s.late).member("sees_kernel", s.sees_kernel).end_object();
}

// What could not be seen, one line each.
std::vector<std::string> notes_of(const profile::Run& run, const std::vector<store::ProcessRow>& processes) {
  std::vector<std::string> notes;
  if (!run.complete) notes.push_back("the run was cut short; counts are those so far");
  if (const auto& s = run.sampling) {
    auto note = [&](uint64_t n, const char* what) {
      if (n) notes.push_back(fmt::format("{} of {} samples {}", with_commas(n), with_commas(s->samples), what));
    };
    note(s->truncated, "have no beginning: their walk was cut off");
    note(s->lost, "were due and not taken");
    note(s->no_room, "found no place for their call path");
    if (s->frames_heuristic) notes.push_back(fmt::format("{} frames were guessed", with_commas(s->frames_heuristic)));
    if (!s->sees_kernel) notes.push_back("time in the kernel is in no sample");
  }
  for (const store::ProcessRow& p : processes)
    for (const std::string& text : p.notes) notes.push_back(fmt::format("process {}: {}", p.pid, text));
  return notes;
}

std::string ended(const std::vector<store::ProcessRow>& processes) {
  const store::ProcessRow* first = nullptr;
  for (const store::ProcessRow& p : processes)
    if (p.pid && (!first || p.started < first->started)) first = &p;
  const store::ProcessRow* last = first;  // of the programs that it executed one after the other
  for (const store::ProcessRow& p : processes)
    if (first && p.pid == first->pid && p.started >= last->started) last = &p;
  return last ? ending(last->exit_status, last->ended_by) : "unknown";
}

}  // namespace

std::optional<uint64_t> number_of(const Parameters& p, const std::string& name) {
  auto it = p.find(name);
  uint64_t n = 0;
  if (it == p.end()) return std::nullopt;
  const char* end = it->second.data() + it->second.size();
  auto parsed = std::from_chars(it->second.data(), end, n);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(n) : std::nullopt;
}

std::string text_of(const Parameters& p, const std::string& name) {
  auto it = p.find(name);
  return it == p.end() ? "" : it->second;
}

std::optional<uint32_t> thread_of(const Parameters& p) {
  auto n = number_of(p, "thread");
  return n ? std::optional(static_cast<uint32_t>(*n)) : std::nullopt;
}

Result<std::unique_ptr<Queries>> Queries::open(const Options& options) {
  std::unique_ptr<Queries> queries(new Queries(options));
  TRY_VOID(queries->open_files());
  return queries;
}

Result<> Queries::open_files() {
  TRY(reader_, store::Reader::open(options_.file));
  identity_ = identity_of(options_.file);
  TRY(profile::Run run, reader_->run());
  is_sampled_ = run.sampling.has_value();
  TRY(std::vector<store::ThreadRow> threads, reader_->threads());
  threads_.clear();
  for (const store::ThreadRow& t : threads) threads_.insert(t.id);
  before_.reset();
  if (!options_.before.empty()) {
    TRY(before_, store::Reader::open(options_.before));
    TRY(std::string now, reader_->kind());
    TRY(std::string then, before_->kind());
    if (now != then)
      return fail("{} is an {}, {} is an {}: these cannot be compared", options_.file, now, options_.before, then);
  }
  selected_.reset();
  models_.clear();
  paths_.clear();
  return {};
}

Result<std::string> Queries::answer(const std::string& name, const Parameters& parameters) {
  static const std::map<std::string, Result<> (Queries::*)(const Parameters&, JsonWriter&)> known = {
      {"summary", &Queries::summary},   {"functions", &Queries::functions},   {"function", &Queries::function},
      {"graph", &Queries::graph},       {"neighbours", &Queries::neighbours}, {"flame", &Queries::flame},
      {"changes", &Queries::changes},   {"threads", &Queries::threads},       {"oscalls", &Queries::os_calls},
      {"coverage", &Queries::coverage}, {"source", &Queries::source},         {"file", &Queries::file},
      {"asm", &Queries::assembly},      {"status", &Queries::status},         {"reload", &Queries::reload}};
  auto question = known.find(name);
  if (question == known.end()) return fail("no question “{}”", shortened(name, 100));
  std::lock_guard lock(mutex_);
  if (parameters.contains("thread") && !threads_.contains(number_of(parameters, "thread").value_or(store::none)))
    return fail("the profile has no thread “{}”", shortened(text_of(parameters, "thread"), 100));
  TRY_VOID(select(thread_of(parameters)));
  JsonWriter json = JsonWriter::compact();
  json.begin_object();
  TRY_VOID((this->*question->second)(parameters, json));
  json.end_object();
  return std::move(json.text);
}

Result<> Queries::select(std::optional<uint32_t> thread) {
  if (thread == selected_) return {};
  TRY_VOID(reader_->select_id(thread));
  selected_ = thread;
  return {};
}

// (The run before is taken whole: its threads are others.)
Result<std::shared_ptr<Model>> Queries::model(std::optional<uint32_t> thread) {
  if (auto it = models_.find(thread); it != models_.end()) return it->second;
  TRY_VOID(select(thread));
  TRY(Model made, Model::load(*reader_, before_ ? &*before_ : nullptr));
  constexpr size_t most = 4;
  if (models_.size() >= most) models_.erase(thread ? std::next(models_.begin()) : models_.begin());
  return models_[thread] = std::make_shared<Model>(std::move(made));
}

Result<std::shared_ptr<Paths>> Queries::paths(std::optional<uint32_t> thread) {
  if (auto it = paths_.find(thread); it != paths_.end()) return it->second;
  TRY(std::shared_ptr<Model> of, model(thread));
  TRY(Paths made, Paths::load(*reader_, before_ ? &*before_ : nullptr, *of));
  constexpr size_t most = 2;
  if (paths_.size() >= most) paths_.erase(std::prev(paths_.end()));
  return paths_[thread] = std::make_shared<Paths>(std::move(made));
}

Result<> Queries::summary(const Parameters&, JsonWriter& json) {
  TRY(std::string kind, reader_->kind());
  TRY(profile::Run run, reader_->run());
  TRY(store::Totals t, reader_->totals());
  TRY(std::vector<store::ProcessRow> processes, reader_->processes());
  json.member("kind", kind).member("unit", unit_of(run)).member("calls_known", !run.sampling);
  json.member("paths_known", t.contexts > 0).member("blocks_known", t.blocks > 0);
  json.member("file", options_.file).strings("command", run.command).member("directory", run.directory);
  json.member("cpu", run.cpu).member("host_cpu", run.host_cpu).member("clock", run.clock);
  json.member("weir_version", run.weir_version).member("wall_seconds", static_cast<double>(run.ended - run.started) / 1e6);
  json.member("units_per_second", units_per_second(run)).member("ended", ended(processes)).member("complete", run.complete);
  json.member("total", t.all()).member("cycles", t.cycles).member("os_time", t.os_time).member("waited", t.waited);
  json.member("instructions", t.instructions).member("functions_known", t.functions);
  json.member("functions_run", t.functions_run).member("threads", t.threads).member("processes", t.processes);
  json.member("contexts", t.contexts).member("os_calls", t.os_calls);
  if (run.sampling) put_sampling(json, *run.sampling);
  json.strings("notes", notes_of(run, processes)).strings("pruned", pruned_);
  json.key("compared");
  if (!before_) return json.null(), Result<>();
  TRY(profile::Run then, before_->run());
  TRY(store::Totals before, before_->totals());
  json.begin_object().member("file", options_.before).strings("command", then.command).member("total", before.all());
  json.end_object();
  return {};
}

void Queries::put(JsonWriter& json, const Model& model, uint32_t index) const {
  const Function& f = model.functions()[index];
  auto maybe = [&](const char* key, std::optional<uint64_t> n) { n ? json.member(key, *n) : json.key(key).null(); };
  json.member("id", uint64_t{f.id}).member("name", f.name).member("image", f.image);
  f.file.empty() ? json.key("file").null() : json.member("file", f.file);
  maybe("line", f.line ? std::optional<uint64_t>(f.line) : std::nullopt);
  json.member("offset", f.offset).member("size", f.size).member("calls", f.calls).member("self", f.self);
  json.member("total", f.total);
  maybe("self_min", f.self_min);
  maybe("self_max", f.self_max);
  json.member("os_calls", f.os_calls).member("os_time", f.os_time).member("os_time_total", f.os_time_total);
  json.member("recursive", f.recursive);
  if (!model.compared()) return;
  json.key("before");
  if (!f.before) json.null();
  else
    json.begin_object()
        .member("calls", f.before->calls)
        .member("self", f.before->self)
        .member("total", f.before->total)
        .end_object();
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
    o.calls += c.calls;
    o.total += c.total;
    o.sites.push_back(c);
  }));
  std::ranges::stable_sort(others, std::ranges::greater(), [](auto& o) { return o.second.total; });
  Cycles whole = f.ran ? f.total : f.before->total;
  json.key(callers ? "callers" : "callees").begin_array();
  for (auto& [other, o] : others) {
    json.begin_object().key("id");
    other == store::none ? json.null() : json.value(uint64_t{other});
    json.member("name", o.name).member("calls", o.calls).member("total", f.ran ? o.total : Cycles{0});
    json.member("share", whole ? static_cast<double>(o.total) / static_cast<double>(whole) : 0.0);
    if (model.compared()) {
      Cycles before = f.ran ? 0 : o.total;
      for (uint32_t e : callers ? model.into(found.index) : model.out(found.index)) {
        const Edge& edge = model.edges()[e];
        if (model.functions()[callers ? edge.caller : edge.callee].id == other) before = edge.before;
      }
      json.member("before", before);
    }
    json.key("sites").begin_array();
    constexpr size_t most_sites = 12;
    for (size_t i = 0; i < o.sites.size() && i < most_sites; i++) {
      const store::CallRow& c = o.sites[i];
      std::string where = c.file.empty() ? fmt::format("+{:#x}", c.offset - c.caller_offset)
                                         : fmt::format("{}:{}", base_name(c.file), c.line);
      json.begin_object().member("place", where).member("kind", c.site_kind).member("calls", c.calls);
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
    json.member("calls", o.calls).member("errors", o.errors).member("uncharged", o.uncharged);
    json.member("waited", o.waited).member("time", o.time).end_object();
  }));
  json.end_array();
  return {};
}

void Queries::put_node(JsonWriter& json, const Model& model, uint32_t index) const {
  const Function& f = model.functions()[index];
  json.begin_object();
  put(json, model, index);
  json.member("children", uint64_t{f.children}).member("root", f.root).end_object();
}

void Queries::put_edges(JsonWriter& json, const Model& model, const std::vector<uint32_t>& edges) const {
  json.key("edges").begin_array();
  for (uint32_t i : edges) {
    const Edge& e = model.edges()[i];
    json.begin_object().member("caller", uint64_t{model.functions()[e.caller].id});
    json.member("callee", uint64_t{model.functions()[e.callee].id}).member("calls", e.calls).member("total", e.total);
    if (model.compared()) json.member("before", e.before);
    json.end_object();
  }
  json.end_array();
}

// The functions with the largest totals (with a root: of those that it calls), and the calls among them.
Result<> Queries::graph(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::vector<uint32_t> shown;
  std::vector<bool> in(m->functions().size());
  std::optional<uint64_t> root = number_of(p, "root");
  if (std::optional<uint32_t> start = root ? m->index_of(*root) : std::nullopt) {
    shown.push_back(*start);
    in[*start] = true;
    for (size_t i = 0; i < shown.size(); i++)
      for (uint32_t e : m->out(shown[i]))
        if (uint32_t callee = m->edges()[e].callee; !in[callee]) in[callee] = true, shown.push_back(callee);
  } else {
    for (uint32_t i = 0; i < m->functions().size(); i++) shown.push_back(i);
  }
  uint64_t all = shown.size();
  auto size = [&](uint32_t i) {
    const Function& f = m->functions()[i];
    return std::max(f.total, f.before ? f.before->total : 0);
  };
  std::ranges::stable_sort(shown, std::ranges::greater(), size);
  if (shown.size() > most_graph_nodes) shown.resize(most_graph_nodes);
  in.assign(in.size(), false);
  json.member("functions", all).key("nodes").begin_array();
  for (uint32_t i : shown) in[i] = true, put_node(json, *m, i);
  json.end_array();
  std::vector<uint32_t> edges;
  for (uint32_t i : shown)
    for (uint32_t e : m->out(i))
      if (in[m->edges()[e].callee]) edges.push_back(e);
  put_edges(json, *m, edges);
  return {};
}

// A function with its callers and callees.
Result<> Queries::neighbours(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::optional<uint64_t> id = number_of(p, "of");
  std::optional<uint32_t> index = id ? m->index_of(*id) : std::nullopt;
  if (!index) return fail("the profile has no such function");
  constexpr size_t most = 300;
  std::vector<uint32_t> edges;
  for (auto* list : {&m->out(*index), &m->into(*index)})
    edges.insert(edges.end(), list->begin(), list->begin() + static_cast<ptrdiff_t>(std::min(list->size(), most)));
  std::unordered_set<uint32_t> shown = {*index};
  for (uint32_t e : edges) shown.insert({m->edges()[e].caller, m->edges()[e].callee});
  json.member("functions", m->functions().size()).key("nodes").begin_array();
  for (uint32_t i : shown) put_node(json, *m, i);
  json.end_array();
  put_edges(json, *m, edges);
  return {};
}

Result<> Queries::changes(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  if (!m->compared()) return fail("there is no run to compare with; start it with: weir view FILE --diff OLD");
  constexpr size_t most = 1000;
  auto change = [](const Function& f) {
    return static_cast<int64_t>(f.self) - static_cast<int64_t>(f.before ? f.before->self : 0);
  };
  std::vector<uint32_t> worse, better, added, removed;
  for (uint32_t i = 0; i < m->functions().size(); i++) {
    const Function& f = m->functions()[i];
    if (!f.ran) removed.push_back(i);
    else if (!f.before) added.push_back(i);
    else if (change(f) > 0) worse.push_back(i);
    else if (change(f) < 0) better.push_back(i);
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
  return {};
}

Result<> Queries::status(const Parameters&, JsonWriter& json) {
  json.member("changed", identity_of(options_.file) != identity_ && !identity_of(options_.file).empty());
  return {};
}

Result<> Queries::reload(const Parameters&, JsonWriter& json) {
  TRY_VOID(open_files());
  json.member("file", options_.file);
  return {};
}

}  // namespace weir::view
