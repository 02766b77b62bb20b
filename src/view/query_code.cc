// The questions about paths, source, code, threads, OS calls and coverage.
#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "view/queries.h"
#include "x86/disassemble.h"

namespace weir::view {
namespace {

// "12.55.9"; empty: the whole run.
std::optional<std::vector<uint32_t>> path_of(const std::string& text) {
  std::vector<uint32_t> path;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    uint32_t id = 0;
    auto parsed = std::from_chars(at, end, id);
    if (parsed.ec != std::errc()) return std::nullopt;
    path.push_back(id);
    if (parsed.ptr == end) break;
    if (*parsed.ptr != '.' || parsed.ptr + 1 == end) return std::nullopt;
    at = parsed.ptr + 1;
  }
  return path;
}

template <class Get>
void column(JsonWriter& json, const char* key, const std::vector<Cut::Node>& nodes, Get get) {
  json.key(key).begin_array();
  for (const Cut::Node& n : nodes) json.value(uint64_t{get(n)});
  json.end_array();
}

const char* name_of(store::SourceText::State state) {
  using enum store::SourceText::State;
  switch (state) {
    case Same: return "same";
    case Changed: return "changed";
    case Missing: return "missing";
    case Unknown: return "unknown";
  }
  return "";
}

struct Call {
  uint32_t id;
  std::string name;
  uint64_t calls;
};

void put_callees(JsonWriter& json, const char* key, const std::vector<Call>& calls) {
  json.key(key).begin_array();
  for (const Call& c : calls)
    json.begin_object().member("id", uint64_t{c.id}).member("name", c.name).member("calls", c.calls).end_object();
  json.end_array();
}

using CallsOfLine = std::map<std::pair<std::string, uint32_t>, std::vector<Call>>;

void put_line(JsonWriter& json, bool is_sampled, uint32_t n, const store::LineFacts* line, std::string_view text,
              const std::vector<Call>* calls) {
  json.begin_object().member("line", uint64_t{n}).member("mark", line ? line->mark(is_sampled) : "");
  json.member("count", line ? line->count() : 0).member("self", line ? line->self : 0).member("text", text);
  if (calls) put_callees(json, "calls", *calls);
  json.end_object();
}

std::string_view line_of(const std::vector<std::string>& lines, uint32_t n) {
  return n && n <= lines.size() ? std::string_view(lines[n - 1]) : "";
}

template <class Map, class Key>
auto* found(const Map& map, const Key& key) {
  auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace

Result<> Queries::flame(const Parameters& p, JsonWriter& json) {
  TRY(std::shared_ptr<Paths> tree, paths(thread_of(p)));
  TRY(std::shared_ptr<Model> m, model(thread_of(p)));
  std::optional<std::vector<uint32_t>> path = path_of(text_of(p, "root"));
  std::optional<uint64_t> of = number_of(p, "of");
  if (of && path && path->empty()) path = {static_cast<uint32_t>(*of)};
  std::optional<Cut> cut;
  if (path)
    cut = of                       ? tree->callers_of(*path, most_frames)
          : p.contains("inverted") ? tree->inverted(*path, most_frames)
                                   : tree->cut(*path, most_frames);
  if (!cut) return fail("this path is not in the profile");
  json.key("path").begin_array();
  for (uint32_t id : *path) json.value(uint64_t{id});
  json.end_array();
  column(json, "parent", cut->nodes, [](auto& n) { return n.parent; });
  column(json, "function", cut->nodes, [](auto& n) { return n.function; });
  column(json, "total", cut->nodes, [](auto& n) { return n.total; });
  column(json, "self", cut->nodes, [](auto& n) { return n.self; });
  column(json, "calls", cut->nodes, [](auto& n) { return n.calls; });
  if (tree->compared()) column(json, "before", cut->nodes, [](auto& n) { return n.before; });
  json.member("cut", cut->left_out).key("names").begin_object();
  std::vector<uint32_t> ids = *path;
  for (const Cut::Node& n : cut->nodes) ids.push_back(n.function);
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  for (uint32_t id : ids)
    if (std::optional<uint32_t> index = m->index_of(id)) {
      const Function& f = m->functions()[*index];
      json.key(std::to_string(id)).begin_array().value(f.name).value(f.image).end_array();
    }
  json.end_object();
  return {};
}

// Read again only when it has changed: the functions of a file follow each other, and a file may be large.
Result<std::shared_ptr<const store::SourceText>> Queries::source_of(bool now, const std::string& path) {
  Source& kept = sources_[{now, path}];
  FileState state = FileState::of(store::mapped(path, options_.source_map));
  if (kept.text && kept.state == state) return kept.text;
  TRY(store::SourceText text, store::source_text(now ? *reader_ : *before_, path, options_.source_map));
  constexpr size_t most = 50;
  if (sources_.size() > most) sources_.clear();
  auto made = std::make_shared<const store::SourceText>(std::move(text));
  sources_[{now, path}] = {state, made};
  return made;
}

Result<> Queries::source(const Parameters& p, JsonWriter& json) {
  TRY(Found f, find(p));
  TRY(auto sections, store::sections_of(*f.reader, f.row));
  CallsOfLine calls;
  store::CallQuery query;
  query.caller = f.row.id;
  query.by_site = true;
  TRY_VOID(f.reader->calls(query, [&](const store::CallRow& c) {
    if (c.line) calls[{c.file, c.line}].push_back({f.page_id(c.callee), c.callee_name, c.calls});
  }));
  json.member("self", f.row.self - std::min(f.row.self, f.row.os_time)).key("sections").begin_array();
  for (auto& [name, lines] : sections) {
    TRY(std::shared_ptr<const store::SourceText> source, source_of(f.ran, name.file));
    const store::SourceText& text = *source;
    json.begin_object().member("file", name.file).key("inlined");
    name.inlined.empty() ? json.null() : json.value(name.inlined);
    json.member("state", name_of(text.state)).member("why", text.why);
    json.key("lines").begin_array();
    bool own = name.inlined.empty() && name.file == f.row.file;
    for (auto& [from, to] : store::runs_of(lines, f.row, own))
      for (uint32_t n = from; n <= to; n++)
        put_line(json, is_sampled_, n, found(lines, n), line_of(text.lines, n), found(calls, std::pair(name.file, n)));
    json.end_array().end_object();
  }
  json.end_array();
  return {};
}

// A whole file, that the profile names.
Result<> Queries::file(const Parameters& p, JsonWriter& json) {
  std::string path = text_of(p, "path");
  TRY(std::vector<std::string> known, reader_->files(path));
  if (known.empty() || known.front() != path) return fail("the profile does not name {}", shortened_path(path, 200));
  store::Lines lines;
  TRY_VOID(reader_->lines(path, [&](const store::LineRow& r) {
    if (r.line) lines[r.line].add(r);
  }));
  TRY(std::shared_ptr<const store::SourceText> source, source_of(true, path));
  const store::SourceText& text = *source;
  json.member("file", path).member("state", name_of(text.state)).member("why", text.why).key("lines").begin_array();
  for (uint32_t n = 1; n <= text.lines.size(); n++)
    put_line(json, is_sampled_, n, found(lines, n), text.lines[n - 1], nullptr);
  for (auto at = lines.upper_bound(static_cast<uint32_t>(text.lines.size())); at != lines.end(); ++at)
    put_line(json, is_sampled_, at->first, &at->second, "", nullptr);
  json.end_array();
  return {};
}

Result<> Queries::assembly(const Parameters& p, JsonWriter& json) {
  TRY(Found f, find(p));
  std::map<uint64_t, std::vector<Call>> callees;  // by the offset of the call
  store::CallQuery query;
  query.caller = f.row.id;
  query.by_site = true;
  TRY_VOID(f.reader->calls(
      query, [&](const store::CallRow& c) { callees[c.offset].push_back({f.page_id(c.callee), c.callee_name, c.calls}); }));
  std::map<uint32_t, std::string> places;  // of blocks
  TRY_VOID(f.reader->lines(f.row, [&](const store::LineRow& r) {
    if (std::string& place = places[r.block]; r.line && place.empty())
      place = fmt::format("{}:{}", base_name(r.file), r.line);
  }));
  json.member("self", f.row.self - std::min(f.row.self, f.row.os_time)).key("rows").begin_array();
  uint64_t end = f.row.offset;
  TRY_VOID(f.reader->blocks(f.row, [&](const store::BlockRow& b) {
    bool first = true;
    for (const x86::TextInsn& insn : x86::disassemble(b.bytes, b.offset)) {
      json.begin_object().member("offset", insn.offset).member("mark", !first ? "" : b.count ? "|" : "#");
      json.member("count", b.count).member("self", first ? b.self() : 0).member("text", insn.text);
      json.member("gap", first && b.offset > end ? b.offset - end : 0);
      auto* calls = found(callees, insn.offset);
      put_callees(json, "callees", calls ? *calls : std::vector<Call>());
      json.member("source", first ? places[b.id] : "").end_object();
      first = false;
    }
    end = std::max(end, b.offset + b.bytes.size());
  }));
  json.end_array();
  return {};
}

Result<> Queries::threads(const Parameters&, JsonWriter& json) {
  TRY(std::vector<store::ThreadRow> rows, reader_->all_threads());
  TRY(std::vector<store::ProcessRow> processes, reader_->processes());
  std::ranges::stable_sort(rows, std::ranges::greater(), [](auto& t) { return t.cycles + t.os_time; });
  json.key("threads").begin_array();
  for (const store::ThreadRow& t : rows) {
    auto process = std::ranges::find(processes, t.process, &store::ProcessRow::id);
    bool there = process != processes.end();
    json.begin_object().member("id", uint64_t{t.id}).member("pid", uint64_t{t.pid}).member("tid", uint64_t{t.tid});
    json.member("name", t.name).member("cycles", t.cycles).member("os_time", t.os_time);
    json.member("instructions", t.instructions).member("functions", t.functions);
    json.member("ended", there ? ending(process->exit_status, process->ended_by) : "");
    json.member("command", there ? quoted_command(process->command) : "");
    json.member("started", static_cast<uint64_t>(there ? process->started : 0));
    json.member("finished", static_cast<uint64_t>(there ? process->ended : 0)).end_object();
  }
  json.end_array();
  return {};
}

Result<> Queries::os_calls(const Parameters&, JsonWriter& json) {
  std::map<uint32_t, std::vector<store::OsRow>> makers;
  TRY_VOID(reader_->os_calls(true, store::none, [&](const store::OsRow& o) { makers[o.number].push_back(o); }));
  json.key("oscalls").begin_array();
  TRY_VOID(reader_->os_calls(false, store::none, [&](const store::OsRow& o) {
    json.begin_object().member("name", o.name).member("number", uint64_t{o.number}).member("class", o.os_class);
    json.member("calls", o.calls).member("errors", o.errors).member("uncharged", o.uncharged);
    json.member("waited", o.waited).member("time", o.time).key("by").begin_array();
    for (const store::OsRow& by : makers[o.number])
      json.begin_object()
          .member("id", uint64_t{by.function})
          .member("name", by.function_name)
          .member("calls", by.calls)
          .member("time", by.time)
          .end_object();
    json.end_array().end_object();
  }));
  json.end_array();
  return {};
}

Result<> Queries::coverage(const Parameters&, JsonWriter& json) {
  if (is_sampled_) return fail("samples do not tell what ran: an exact profile does (weir profile)");
  json.key("coverage").begin_array();
  TRY_VOID(reader_->coverage("", [&](const store::CoverageRow& r) {
    json.begin_object().member("image", r.image).key("file");
    r.file.empty() ? json.null() : json.value(r.file);
    json.member("functions", r.functions).member("functions_run", r.functions_run).member("blocks", r.blocks);
    json.member("blocks_run", r.blocks_run).member("lines", r.lines).member("lines_run", r.lines_run).end_object();
  }));
  json.end_array();
  return {};
}

}  // namespace weir::view
