// Every table in the order of its key, so that SQLite appends. Blocks and contexts are numbered anew for that (schema.cc
// says how); the other ids are the indices of the profile's vectors.
#include "store/fill.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "profile/os_call.h"
#include "store/bulk.h"
#include "store/context_order.h"
#include "store/intern.h"
#include "store/schema.h"

namespace weir::store {
namespace {

using namespace profile;

Value id(uint32_t n) { return n == none ? Value() : Value(n); }
Value least(Range r) { return r.min > r.max ? Value() : Value(r.min); }  // none: no call has ended
Value most(Range r) { return r.min > r.max ? Value() : Value(r.max); }

const char* name_of(SiteKind kind) {
  switch (kind) {
    case SiteKind::Call: return "call";
    case SiteKind::IndirectCall: return "indirect call";
    case SiteKind::TailCall: return "tail call";
    case SiteKind::Signal: return "signal";
    case SiteKind::Start: return "start";
  }
  return "";
}

const char* name_of(OsClass c) {
  switch (c) {
    case OsClass::Fixed: return "fixed";
    case OsClass::Determinate: return "determinate";
    case OsClass::Timed: return "timed";
  }
  return "";
}

Result<> insert(const Database& db, std::string_view table, const Row& row) {
  return insert_all(db, table, 1, [&](size_t) { return row; });
}

Result<> insert_words(const Database& db, std::string_view kind, const std::vector<std::string>& words) {
  return insert_all(db, "run_word", words.size(), [&](size_t i) { return Row(kind, i, std::string_view(words[i])); });
}

Result<> insert_run(const Database& db, const Run& run) {
  TRY_VOID(insert(db, "weir", Row(std::string_view(kind_of_profile), schema_version, std::string_view(run.weir_version))));
  TRY_VOID(insert(
      db, "run",
      Row(std::string_view(run.directory), std::string_view(run.cpu), std::string_view(run.host_cpu), run.cycles_per_second,
          std::string_view(run.clock), run.os_separate, run.full_paths, run.started, run.ended, run.complete)));
  TRY_VOID(insert_words(db, "command", run.command));
  return insert_words(db, "environment", run.environment);
}

// The blocks by function and place; `first[f]` is where those of function f begin, in the new numbering.
struct BlockOrder {
  std::vector<uint32_t> old_of_new, new_of_old, first;
};
BlockOrder order_blocks(const Profile& p) {
  BlockOrder order;
  auto key = [&](uint32_t b) { return std::tuple(p.blocks[b].function, p.blocks[b].offset, b); };
  order.old_of_new.resize(p.blocks.size());
  std::iota(order.old_of_new.begin(), order.old_of_new.end(), 0);
  if (!std::ranges::is_sorted(order.old_of_new, {}, key)) std::ranges::sort(order.old_of_new, {}, key);
  order.new_of_old.resize(p.blocks.size());
  for (uint32_t i = 0; i < order.old_of_new.size(); i++) order.new_of_old[order.old_of_new[i]] = i;
  uint32_t next = 0;
  for (uint32_t f = 0; f <= p.functions.size(); f++) {
    while (next < p.blocks.size() && p.blocks[order.old_of_new[next]].function < f) next++;
    order.first.push_back(next);
  }
  return order;
}

// A row of block_line: a block in the new numbering, and which of its lines that is.
struct LineRow {
  uint32_t block, position, line;
};
std::vector<LineRow> order_lines(const Profile& p, const BlockOrder& order) {
  std::vector<LineRow> rows;
  rows.reserve(p.lines.size());
  for (uint32_t i = 0; i < p.lines.size(); i++) rows.push_back({order.new_of_old[p.lines[i].block], 0, i});
  if (!std::ranges::is_sorted(rows, {}, &LineRow::block)) std::ranges::stable_sort(rows, {}, &LineRow::block);
  for (size_t i = 1; i < rows.size(); i++)
    if (rows[i].block == rows[i - 1].block) rows[i].position = rows[i - 1].position + 1;
  return rows;
}

Result<> insert_code(const Database& db, const Profile& p, const BlockOrder& order, Strings& strings) {
  TRY_VOID(insert_all(db, "image", p.images.size(), [&](size_t i) {
    const Image& m = p.images[i];
    return Row(i, std::string_view(m.path), std::string_view(m.build_id), m.size, m.modified);
  }));
  TRY_VOID(insert_all(db, "function", p.functions.size(), [&](size_t i) {
    const Function& f = p.functions[i];
    return Row(i, id(f.image), f.offset, f.size, strings.id(f.linkage_name), strings.number(f.name), strings.id(f.file),
               f.line, order.first[i], order.first[i + 1] - order.first[i]);
  }));
  TRY_VOID(insert_all(db, "block", p.blocks.size(), [&](size_t i) {
    const Block& b = p.blocks[order.old_of_new[i]];
    return Row(i, id(b.function), b.offset, p.code_of(b), b.instructions, b.cycles);
  }));

  std::vector<LineRow> lines = order_lines(p, order);
  TRY_VOID(insert_all(db, "block_line", lines.size(), [&](size_t i) {
    const LinePart& l = p.lines[lines[i].line];
    return Row(lines[i].block, lines[i].position, strings.id(l.file), l.line, strings.id(l.inlined), l.instructions,
               l.cycles);
  }));
  return insert_all(db, "site", p.sites.size(), [&](size_t i) {
    const CallSite& s = p.sites[i];
    return Row(i, id(s.function), s.offset, std::string_view(name_of(s.kind)), strings.id(s.file), s.line);
  });
}

Result<> insert_processes(const Database& db, const Profile& p) {
  TRY_VOID(insert_all(db, "process", p.processes.size(), [&](size_t i) {
    const Process& process = p.processes[i];
    return Row(i, process.pid, id(process.parent), process.started, process.ended,
               process.exit_status ? Value(*process.exit_status) : Value());
  }));
  for (size_t i = 0; i < p.processes.size(); i++) {
    for (auto& [kind, words] : {std::pair("command", &p.processes[i].command), std::pair("note", &p.processes[i].notes)})
      TRY_VOID(insert_all(db, "process_word", words->size(),
                          [&](size_t k) { return Row(i, std::string_view(kind), k, std::string_view((*words)[k])); }));
  }
  return insert_all(db, "thread", p.threads.size(), [&](size_t i) {
    const Thread& t = p.threads[i];
    return Row(i, id(t.process), t.tid, std::string_view(t.name), t.cycles, t.instructions, t.os_time);
  });
}

// The counts of all threads in the order of `key`, which ends with the thread. A key may come once.
template <class Count>
struct Counted {
  uint32_t thread;
  const Count* count;
};
template <class Count, class Key>
std::vector<Counted<Count>> in_order(const Profile& p, std::vector<Count> Thread::*counts, Key key) {
  std::vector<Counted<Count>> all;
  for (uint32_t t = 0; t < p.threads.size(); t++)
    for (const Count& count : p.threads[t].*counts) all.push_back({t, &count});
  auto whole_key = [&](const Counted<Count>& c) { return std::tuple_cat(key(*c.count), std::tuple(c.thread)); };
  if (!std::ranges::is_sorted(all, {}, whole_key)) std::ranges::sort(all, {}, whole_key);
  return all;
}

Result<> insert_counts(const Database& db, const Profile& p, const BlockOrder& order) {
  auto functions = in_order(p, &Thread::functions, [](const FunctionCount& c) { return std::tuple(c.function); });
  TRY_VOID(insert_all(db, "function_count", functions.size(), [&](size_t i) {
    const FunctionCount& c = *functions[i].count;
    return Row(c.function, functions[i].thread, c.calls, c.self, least(c.self_range), most(c.self_range), c.total,
               c.os_calls, c.os_time, c.os_time_total);
  }));
  auto calls = in_order(p, &Thread::calls, [](const CallCount& c) { return std::tuple(c.callee, c.site); });
  TRY_VOID(insert_all(db, "call_count", calls.size(), [&](size_t i) {
    const CallCount& c = *calls[i].count;
    return Row(c.callee, c.site, calls[i].thread, c.calls, c.total, c.os_time_total, least(c.self_range),
               most(c.self_range));
  }));
  auto blocks = in_order(p, &Thread::blocks, [&](const BlockCount& c) { return std::tuple(order.new_of_old[c.block]); });
  std::erase_if(blocks, [](const auto& b) { return b.count->count == 0 && b.count->extra == 0; });
  TRY_VOID(insert_all(db, "block_count", blocks.size(), [&](size_t i) {
    const BlockCount& c = *blocks[i].count;
    return Row(order.new_of_old[c.block], blocks[i].thread, c.count, c.extra);
  }));
  auto os_calls = in_order(p, &Thread::os_calls, [](const OsCount& c) { return std::tuple(c.function, c.number); });
  TRY_VOID(insert_all(db, "os_count", os_calls.size(), [&](size_t i) {
    const OsCount& c = *os_calls[i].count;
    return Row(c.function, c.number, os_calls[i].thread, c.calls, c.errors, c.uncharged, c.time,
               std::string_view(name_of(c.os_class)));
  }));
  std::set<uint32_t> distinct;
  for (const auto& c : os_calls) distinct.insert(c.count->number);
  std::vector<uint32_t> numbers(distinct.begin(), distinct.end());
  std::string name;  // of the row at hand
  return insert_all(db, "os_call", numbers.size(), [&](size_t i) {
    name = os_call_name(numbers[i]);
    return Row(numbers[i], std::string_view(name));
  });
}

Result<> insert_contexts(const Database& db, const Profile& p) {
  uint32_t base = 0;  // of the thread's contexts: ids are the whole file's
  for (uint32_t t = 0; t < p.threads.size(); t++) {
    const std::vector<Context>& contexts = p.threads[t].contexts;
    std::vector<OrderedContext> ordered = order_contexts(contexts);
    TRY_VOID(insert_all(db, "context", ordered.size(), [&](size_t i) {
      const OrderedContext& o = ordered[i];
      const Context& c = contexts[o.original];
      return Row(base + i, t, o.parent == none ? Value() : Value(base + o.parent), id(c.site), id(c.function), c.calls,
                 c.self, c.os_time, o.total, o.os_time_total, base + o.first_child, o.children);
    }));
    base += static_cast<uint32_t>(ordered.size());
  }
  return {};
}

}  // namespace

Result<> fill(const Database& db, const Profile& p) {
  TRY_VOID(db.execute(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN", application_id, schema_version).c_str()));
  TRY_VOID(db.execute(create_tables));
  Strings strings;
  BlockOrder order = order_blocks(p);
  TRY_VOID(insert_run(db, p.run));
  TRY_VOID(insert_code(db, p, order, strings));
  TRY_VOID(insert_processes(db, p));
  TRY_VOID(insert_counts(db, p, order));
  TRY_VOID(insert_contexts(db, p));
  TRY_VOID(
      insert_all(db, "string", strings.all().size(), [&](size_t i) { return Row(i, std::string_view(strings.all()[i])); }));
  TRY_VOID(db.execute(create_indices));
  return db.execute("COMMIT");
}

}  // namespace weir::store
