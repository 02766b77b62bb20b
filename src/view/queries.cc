// Opening the files, and whom a question goes to.
#include "view/queries.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "store/compare.h"

namespace weir::view {

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
  TRY_VOID(reader.fold_inlined(options_.fold_inlined));
  TRY(profile::Run run, reader.run());
  TRY(bool with_waits, reader.add_waits(options_.with_waits));
  std::optional<store::Reader> before;
  double scale = 1;
  std::map<uint32_t, uint32_t> same_threads;
  std::set<uint64_t> thread_ids;
  TRY(std::vector<store::ThreadRow> threads, reader.threads());
  for (const store::ThreadRow& t : threads) thread_ids.insert(t.id);
  if (!options_.before.empty()) {
    state_before = FileState::of(options_.before);
    TRY(before, store::Reader::open(options_.before));
    TRY_VOID(before->add_waits(options_.with_waits));
    TRY_VOID(before->fold_inlined(options_.fold_inlined));
    TRY(scale, store::scale_of(reader, *before));
    TRY(same_threads, store::same_threads(reader, *before));
  }
  std::lock_guard lock(summary_mutex_);  // (for the states, too)
  summary_.reset();
  models_.clear();
  paths_.clear();
  sources_.clear();
  reader_ = std::move(reader);
  before_ = std::move(before);
  state_ = state;
  state_before_ = state_before;
  is_sampled_ = run.sampling.has_value();
  with_waits_ = with_waits;
  scale_ = scale;
  same_threads_ = std::move(same_threads);
  threads_ = std::move(thread_ids);
  selected_.reset();
  match_.reset();
  if (before_) TRY_VOID(match());  // (it may fold what was inlined)
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
  bool is_whole_summary = name == "summary" && parameters.empty();
  if (is_whole_summary)
    if (std::lock_guard lock(summary_mutex_); summary_) {
      TRY_VOID(check_files());
      return *summary_;
    }
  std::lock_guard lock(mutex_);
  if (name != "status" && name != "reload") TRY_VOID(check_files());
  if (parameters.contains("thread") && !threads_.contains(number_of(parameters, "thread").value_or(store::none)))
    return fail("the profile has no thread “{}”", shortened(text_of(parameters, "thread"), 100));
  TRY_VOID(select(thread_of(parameters)));
  JsonWriter json = JsonWriter::compact();
  json.begin_object();
  TRY_VOID((this->*question->second)(parameters, json));
  json.end_object();
  if (is_whole_summary) {
    std::lock_guard keep(summary_mutex_);
    summary_ = json.text;
  }
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

Result<const store::Match*> Queries::match() {
  if (match_) return &*match_;
  std::optional<uint32_t> was = selected_;
  TRY_VOID(select(std::nullopt));
  TRY(match_, store::match_alike({&*reader_}, {&*before_}, options_.map));
  TRY_VOID(select(was));
  return &*match_;
}

Result<std::shared_ptr<Model>> Queries::model(std::optional<uint32_t> thread) {
  if (auto it = models_.find(thread); it != models_.end()) return it->second;
  std::optional<Comparison> comparison;
  TRY_VOID(select(thread));
  if (compared()) {
    TRY(const store::Match* found, match());
    comparison.emplace(*found, scale_);
  }
  TRY(Model made, Model::load(*reader_, comparison ? &*comparison : nullptr));
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

Result<> Queries::status(const Parameters&, JsonWriter& json) {
  FileState now = FileState::of(options_.file), before = FileState::of(options_.before);
  json.member("changed", (now.is_there && now != state_) || (before.is_there && before != state_before_));
  return {};
}

Result<> Queries::reload(const Parameters& p, JsonWriter& json) {
  std::optional<bool> before = options_.with_waits;
  if (p.contains("waits")) options_.with_waits = text_of(p, "waits") == "1";
  if (auto opened = open_files(); !opened) {
    options_.with_waits = before;
    return opened;
  }
  json.member("file", options_.file);
  return {};
}

}  // namespace weir::view
