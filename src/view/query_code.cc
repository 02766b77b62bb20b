// The questions about source and code.
#include <algorithm>

#include "base/text.h"
#include "view/queries.h"
#include "x86/disassemble.h"

namespace weir::view {
namespace {

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

// Read again only when it has changed: the functions of a file follow each other, and a file may be large.
Result<std::shared_ptr<const store::SourceText>> Queries::source_of(bool now, const std::string& path) {
  Source& kept = sources_[{now, path}];
  FileState state = FileState::of(store::mapped(path, options_.source_map));
  if (kept.text && kept.state == state) return kept.text;
  TRY(store::SourceText text, store::source_text(now ? *reader_ : *before_, path, options_.source_map));
  bool is_proven = text.state == store::SourceText::State::Same || store::mapped(path, options_.source_map) != path;
  if (only_proven_sources_ && !is_proven && text.state != store::SourceText::State::Missing)
    text = {store::SourceText::State::Missing,
            "is not in this file: it is not known to be what it was at the run; --source-map OLD=NEW vouches for it",
            {}};
  constexpr size_t most = 50;
  if (sources_.size() > most) sources_.clear();
  auto made = std::make_shared<const store::SourceText>(std::move(text));
  sources_[{now, path}] = {state, made};
  return made;
}

Result<> Queries::source(const Parameters& p, JsonWriter& json) {
  TRY(Found f, find(p));
  TRY(auto sections, store::sections_of(*f.reader, f.row));
  if (!is_sampled_) TRY_VOID(store::add_inlined_calls(*f.reader, f.row, sections));
  CallsOfLine calls;
  store::CallQuery query;
  query.caller = f.row.id;
  query.by_site = true;
  query.of_code = f.row.has_code;
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
  if (!is_sampled_) TRY_VOID(store::add_inlined_calls(*reader_, path, lines));
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
  query.by_site = query.of_code = true;
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

}  // namespace weir::view
