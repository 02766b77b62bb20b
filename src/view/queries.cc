// Opening the files, and the questions about the run, its functions and who called whom.
#include "view/queries.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "store/compare.h"

namespace weir::view {
namespace {

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
  json.member("late", s.late).member("no_room", s.no_room).member("verify", s.verify);
  json.member("verify_differences", s.verify_differences).member("sees_kernel", s.sees_kernel).end_object();
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

FileState FileState::of(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return {};
  return {true, st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size), st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
}

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

// All or nothing: where a file cannot be opened, those that are open stay.
Result<> Queries::open_files() {
  FileState state = FileState::of(options_.file), state_before;
  TRY(store::Reader reader, store::Reader::open(options_.file));
  TRY(profile::Run run, reader.run());
  std::optional<store::Reader> before;
  double scale = 1;
  std::map<uint32_t, uint32_t> same_threads;
  std::set<uint64_t> thread_ids;
  TRY(std::vector<store::ThreadRow> threads, reader.threads());
  for (const store::ThreadRow& t : threads) thread_ids.insert(t.id);
  if (!options_.before.empty()) {
    state_before = FileState::of(options_.before);
    TRY(before, store::Reader::open(options_.before));
    TRY(scale, store::scale_of(reader, *before));
    TRY(same_threads, store::same_threads(reader, *before));
  }
  models_.clear();
  paths_.clear();
  sources_.clear();
  reader_ = std::move(reader);
  before_ = std::move(before);
  state_ = state;
  state_before_ = state_before;
  is_sampled_ = run.sampling.has_value();
  scale_ = scale;
  same_threads_ = std::move(same_threads);
  threads_ = std::move(thread_ids);
  selected_.reset();
  return {};
}

// A file that was written to while it was open holds neither the old nor the new.
Result<> Queries::check_files() const {
  for (auto& [path, state] : {std::pair(&options_.file, &state_), std::pair(&options_.before, &state_before_)})
    if (!path->empty() && FileState::of(*path).is_overwritten(*state))
      return fail("{} was written to while it was open: what it held is gone", *path);
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
  if (name != "status" && name != "reload") TRY_VOID(check_files());
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
  if (before_) {
    auto same = thread ? same_threads_.find(*thread) : same_threads_.end();
    TRY_VOID(before_->select_id(same == same_threads_.end() ? std::nullopt : std::optional(same->second)));
  }
  selected_ = thread;
  return {};
}

const store::Reader* Queries::compared() const {
  return before_ && (!selected_ || same_threads_.contains(*selected_)) ? &*before_ : nullptr;
}

Result<std::shared_ptr<Model>> Queries::model(std::optional<uint32_t> thread) {
  if (auto it = models_.find(thread); it != models_.end()) return it->second;
  TRY_VOID(select(thread));
  TRY(Model made, Model::load(*reader_, compared(), scale_));
  constexpr size_t most = 4;
  if (models_.size() >= most) models_.erase(thread ? std::next(models_.begin()) : models_.begin());
  return models_[thread] = std::make_shared<Model>(std::move(made));
}

Result<std::shared_ptr<Paths>> Queries::paths(std::optional<uint32_t> thread) {
  if (auto it = paths_.find(thread); it != paths_.end()) return it->second;
  TRY(std::shared_ptr<Model> of, model(thread));
  TRY(Paths made, Paths::load(*reader_, compared(), *of, scale_));
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
  json.member("paths_known", t.contexts > 0).member("blocks_known", t.blocks > 0 && !run.sampling);
  json.member("file", options_.file).strings("command", run.command).member("directory", run.directory);
  json.member("cpu", run.cpu).member("host_cpu", run.host_cpu).member("clock", run.clock);
  json.member("weir_version", run.weir_version).member("wall_seconds", static_cast<double>(run.ended - run.started) / 1e6);
  json.member("units_per_second", units_per_second(run)).member("ended", ended(processes)).member("complete", run.complete);
  json.member("total", t.all()).member("cycles", t.cycles).member("os_time", t.os_time).member("waited", t.waited);
  json.member("instructions", t.instructions).member("functions_known", t.functions);
  json.member("functions_run", t.functions_run).member("threads", t.threads).member("processes", t.processes);
  json.member("contexts", t.contexts).member("os_calls", t.os_calls);
  if (run.sampling) put_sampling(json, *run.sampling);
  std::vector<std::string> notes = notes_of(run, processes);
  if (!compared()) {
    json.strings("notes", notes).strings("pruned", pruned_).key("compared").null();
    return {};
  }
  TRY(profile::Run then, before_->run());
  TRY(store::Totals before, before_->totals());
  if (scale_ != 1)
    notes.push_back(fmt::format("the samples of the run before are multiplied by {:.4g}: their rate was another", scale_));
  if (run.clock == "cycles" && run.cpu != then.cpu)
    notes.push_back(fmt::format("the run before has cycles of another CPU: {}, not {}", then.cpu, run.cpu));
  if (t.contexts > 0 && before.contexts == 0)
    notes.push_back("the run before has no call paths: flame graphs are not compared (weir profile --paths=full has them)");
  json.strings("notes", notes).strings("pruned", pruned_);
  json.key("compared").begin_object().member("file", options_.before).strings("command", then.command);
  json.member("total", store::scaled(before.all(), scale_))
      .member("paths_known", before.contexts > 0)
      .member("scale", scale_);
  json.key("threads").begin_array();
  for (auto& [thread, same] : same_threads_) json.value(uint64_t{thread});
  json.end_array().end_object();
  return {};
}

void Queries::put(JsonWriter& json, const Model& model, uint32_t index) const {
  put(json, model.functions()[index], model.compared());
}

void Queries::put(JsonWriter& json, const Function& f, bool compared) const {
  auto if_exact = [&](const char* key, uint64_t n) { is_sampled_ ? json.key(key).null() : json.member(key, n); };
  auto maybe = [&](const char* key, std::optional<uint64_t> n) { n ? json.member(key, *n) : json.key(key).null(); };
  json.member("id", uint64_t{f.id}).member("name", f.name).member("image", f.image);
  f.file.empty() ? json.key("file").null() : json.member("file", f.file);
  maybe("line", f.line ? std::optional<uint64_t>(f.line) : std::nullopt);
  json.member("offset", f.offset).member("size", f.size).member("self", f.self).member("total", f.total);
  if_exact("calls", f.calls);
  maybe("self_min", f.self_min);
  maybe("self_max", f.self_max);
  if_exact("os_calls", f.os_calls);
  if_exact("os_time", f.os_time);
  if_exact("os_time_total", f.os_time_total);
  json.member("recursive", f.recursive);
  if (!compared) return;
  json.key("before");
  if (!f.before) return static_cast<void>(json.null());
  json.begin_object().member("self", f.before->self).member("total", f.before->total);
  if_exact("calls", f.before->calls);
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
  Cycles whole = f.ran ? f.total : f.before->total;
  json.key(callers ? "callers" : "callees").begin_array();
  for (auto& [other, o] : others) {
    json.begin_object().key("id");
    other == store::none ? json.null() : json.value(uint64_t{other});
    is_sampled_ ? json.key("calls").null() : json.member("calls", o.calls);
    json.member("name", o.name).member("total", f.ran ? o.total : Cycles{0});
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
  FileState now = FileState::of(options_.file);
  json.member("changed", now.is_there && now != state_);
  return {};
}

Result<> Queries::reload(const Parameters&, JsonWriter& json) {
  TRY_VOID(open_files());
  json.member("file", options_.file);
  return {};
}

}  // namespace weir::view
