// Annotated source (spec 1, S1, S3): store/annotate.h says what is known of a line, and what its marks mean.
#include <algorithm>
#include <map>
#include <set>

#include "report/views.h"
#include "store/annotate.h"

namespace weir::report {
namespace {

using store::Cycles;
using store::FunctionRow;
using store::LineFacts;
using store::LineRow;
using store::Lines;
using store::OneBlock;

class Listing {
 public:
  Listing(View& v, Cycles whole) : v_(v), whole_(whole) {}

  // Lines before this stand above the table.
  void begin() {
    begun_ = true;
    v_.out.table("rows", {{"", "self %", Kind::Share},
                          {"self", v_.is_sampled() ? "samples" : "self", Kind::Cycles},
                          {v_.is_sampled() ? "total" : "", v_.is_sampled() ? "total" : nullptr, Kind::Cycles},
                          {"count", v_.is_sampled() ? nullptr : "count", Kind::Count},
                          {"mark", "", Kind::Label},
                          {"line", "line", Kind::Count},
                          {"share", nullptr, Kind::Share},
                          {"file", nullptr, Kind::Path},
                          {"inlined", nullptr, Kind::Name},
                          {"text", "source", Kind::Code}});
  }

  void heading(const std::string& text) { begun_ ? v_.out.row_line(text) : v_.out.line(text); }

  // The lines of `file` from `first` to `last`.
  void lines(const std::string& file, const Lines& facts, const std::vector<std::string>& source, uint32_t first,
             uint32_t last) {
    for (uint32_t n = first; n <= last; n++) {
      auto at = facts.find(n);
      const LineFacts* line = at == facts.end() ? nullptr : &at->second;
      row(file, n, line, n && n <= source.size() ? source[n - 1] : "");
      if (v_.options.blocks && line && line->blocks.size() > 1) block_counts(file, n, *line);
    }
  }
  void never_ran(const std::string& file, uint32_t n, const std::string& text) {
    v_.out.row({Cell(), number_if(!v_.out.is_text(), 0), Cell(), uint64_t{0}, "#", uint64_t{n}, 0.0, file, Cell(), text},
               {0, true});
  }
  void end() {
    v_.out.end_table();
    if (!v_.options.blocks || v_.out.style().format != Format::Json) return;
    v_.out.table("blocks", {{"file", "", Kind::Path},
                            {"line", "", Kind::Count},
                            {"offset", "", Kind::Count},
                            {"count", "", Kind::Count},
                            {"self", "", Kind::Cycles}});
    for (auto& [file, line, b] : blocks_) v_.out.row({file, uint64_t{line}, b.offset, v_.if_exact(b.count), b.self});
    v_.out.end_table();
  }

 private:
  void row(const std::string& file, uint32_t n, const LineFacts* line, const std::string& text) {
    Cell total = number_if(line && line->self + line->called, line ? line->self + line->called : 0);
    if (!line || !line->is_known()) {
      v_.out.row({Cell(), Cell(), total, Cell(), std::string(), uint64_t{n}, Cell(), file, Cell(), text});
      return;
    }
    double share = View::ratio(line->self, whole_);
    bool ran = line->count() > 0;
    Cell self = number_if(ran || !v_.out.is_text(), line->self);
    Cell inlined = text_if_any(line->inlined.empty() ? "" : *line->inlined.begin());
    v_.out.row({share_if(ran, share), self, total, v_.if_exact(line->count()), line->mark(v_.is_sampled()), uint64_t{n},
                share, file, inlined, text},
               {0, !ran});
  }
  void block_counts(const std::string& file, uint32_t n, const LineFacts& line) {
    for (auto& [id, b] : line.blocks) {
      blocks_.push_back({file, n, b});
      if (v_.out.is_text())
        v_.out.row({View::ratio(b.self, whole_), b.self, Cell(), v_.if_exact(b.count), std::string(), Cell(), Cell(),
                    Cell(), Cell(), fmt::format("  * {} at {:#x}", v_.is_sampled() ? "instruction" : "block", b.offset)},
                   {0, true});
    }
  }

  View& v_;
  Cycles whole_;
  bool begun_ = false;
  std::vector<std::tuple<std::string, uint32_t, OneBlock>> blocks_;
};

// "main (1), fib(int) (4)": at most four.
Result<std::string> relatives(View& v, uint32_t function, bool callers) {
  store::CallQuery query;
  (callers ? query.callee : query.caller) = function;
  std::string text;
  size_t seen = 0;
  TRY_VOID(v.reader.calls(query, [&](const store::CallRow& c) {
    if (seen++ >= 4) return;
    std::string name = callers ? (c.caller == store::none ? "[start]" : c.caller_name) : c.callee_name;
    uint64_t weight = v.is_sampled() ? c.total : c.calls;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", shortened(name, 40));
    if (weight) text += fmt::format(" ({})", with_commas(weight));
  }));
  if (seen > 4) text += fmt::format(", and {} more", seen - 4);
  return text.empty() ? "none" : text;
}

// The lines above a function, each with a star.
Result<> header(View& v, Listing& listing, uint32_t id) {
  if (!v.out.is_text()) return {};
  TRY(FunctionRow f, v.reader.function(id, store::OsTime::Apart));
  listing.heading(fmt::format("* {}", shortened(f.name, v.is_terminal() ? v.out.style().width - 2 : 0)));
  if (f.calls == 0 && f.self == 0 && f.total == 0) {
    listing.heading(v.is_sampled() ? "* not sampled" : "* never ran");
    return {};
  }
  if (v.is_sampled())
    listing.heading(fmt::format("* samples: self {} ({}); total {} ({})", with_commas(f.self), percent(v.share(f.self)),
                                with_commas(f.total), percent(v.share(f.total))));
  else
    listing.heading(fmt::format("* calls {}; self {} ({}); total {} ({}){}", with_commas(f.calls), with_unit(f.self),
                                percent(v.share(f.self)), with_unit(f.total), percent(v.share(f.total)),
                                f.os_time ? fmt::format("; OS time {}, on no line", with_unit(f.os_time)) : ""));
  TRY(std::string callers, relatives(v, id, true));
  TRY(std::string callees, relatives(v, id, false));
  listing.heading("* callers: " + callers);
  listing.heading("* callees: " + callees);
  return {};
}

constexpr const char* gap = "  ⋮";

// "  (is not here …)": what a reader must know of the text.
std::string in_brackets(const store::SourceText& source) {
  using State = store::SourceText::State;
  if (source.state == State::Missing) return "  (not found here; --source-map OLD=NEW)";
  return source.state == State::Changed ? fmt::format("  ({})", source.why) : "";
}

// S9: the samples in what a line of a sampled profile called. `line(call)` is where they go, or null.
Result<> add_called(View& v, uint32_t caller, const std::function<LineFacts*(const store::CallRow&)>& line) {
  if (!v.is_sampled()) return {};
  store::CallQuery query;
  query.caller = caller;
  query.by_site = true;
  return v.reader.calls(query, [&](const store::CallRow& c) {
    if (!c.line || !c.total) return;
    if (LineFacts* facts = line(c)) facts->called += c.total;
  });
}

Result<> source_of_function(View& v, const store::FunctionInfo& f) {
  TRY(auto sections, store::sections_of(v.reader, f));  // own lines, then code of other files, then inlined functions
  TRY_VOID(
      add_called(v, f.id, [&](const store::CallRow& c) {  // (of a call it is not known what function it was inlined from)
        auto section = std::ranges::find_if(sections, [&](auto& s) { return s.first.file == c.file; });
        return &(section == sections.end() ? sections[{"", c.file}] : section->second)[c.line];
      }));
  if (!v.is_sampled()) TRY_VOID(store::add_inlined_calls(v.reader, f, sections));
  if (sections.empty())
    return fail("{}: no lines are known (was it compiled with -g?); see: weir report {} asm {}", printable(f.name),
                v.reader.path(), quoted_command({v.options.subject}));
  TRY(FunctionRow row, v.reader.function(f.id, store::OsTime::Apart));
  v.out.fact("name", f.name);
  v.out.fact("calls", v.if_exact(row.calls));
  v.out.fact("self", row.self);
  Cycles whole = 0;  // of what was inlined into it, too
  for (auto& [key, lines] : sections)
    for (auto& [n, facts] : lines) whole += facts.self;
  Listing listing(v, std::max(whole, row.self));
  TRY_VOID(header(v, listing, f.id));
  listing.begin();
  for (auto& [key, lines] : sections) {
    auto& [inlined, file] = key;
    TRY(store::SourceText source, store::source_text(v.reader, file, v.options.source_map));
    bool own = inlined.empty() && file == f.file;
    std::string state = in_brackets(source);
    if (!inlined.empty())
      listing.heading(fmt::format("* inlined: {}  {}{}", shortened(inlined, 40), shortened_path(file, 40), state));
    else if (sections.size() > 1 || !state.empty()) listing.heading(fmt::format("* {}{}", shortened_path(file, 60), state));
    bool first = true;
    for (auto& [from, to] : store::runs_of(lines, f, own)) {
      if (!std::exchange(first, false)) listing.heading(gap);
      listing.lines(file, lines, source.lines, from, to);
    }
  }
  listing.end();
  return {};
}

Result<> source_of_file(View& v, const std::string& file) {
  Lines lines;
  TRY_VOID(v.reader.lines(file, [&](const LineRow& r) {
    if (r.line) lines[r.line].add(r);
  }));
  if (!v.is_sampled()) TRY_VOID(store::add_inlined_calls(v.reader, file, lines));
  TRY_VOID(add_called(v, store::none, [&](const store::CallRow& c) { return c.file == file ? &lines[c.line] : nullptr; }));
  std::multimap<uint32_t, FunctionRow> declared;
  TRY_VOID(v.reader.functions_in(file, [&](const FunctionRow& f) { declared.emplace(f.line, f); }));
  TRY(store::SourceText text, store::source_text(v.reader, file, v.options.source_map));
  const std::vector<std::string>& source = text.lines;
  v.out.fact("file", file);
  Listing listing(v, v.totals.cycles);
  listing.heading(fmt::format("* {}{}; shares of {} {}", printable(file), in_brackets(text), with_unit(v.totals.cycles),
                              v.is_sampled() ? "samples" : fmt::format("{} of code", v.unit())));
  listing.begin();
  // All lines of the file, or those that are known.
  std::set<uint32_t> numbers;
  for (uint32_t n = 1; n <= source.size(); n++) numbers.insert(n);
  for (auto& [n, facts] : lines) numbers.insert(n);
  for (auto& [n, f] : declared)
    if (n) numbers.insert(n);
  for (uint32_t n : numbers) {
    auto [begin, end] = declared.equal_range(n);
    bool idle = false;
    for (auto it = begin; it != end; ++it) {
      TRY_VOID(header(v, listing, it->second.id));
      idle |= !v.is_sampled() && it->second.calls == 0 && it->second.blocks == 0;
    }
    if (idle && !lines.contains(n)) listing.never_ran(file, n, n && n <= source.size() ? source[n - 1] : "");
    else listing.lines(file, lines, source, n, n);
  }
  listing.end();
  return {};
}

}  // namespace

Result<> source(View& v) {
  const std::string& subject = v.options.subject;
  if (subject.empty()) return fail("which function or file? weir report {} source FUNCTION", v.reader.path());
  TRY(std::vector<std::string> files, v.reader.files(subject));
  if (files.size() > 1) return fail("'{}' may be any of {}; give more of it", subject, fmt::join(files, ", "));
  if (files.size() == 1) return source_of_file(v, files.front());
  TRY(store::FunctionInfo f, one_function(v, subject));
  return source_of_function(v, f);
}

}  // namespace weir::report
