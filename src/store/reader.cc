// Opening a profile, and what it says of the run, its threads and processes.
#include "store/reader.h"

#include <fcntl.h>
#include <pwd.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/fd.h"
#include "base/pattern.h"
#include "base/text.h"
#include "profile/os_call.h"
#include "store/schema.h"

namespace weir::store {
namespace {

// Profiles are for their user's eyes alone.
std::unexpected<Error> not_readable(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0)
    return fail("{}: Permission denied: its directory is another user's; copy it out of there", path);
  const passwd* owner = getpwuid(st.st_uid);
  return fail("{}: Permission denied: it belongs to {}, who can share it by: chmod a+r {}", path,
              owner ? owner->pw_name : fmt::format("user {}", st.st_uid), path);
}

// What can be said before SQLite looks at the file. Its header: fileformat2.html, 1.3.
Result<> check_header(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // (a pipe would wait for a writer)
  struct stat st;
  if (!fd && errno == ENOENT) return fail("{}: No such file; weir profile -o {} -- PROGRAM makes one", path, path);
  if (!fd && errno == EACCES) return not_readable(path);
  if (!fd || fstat(fd.get(), &st) != 0) return fail_errno("{}", path);
  if (!S_ISREG(st.st_mode)) return fail("{}: is not a file", path);
  std::array<uint8_t, 100> header{};
  ssize_t n = read(fd.get(), header.data(), header.size());
  if (n < 16 || memcmp(header.data(), "SQLite format 3", 16) != 0)
    return fail("{}: is not a Weir profile (weir profile -o FILE -- PROGRAM makes one)", path);
  uint64_t page_size = uint64_t{header[16]} << 8 | header[17];
  if (page_size == 1) page_size = 65536;
  uint64_t pages = uint64_t{header[28]} << 24 | header[29] << 16 | header[30] << 8 | header[31];
  uint64_t size = static_cast<uint64_t>(st.st_size);
  if (size < pages * page_size)
    return fail("{}: the file is cut short: {} of {} bytes; copy it again, or profile again", path, size,
                pages * page_size);
  return {};
}

Result<> check_kind(const Database& db) {
  TRY(uint64_t application, db.number("PRAGMA application_id"));
  if (application != application_id) return fail("{}: is a SQLite file, but not one that Weir wrote", db.path());
  TRY(uint64_t version, db.number("PRAGMA user_version"));
  if (version > schema_version)
    return fail("{}: was written by a newer Weir (schema {}; this one reads up to {}): update Weir", db.path(), version,
                schema_version);
  if (version < 1) return fail("{}: has no schema version: the file is damaged", db.path());
  // A view in the place of a table could be anything, and take any time.
  TRY(uint64_t tables,
      db.number(
          "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('weir', 'run', 'run_word', 'string', "
          "'image', 'function', 'block', 'block_line', 'site', 'process', 'process_word', 'thread', 'function_count', "
          "'call_count', 'block_count', 'context', 'os_call', 'os_count', 'sampling', 'sampling_reason', 'leaf_count', "
          "'source', 'scope', 'folded_function_count', 'folded_call_count', "
          "'folded_context', 'folded_leaf_count')"));
  uint64_t all = version >= 6 ? 27 : version >= 4 ? 22 : version >= 3 ? 21 : 18;
  if (tables < all) return fail("{}: {} of its {} tables are missing: the file is damaged", db.path(), all - tables, all);
  Statement rows = db.prepare("SELECT kind FROM weir");
  std::string kind = rows.next() ? rows.text(0) : "";
  TRY_VOID(rows.end());
  if (kind != exact_kind && (kind != sampled_kind || version < 3))
    return fail("{}: holds '{}', not a profile", db.path(), kind);
  return {};
}

std::string_view text_of(sqlite3_value* v) {
  auto* text = reinterpret_cast<const char*>(sqlite3_value_text(v));
  return text ? std::string_view(text, static_cast<size_t>(sqlite3_value_bytes(v))) : std::string_view();
}

// matches(pattern, name): the pattern is compiled once for a statement.
void matches(sqlite3_context* context, int, sqlite3_value** arguments) {
  auto* pattern = static_cast<Pattern*>(sqlite3_get_auxdata(context, 0));
  if (!pattern) {
    Result<Pattern> made = Pattern::make(text_of(arguments[0]));
    if (!made) return sqlite3_result_error(context, made.error().what.c_str(), -1);
    sqlite3_set_auxdata(context, 0, new Pattern(std::move(*made)), [](void* p) { delete static_cast<Pattern*>(p); });
    pattern = static_cast<Pattern*>(sqlite3_get_auxdata(context, 0));
  }
  sqlite3_result_int(context, pattern && pattern->matches_name(text_of(arguments[1])));
}

// is_called(name, text): is that what a person calls it? A clone is, by its author's name, and what several names share, by each.
void is_called(sqlite3_context* context, int, sqlite3_value** arguments) {
  std::string_view name = text_of(arguments[0]), text = text_of(arguments[1]);
  std::string_view plain = without_mark(name);
  bool is_one = name == text || (plain == text && !name.ends_with(" [resolver]"));
  while (!is_one && plain.size() < name.size() && !name.starts_with("in ") && plain.find('/') != plain.npos) {
    is_one = plain.substr(0, plain.find('/')) == text || plain.substr(plain.find('/') + 1) == text;
    plain.remove_prefix(plain.find('/') + 1);
  }
  sqlite3_result_int(context, is_one);
}

// sum(figure), in the place of SQLite's own: a figure that cannot be is left out, and no sum is an error.
struct Added {
  int64_t sum;
  bool any;
};
void add_figure(sqlite3_context* context, int, sqlite3_value** arguments) {
  auto* added = static_cast<Added*>(sqlite3_aggregate_context(context, sizeof(Added)));
  if (!added || sqlite3_value_type(arguments[0]) == SQLITE_NULL) return;
  added->any = true;
  int64_t figure = sqlite3_value_int64(arguments[0]);
  if (figure < 0 || figure > most) return;
  if (__builtin_add_overflow(added->sum, figure, &added->sum)) added->sum = INT64_MAX;
}
void end_sum(sqlite3_context* context) {
  auto* added = static_cast<Added*>(sqlite3_aggregate_context(context, 0));
  if (added && added->any) sqlite3_result_int64(context, added->sum);
}

}  // namespace

Result<Reader> Reader::open(const std::string& path) {
  TRY_VOID(check_header(path));
  TRY(Database db, Database::open_to_read(path));
  TRY_VOID(check_kind(db));
  TRY(uint64_t version, db.number("PRAGMA user_version"));
  sqlite3_create_function_v2(db.get(), "matches", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, matches, nullptr, nullptr,
                             nullptr);
  sqlite3_create_function_v2(db.get(), "is_called", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, is_called, nullptr,
                             nullptr, nullptr);
  sqlite3_create_function_v2(db.get(), "sum", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, nullptr, add_figure, end_sum,
                             nullptr);
  TRY_VOID(db.execute("CREATE TEMP TABLE selected(id INTEGER PRIMARY KEY); INSERT INTO selected SELECT id FROM thread"));
  TRY_VOID(db.execute("BEGIN"));  // one lock for all questions, not one for each
  Reader reader(std::move(db), version);
  if (version >= 6) {
    TRY(reader.has_inlined_, reader.db_.number("SELECT EXISTS (SELECT 1 FROM scope)"));
  }
  TRY_VOID(reader.lay_over());
  return reader;
}

// Views of ours with the tables' names come before these: what was waited is added to the time of OS calls, inlined functions are folded, and files
// from before schema 6 tell of neither.
Result<> Reader::lay_over() {
  struct Table {
    const char *name, *columns;
    std::vector<std::pair<const char*, const char*>> times;  // of OS calls, and what was waited in them
    bool has_forms = false;                                  // with inlined functions, and without
  };
  static const Table tables[] = {
      {"thread", "id, process, tid, name, cycles, instructions", {{"os_time", "waited"}}},
      {"function_count",
       "function, thread, calls, self, self_min, self_max, total, os_calls",
       {{"os_time", "waited"}, {"os_time_total", "waited_total"}},
       true},
      {"call_count", "callee, site, thread, calls, total, self_min, self_max", {{"os_time_total", "waited_total"}}, true},
      {"context",
       "id, thread, parent, site, function, calls, self, total, first_child, children",
       {{"os_time", "waited"}, {"os_time_total", "waited_total"}},
       true},
      {"os_count", "function, number, thread, calls, errors, class", {{"time", "waited"}}}};
  bool is_old = version_ < 6;
  std::string sql;
  auto view = [&](const char* name, const std::string& select) {
    sql += fmt::format("DROP VIEW IF EXISTS temp.{0};", name);
    if (!select.empty()) sql += fmt::format("CREATE TEMP VIEW {} AS {};", name, select);
  };
  for (const Table& table : tables) {
    bool is_folded = table.has_forms && is_folded_;
    std::string columns = table.columns;
    if (table.name == std::string_view("function_count"))
      columns += is_old ? ", NULL AS inlined, 0 AS is_estimate" : ", inlined, is_estimate";
    for (auto [time, waited] : table.times) {
      columns += adds_waits_ ? fmt::format(", {0} + coalesce({1}, 0) AS {0}", time, waited) : fmt::format(", {}", time);
      columns += is_old ? fmt::format(", NULL AS {}", waited) : fmt::format(", {}", waited);
    }
    bool is_needed = is_old || adds_waits_ || is_folded;
    view(table.name,
         is_needed ? fmt::format("SELECT {} FROM main.{}{}", columns, is_folded ? "folded_" : "", table.name) : "");
  }
  view("function", is_old       ? "SELECT *, 1 AS has_code FROM main.function"
                   : is_folded_ ? "SELECT * FROM main.function WHERE has_code"
                                : "");
  view("site", is_old       ? "SELECT *, function AS holder, NULL AS scope FROM main.site"
               : is_folded_ ? "SELECT id, holder AS function, offset, kind, file, line, holder, scope FROM main.site"
                            : "");
  view("block_line", is_old ? "SELECT *, NULL AS scope, NULL AS is_counted FROM main.block_line" : "");
  view("leaf_count", is_folded_ ? "SELECT * FROM main.folded_leaf_count" : "");
  return db_.execute(sql.c_str());
}

Result<bool> Reader::add_waits(std::optional<bool> said) {
  TRY(profile::Run run, this->run());
  if (said && run.sampling)
    return fail("{}: is a sampled profile: `weir sample --clock=wall` has what was waited in it", path());
  if (said.value_or(false) && !tells_waits())
    return fail("{}: was written by an older Weir, which did not tell waits; profile again", path());
  if (said.value_or(false) && run.clock == "instructions")
    return fail("{}: counts instructions, and what was waited has none: see the view waits", path());
  adds_waits_ = tells_waits() && said.value_or(!run.sampling && run.clock == "wall");
  TRY_VOID(lay_over());
  return adds_waits_;
}

namespace {

std::optional<uint32_t> number_in(const std::string& text) {
  uint32_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

bool has_name(const ProcessRow& p, const std::string& name) {
  return base_name(p.program) == name || (!p.command.empty() && base_name(p.command[0]) == name);
}

}  // namespace

Result<> Reader::select(const std::string& thread, const std::string& process) {
  TRY(std::vector<ProcessRow> processes, this->processes());
  TRY(std::vector<ThreadRow> threads, all_threads());
  std::set<uint32_t> named;
  for (const ProcessRow& p : processes)
    if (has_name(p, process)) named.insert(p.id);
  // A number is an id of the system; where no thread has that, it is an index.
  std::optional<uint32_t> tid = number_in(thread), pid = number_in(process);
  bool is_tid = tid && std::ranges::find(threads, *tid, &ThreadRow::tid) != threads.end();
  bool is_pid = pid && std::ranges::find(threads, *pid, &ThreadRow::pid) != threads.end();
  std::string ids;
  for (const ThreadRow& t : threads) {
    bool is_thread = thread.empty() || (tid ? (is_tid ? t.tid : t.id) == *tid : t.name == thread);
    bool is_process = process.empty() || (pid ? (is_pid ? t.pid : t.process) == *pid : named.contains(t.process));
    if (is_thread && is_process) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", t.id);
  }
  if (ids.empty())
    return fail("{}: no {}{}; see: weir report {} threads", path(), thread.empty() ? "process" : "thread " + thread,
                process.empty() ? "" : (thread.empty() ? " " : " in process ") + process, path());
  return fill_selected(fmt::format("t.id IN ({})", ids));
}

Result<> Reader::select_id(std::optional<uint32_t> thread) {
  return fill_selected(thread ? fmt::format("t.id = {}", *thread) : "1");
}

// Names of tables mean those of `temp` first, so that every question is asked of the other form.
Result<> Reader::fold_inlined(bool is_folded) {
  if (version_ < 6) return {};
  TRY(uint64_t is_there, db_.number("SELECT EXISTS (SELECT 1 FROM main.scope)"));
  is_folded_ = is_folded && is_there;
  has_inlined_ = !is_folded && is_there;
  return lay_over();
}

Result<> Reader::fill_selected(std::string_view condition) {
  return db_.execute(fmt::format("DELETE FROM selected; INSERT INTO selected SELECT t.id FROM thread t "
                                 "LEFT JOIN process p ON p.id = t.process WHERE {}",
                                 condition)
                         .c_str());
}

Result<std::string> Reader::kind() const {
  Statement rows = db_.prepare("SELECT kind FROM weir");
  std::string kind = rows.next() ? rows.text(0) : "";
  TRY_VOID(rows.end());
  return kind;
}

Result<profile::Run> Reader::run() const {
  profile::Run run;
  Statement rows = db_.prepare(fmt::format(
      "SELECT directory, cpu, host_cpu, cycles_per_second, clock, os_separate, full_paths, started, ended, complete, "
      "(SELECT version FROM weir), {}, {}, {} FROM run",
      since(6, "user_time"), since(6, "system_time"), version_ >= 6 ? "os_model" : "'classes'"));
  if (rows.next()) {
    run.directory = rows.text(0);
    run.cpu = rows.text(1);
    run.host_cpu = rows.text(2);
    run.cycles_per_second = rows.u64(3);
    run.clock = rows.text(4);
    run.os_separate = rows.u64(5);
    run.full_paths = rows.u64(6);
    run.started = rows.time(7);
    run.ended = rows.time(8);
    run.complete = rows.u64(9);
    run.weir_version = rows.text(10);
    run.user_time = rows.maybe(11);
    run.system_time = rows.maybe(12);
    run.os_model = rows.text(13);
  }
  TRY_VOID(rows.end());
  Statement words = db_.prepare("SELECT kind, text FROM run_word ORDER BY kind, position");
  while (words.next()) (words.text(0) == "command" ? run.command : run.environment).push_back(words.text(1));
  TRY_VOID(words.end());
  TRY(run.sampling, sampling());
  return run;
}

Result<std::optional<profile::Sampling>> Reader::sampling() const {
  TRY(uint64_t is_sampled, db_.number(fmt::format("SELECT count(*) FROM weir WHERE kind = '{}'", sampled_kind)));
  if (!is_sampled) return std::nullopt;
  profile::Sampling s;
  Statement rows = db_.prepare(
      "SELECT event, source, rate, period, unwind, confidence, verify, sees_kernel, samples, frames, frames_unwound, "
      "frames_heuristic, frames_by_frame_pointer, truncated, no_room, lost, late, verify_differences, distrusted, new_maps "
      "FROM sampling");
  if (rows.next()) {
    s.event = rows.text(0);
    s.source = rows.text(1);
    s.rate = rows.real(2);
    if (s.rate < 1e-6 || s.rate > 1e9) s.rate = 0;  // (no clock can do that: seconds would be nonsense)
    s.period = rows.u64(3);
    s.unwind = rows.text(4);
    s.confidence = rows.small(5);
    s.verify = rows.u64(6);
    s.sees_kernel = rows.u64(7);
    int column = 8;
    for (uint64_t* sum : {&s.samples, &s.frames, &s.frames_unwound, &s.frames_heuristic, &s.frames_by_frame_pointer,
                          &s.truncated, &s.no_room, &s.lost, &s.late, &s.verify_differences, &s.distrusted, &s.new_maps})
      *sum = rows.u64(column++);
  }
  TRY_VOID(rows.end());
  Statement reasons = db_.prepare("SELECT kind, reason, samples FROM sampling_reason ORDER BY kind, reason");
  while (reasons.next())
    (reasons.text(0) == "truncated" ? s.truncated_by : s.differences_by).push_back({reasons.text(1), reasons.u64(2)});
  TRY_VOID(reasons.end());
  return s;
}

Result<Totals> Reader::totals() const {
  Totals t;
  // By the clock of instructions there is one number of them: that of the functions. (Entries of linkage tables belong to none.)
  Statement rows = db_.prepare(
      "SELECT sum(cycles), sum(os_time), sum(CASE (SELECT clock FROM run) WHEN 'instructions' THEN cycles ELSE "
      "instructions "
      "END), count(*), sum(waited) FROM thread WHERE id IN selected");
  if (rows.next()) {
    t.cycles = rows.u64(0);
    t.os_time = rows.u64(1);
    t.instructions = rows.u64(2);
    t.threads = rows.u64(3);
    t.waited = rows.u64(4);
  }
  TRY_VOID(rows.end());
  TRY_VOID(count_processes(t));
  TRY(t.functions, db_.number("SELECT count(*) FROM function"));
  TRY(t.functions_run,
      db_.number(fmt::format("SELECT count(DISTINCT function) FROM function_count WHERE thread IN selected AND {}", ran)));
  TRY(t.os_calls, db_.number(fmt::format("SELECT sum(calls) FROM os_count WHERE thread IN selected AND number != {}",
                                         profile::page_fault)));
  TRY(t.page_faults, db_.number(fmt::format("SELECT sum(calls) FROM os_count WHERE thread IN selected AND number = {}",
                                            profile::page_fault)));
  TRY(t.contexts, db_.number("SELECT count(*) FROM context"));
  TRY(t.blocks, db_.number("SELECT count(*) FROM block"));
  return t;
}

// A process that executes a program has a row for what it was, and one for the program; its first thread goes on. What a fork begins is a
// process, and no program, as long as it has its parent's command (of one that was met late, what it was before is not known).
Result<> Reader::count_processes(Totals& t) const {
  constexpr const char* command_of =
      "(SELECT group_concat(hex(text)) FROM (SELECT text FROM process_word w WHERE w.process = {} AND kind = 'command' "
      "ORDER BY "
      "position))";
  Statement rows = db_.prepare(fmt::format(
      "SELECT pid, {}, id IN (SELECT process FROM thread WHERE id IN selected), parent IS NULL OR coalesce({} != {}, 0), "
      "EXISTS (SELECT 1 FROM thread t WHERE t.process = p.id AND t.tid = p.pid AND t.id IN selected) "
      "FROM process p ORDER BY pid, started, id",
      since(2, "ended_by"), fmt::format(command_of, "p.id"), fmt::format(command_of, "p.parent")));
  uint32_t last = none;
  bool was_exec = false, is_counted = false, has_first = false;
  while (rows.next()) {
    uint32_t pid = rows.small(0);
    bool goes_on = pid == last && was_exec, is_selected = rows.u64(2), has_first_here = rows.u64(4);
    if (!goes_on) is_counted = has_first = false;
    if (is_selected && !is_counted) t.processes++, is_counted = true;
    if (has_first && has_first_here) t.threads--;
    has_first |= has_first_here;
    t.programs += is_selected && (goes_on || rows.u64(3));
    last = pid, was_exec = rows.text(1) == "exec";
  }
  return rows.end();
}

Result<std::vector<ThreadRow>> Reader::threads() const { return threads_where("t.id IN selected"); }
Result<std::vector<ThreadRow>> Reader::all_threads() const { return threads_where("1"); }

Result<std::vector<ThreadRow>> Reader::threads_where(const char* condition) const {
  std::vector<ThreadRow> threads;
  Statement rows = db_.prepare(fmt::format(
      "SELECT t.id, t.process, p.pid, t.tid, t.name, t.cycles, t.os_time, t.waited, t.instructions, f.functions "
      "FROM thread t LEFT JOIN process p ON p.id = t.process LEFT JOIN "
      "  (SELECT thread, count(*) AS functions FROM function_count WHERE {} GROUP BY thread) f ON f.thread = t.id "
      "WHERE {} ORDER BY t.id",
      ran, condition));
  while (rows.next())
    threads.push_back({rows.u32(0), rows.u32(1), rows.small(2), rows.small(3), rows.text(4), rows.u64(5), rows.u64(6),
                       rows.u64(7), rows.u64(8), rows.u64(9)});
  TRY_VOID(rows.end());
  return threads;
}

Result<std::vector<ProcessRow>> Reader::processes() const {
  std::vector<ProcessRow> processes;
  Statement rows = db_.prepare(fmt::format(
      "SELECT id, pid, parent, started, ended, exit_status, {} FROM process ORDER BY id", since(2, "ended_by")));
  Statement words = db_.prepare("SELECT kind, text FROM process_word WHERE process = ? ORDER BY kind, position");
  while (rows.next()) {
    ProcessRow p;
    p.id = rows.u32(0);
    p.pid = rows.small(1);
    p.parent = rows.u32(2);
    p.started = rows.time(3);
    p.ended = rows.time(4);
    if (auto status = rows.maybe(5)) p.exit_status = static_cast<int>(*status);
    p.ended_by = rows.text(6);
    words.rewind();
    words.bind(1, p.id);
    while (words.next()) {
      std::string kind = words.text(0);
      if (kind == "program") p.program = words.text(1);
      else (kind == "note" ? p.notes : p.command).push_back(words.text(1));
    }
    processes.push_back(std::move(p));
  }
  TRY_VOID(words.end());
  TRY_VOID(rows.end());
  return processes;
}

}  // namespace weir::store
