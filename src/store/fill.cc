// Every table in the order of its key, as it must be (tree.h). Blocks and contexts are numbered anew for that (schema.cc
// says how); the other ids are the indices of the profile's vectors.
#include "store/fill.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "profile/os_call.h"
#include "profile/unfold.h"
#include "store/context_order.h"
#include "store/intern.h"
#include "store/schema.h"

namespace weir::store {
namespace {

using namespace profile;

Value id(uint32_t n) { return n == none ? Value() : Value(n); }
// A count or a time. One that cannot be (something was subtracted that was never added) is not known: sums go on without it.
Value figure(uint64_t n) { return n > uint64_t{most} ? Value() : Value(n); }
Value least(Range r) { return r.min > r.max ? Value() : figure(r.min); }  // none: no call has ended
Value largest(Range r) { return r.min > r.max ? Value() : figure(r.max); }
// Of what samples do not tell.
Value if_exact(const Profile& p, uint64_t n) { return p.run.sampling ? Value() : figure(n); }

const char* name_of(SiteKind kind) {
  switch (kind) {
    case SiteKind::Call: return "call";
    case SiteKind::IndirectCall: return "indirect call";
    case SiteKind::TailCall: return "tail call";
    case SiteKind::Signal: return "signal";
    case SiteKind::Start: return "start";
    case SiteKind::Inlined: return "inlined";
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

Value if_any(const std::optional<uint64_t>& n) { return n ? Value(*n) : Value(); }

void add_run(Tables& tables, const Run& run) {
  tables.rows("weir").add(run.sampling ? sampled_kind : exact_kind, schema_version, run.weir_version);
  tables.rows("run").add(run.directory, run.cpu, run.host_cpu, run.cycles_per_second, run.clock, run.os_separate,
                         run.os_model, run.full_paths, run.started, run.ended, run.complete, if_any(run.user_time),
                         if_any(run.system_time));
  Rows words = tables.rows("run_word");
  for (size_t i = 0; i < run.command.size(); i++) words.add("command", i, run.command[i]);
  for (size_t i = 0; i < run.environment.size(); i++) words.add("environment", i, run.environment[i]);
}

void add_sampling(Tables& tables, const Sampling& s) {
  tables.rows("sampling")
      .add(s.event, s.source, s.rate, s.period, s.unwind, s.confidence, s.verify, s.sees_kernel, s.samples, s.frames,
           s.frames_unwound, s.frames_heuristic, s.frames_by_frame_pointer, s.truncated, s.no_room, s.lost, s.late,
           s.verify_differences, s.distrusted, s.new_maps);
  Rows reasons = tables.rows("sampling_reason");
  for (const Sampling::Reason& r : s.differences_by) reasons.add("difference", r.name, r.samples);
  for (const Sampling::Reason& r : s.truncated_by) reasons.add("truncated", r.name, r.samples);
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

void add_images(Tables& tables, const Profile& p) {
  Rows images = tables.rows("image");
  for (size_t i = 0; i < p.images.size(); i++) {
    const Image& m = p.images[i];
    images.add(i, m.path, m.build_id, m.size, m.modified);
  }
}

Value text_or_null(const std::string& text) { return text.empty() ? Value() : Value(text); }

void add_functions(Tables& tables, const Profile& p, const BlockOrder& order, Strings& strings) {
  Rows functions = tables.rows("function");
  for (size_t i = 0; i < p.functions.size(); i++) {
    const Function& f = p.functions[i];
    Value file = strings.id(f.file), name = strings.number(f.name), linkage_name = strings.id(f.linkage_name);
    functions.add(i, id(f.image), f.offset, f.size, linkage_name, name, file, f.line, order.first[i],
                  order.first[i + 1] - order.first[i], text_or_null(f.named_by), text_or_null(f.clone), f.has_code);
  }
}

void add_blocks(Tables& tables, const Profile& p, const BlockOrder& order) {
  Rows blocks = tables.rows("block");
  for (size_t i = 0; i < p.blocks.size(); i++) {
    const Block& b = p.blocks[order.old_of_new[i]];
    blocks.add(i, id(b.function), b.offset, p.code_of(b), b.instructions, b.cycles);
  }
}

void add_lines(Tables& tables, const Profile& p, const BlockOrder& order, Strings& strings) {
  Rows lines = tables.rows("block_line");
  for (const LineRow& row : order_lines(p, order)) {
    const LinePart& l = p.lines[row.line];
    Value inlined = strings.id(l.inlined), file = strings.id(l.file);
    lines.add(row.block, row.position, file, l.line, inlined, l.instructions, l.cycles, id(l.scope), l.is_counted);
  }
}

// An index of sites by a function of theirs: no function comes before all others, as NULL does.
template <class FunctionOf>
void index_sites(Tables& tables, const char* name, const Profile& p, FunctionOf function_of) {
  std::vector<std::pair<uint32_t, uint32_t>> order;
  for (uint32_t site = 0; site < p.sites.size(); site++) order.emplace_back(function_of(p.sites[site]) + 1, site);
  std::ranges::sort(order);
  Rows index = tables.rows(name);
  for (auto [function, site] : order) index.add(id(function - 1), site);
}

void add_sites(Tables& tables, const Profile& p, const Unfolder& unfolder, Strings& strings) {
  {
    Rows sites = tables.rows("site");
    for (size_t i = 0; i < p.sites.size(); i++) {
      const CallSite& s = p.sites[i];
      sites.add(i, id(unfolder.caller(s)), s.offset, name_of(s.kind), strings.id(s.file), s.line, id(s.function),
                id(s.scope));
    }
  }
  index_sites(tables, "site_function", p, [&](const CallSite& s) { return unfolder.caller(s); });
  index_sites(tables, "site_holder", p, [](const CallSite& s) { return s.function; });
}

void add_scopes(Tables& tables, const Profile& p) {
  Rows scopes = tables.rows("scope");
  for (size_t i = 0; i < p.scopes.size(); i++) {
    const Scope& s = p.scopes[i];
    scopes.add(i, id(s.function), id(s.parent), id(s.inlined), id(s.site), s.entry);
  }
}

void add_processes(Tables& tables, const Profile& p) {
  {
    Rows processes = tables.rows("process");
    for (size_t i = 0; i < p.processes.size(); i++) {
      const Process& process = p.processes[i];
      processes.add(i, process.pid, id(process.parent), process.started, process.ended,
                    process.exit_status ? Value(*process.exit_status) : Value(),
                    process.ended_by.empty() ? Value() : Value(process.ended_by));
    }
  }
  {
    Rows words = tables.rows("process_word");
    for (size_t i = 0; i < p.processes.size(); i++) {
      const Process& process = p.processes[i];
      for (size_t k = 0; k < process.command.size(); k++) words.add(i, "command", k, process.command[k]);
      for (size_t k = 0; k < process.notes.size(); k++) words.add(i, "note", k, process.notes[k]);
      if (!process.program.empty()) words.add(i, "program", 0, process.program);
    }
  }
  Rows threads = tables.rows("thread");
  for (size_t i = 0; i < p.threads.size(); i++) {
    const Thread& t = p.threads[i];
    threads.add(i, id(t.process), t.tid, t.name, t.cycles, if_exact(p, t.instructions), t.os_time, if_exact(p, t.waited));
  }
}

// The counts of all threads in the order of `key`, which ends with the thread. A key may come once.
template <class Count>
struct Counted {
  uint32_t thread;
  const Count* count;
};
template <class Count, class Key>
std::vector<Counted<Count>> in_order(std::span<const Thread> threads, std::vector<Count> Thread::* counts, Key key) {
  std::vector<Counted<Count>> all;
  for (uint32_t t = 0; t < threads.size(); t++)
    for (const Count& count : threads[t].*counts) all.push_back({t, &count});
  auto whole_key = [&](const Counted<Count>& c) { return std::tuple_cat(key(*c.count), std::tuple(c.thread)); };
  if (!std::ranges::is_sorted(all, {}, whole_key)) std::ranges::sort(all, {}, whole_key);
  return all;
}

void add_function_counts(Tables& tables, const Profile& p, std::span<const Thread> threads, const std::string& form) {
  Rows rows = tables.rows(form + "function_count");
  for (auto [thread, c] :
       in_order(threads, &Thread::functions, [](const FunctionCount& c) { return std::tuple(c.function); }))
    rows.add(c->function, thread, if_exact(p, c->calls), figure(c->self), least(c->self_range), largest(c->self_range),
             figure(c->total), if_exact(p, c->os_calls), figure(c->os_time), figure(c->os_time_total),
             if_exact(p, c->waited), if_exact(p, c->waited_total), if_exact(p, c->inlined), uint64_t{c->is_estimate});
}

void add_call_counts(Tables& tables, const Profile& p, std::span<const Thread> threads, const std::string& form) {
  {
    Rows rows = tables.rows(form + "call_count");
    for (auto [thread, c] :
         in_order(threads, &Thread::calls, [](const CallCount& c) { return std::tuple(c.callee, c.site); }))
      rows.add(c->callee, c->site, thread, if_exact(p, c->calls), figure(c->total), figure(c->os_time_total),
               if_exact(p, c->waited_total), least(c->self_range), largest(c->self_range));
  }
  Rows index = tables.rows(form + "call_count_site");
  for (auto [thread, c] :
       in_order(threads, &Thread::calls, [](const CallCount& c) { return std::tuple(c.site, c.callee); }))
    index.add(c->site, c->callee, thread);
}

void add_block_counts(Tables& tables, const Profile& p, const BlockOrder& order) {
  Rows rows = tables.rows("block_count");
  for (auto [thread, c] :
       in_order(p.threads, &Thread::blocks, [&](const BlockCount& c) { return std::tuple(order.new_of_old[c.block]); }))
    if (c->count || c->extra) rows.add(order.new_of_old[c->block], thread, figure(c->count), figure(c->extra));
}

void add_os_counts(Tables& tables, const Profile& p) {
  std::set<uint32_t> numbers;
  {
    Rows rows = tables.rows("os_count");
    for (auto [thread, c] :
         in_order(p.threads, &Thread::os_calls, [](const OsCount& c) { return std::tuple(c.function, c.number); })) {
      rows.add(c->function, c->number, thread, figure(c->calls), figure(c->errors), figure(c->time), name_of(c->os_class),
               figure(c->waited));
      numbers.insert(c->number);
    }
  }
  Rows calls = tables.rows("os_call");
  for (uint32_t number : numbers) calls.add(number, os_call_name(number));
}

// And the leaves of call paths, in the new numbering of both.
void add_contexts(Tables& tables, const Profile& p, std::span<const Thread> threads, const std::string& form,
                  const BlockOrder& order) {
  std::vector<LeafCount> leaves;
  {
    Rows rows = tables.rows(form + "context");
    uint32_t base = 0;  // of the thread's contexts: ids are the whole file's
    for (uint32_t t = 0; t < threads.size(); t++) {
      const std::vector<Context>& contexts = threads[t].contexts;
      std::vector<OrderedContext> ordered = order_contexts(contexts);
      std::vector<uint32_t> new_of_old(threads[t].leaves.empty() ? 0 : contexts.size());
      for (uint32_t i = 0; i < ordered.size(); i++) {
        const OrderedContext& o = ordered[i];
        const Context& c = contexts[o.original];
        rows.add(base + i, t, o.parent == none ? Value() : Value(base + o.parent), id(c.site), id(c.function),
                 if_exact(p, c.calls), figure(c.self), figure(c.os_time), if_exact(p, c.waited), figure(o.total),
                 figure(o.os_time_total), if_exact(p, o.waited_total), base + o.first_child, o.children);
        if (!new_of_old.empty()) new_of_old[o.original] = base + i;
      }
      for (const LeafCount& c : threads[t].leaves)
        leaves.push_back({new_of_old[c.context], order.new_of_old[c.block], c.samples});
      base += static_cast<uint32_t>(ordered.size());
    }
  }
  std::ranges::sort(leaves, {}, [](const LeafCount& c) { return uint64_t{c.context} << 32 | c.block; });
  Rows rows = tables.rows(form + "leaf_count");
  for (const LeafCount& c : leaves) rows.add(c.context, c.block, c.samples);
}

void add_form(Tables& tables, const Profile& p, std::span<const Thread> threads, const std::string& form,
              const BlockOrder& order) {
  add_function_counts(tables, p, threads, form);
  add_call_counts(tables, p, threads, form);
  add_contexts(tables, p, threads, form, order);
}

// With inlined functions, and folded; one of them, where they are the same.
void add_both_forms(Tables& tables, const Profile& p, const Unfolder& unfolder, const BlockOrder& order) {
  if (!unfolder.is_needed()) return add_form(tables, p, p.threads, "", order);
  std::vector<Thread> unfolded;
  for (const Thread& t : p.threads) unfolded.push_back(unfolder.unfold(t));
  add_form(tables, p, unfolded, "", order);
  add_form(tables, p, p.threads, "folded_", order);
}

void add_sources(Tables& tables, const Profile& p, Strings& strings) {
  std::vector<std::pair<uint32_t, const SourceFile*>> sources;
  for (const SourceFile& source : p.sources) sources.emplace_back(strings.number(source.path), &source);
  std::ranges::sort(sources);
  Rows rows = tables.rows("source");
  for (auto& [file, source] : sources) rows.add(file, source->size, source->hash);
}

void add_strings(Tables& tables, const Strings& strings) {
  Rows rows = tables.rows("string");
  for (size_t i = 0; i < strings.all().size(); i++) rows.add(i, strings.all()[i]);
}

}  // namespace

void fill(Tables& tables, const Profile& p) {
  Strings strings;
  BlockOrder order = order_blocks(p);
  Unfolder unfolder(p);
  add_run(tables, p.run);
  if (p.run.sampling) add_sampling(tables, *p.run.sampling);
  add_images(tables, p);
  add_functions(tables, p, order, strings);
  add_blocks(tables, p, order);
  add_lines(tables, p, order, strings);
  add_sites(tables, p, unfolder, strings);
  add_scopes(tables, p);
  add_sources(tables, p, strings);
  add_processes(tables, p);
  add_both_forms(tables, p, unfolder, order);
  add_block_counts(tables, p, order);
  add_os_counts(tables, p);
  add_strings(tables, strings);
}

}  // namespace weir::store
