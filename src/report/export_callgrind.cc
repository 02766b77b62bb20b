// Callgrind's format (valgrind.org/docs/manual/cl-format.html), for callgrind_annotate and KCachegrind.
//
//   fn=(1) main            the function
//   0x1020 15 600 0        instruction, line, cycles, OS time: its own
//   fi=(2) square.h        from here on lines of another file: inlined code
//   fe=(1)                 and back
//   cfn=(2) A              a call …
//   calls=1 0x1040 10      … how often, and where to;
//   0x1020 15 100000 0     then what the calls cost, with all descendants
//
// Of a sampled profile the only event is Samples. How often a call was made is not known, and the format wants a number: it is that
// of the samples in it.
//
// An instruction is the first of its block: a block runs as a whole. Names are numbered at their first use.
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "report/export.h"
#include "report/views.h"

namespace weir::report {
namespace {

class Names {
 public:
  // "(3) name" at first, "(3)" from then on.
  std::string of(const std::string& key, std::string_view name) {
    auto [it, added] = numbers_.try_emplace(key, numbers_.size() + 1);
    return added ? fmt::format("({}) {}", it->second, printable(name.empty() ? "???" : name))
                 : fmt::format("({})", it->second);
  }
  std::string of(const std::string& name) { return of(name, name); }

 private:
  std::unordered_map<std::string, size_t> numbers_;
};

// The parts of a function's blocks by line, as callgrind wants them.
struct Cost {
  std::string file;
  uint32_t line;
  store::Cycles cycles;
};

class CallgrindWriter {
 public:
  CallgrindWriter(const store::Reader& reader, const Sink& sink) : reader_(reader), sink_(sink) {}

  Result<> header() {
    TRY(profile::Run run, reader_.run());
    is_sampled_ = run.sampling.has_value();
    TRY(store::Totals totals, reader_.totals());
    TRY(std::vector<store::ProcessRow> processes, reader_.processes());
    sink_(fmt::format("# callgrind format\nversion: 1\ncreator: weir {}\n", printable(run.weir_version)));
    if (!processes.empty()) sink_(fmt::format("pid: {}\n", processes.front().pid));
    sink_(fmt::format("cmd: {}\n", printable(quoted_command(run.command))));
    sink_("positions: instr line\n");
    describe_events(run);
    sink_(fmt::format("summary: {}\n", costs(totals.cycles, totals.os_time, totals.waited)));
    return {};
  }

  Result<> function(const store::FunctionRow& f) {
    sink_(fmt::format("\nob={}\nfl={}\nfn={}\n", objects_.of(f.image), files_.of(f.file), name(f)));
    std::map<uint32_t, std::vector<Cost>> parts;     // by block
    std::map<uint32_t, store::Cycles> others;        // and what is of functions that were inlined there
    std::vector<std::pair<uint64_t, Cost>> inlined;  // where the function was inlined itself
    TRY_VOID(reader_.lines(f, [&](const store::LineRow& r) {
      Cost part{r.file, r.line, r.count * r.cycles + r.extra};
      if (reader_.has_inlined() && !r.inlined.empty()) others[r.block] += part.cycles;
      else if (r.function != f.id) inlined.emplace_back(r.block_offset, part);
      else parts[r.block].push_back(part);
    }));
    std::string file = f.file;
    store::Cycles told = 0;
    auto cost = [&](uint64_t offset, const Cost& c) {
      if (c.cycles == 0) return;
      told += c.cycles;
      if (c.file != file) sink_(fmt::format("{}={}\n", c.file == f.file ? "fe" : "fi", files_.of(c.file)));
      file = c.file;
      sink_(fmt::format("{:#x} {} {}\n", offset, c.line, costs(c.cycles, 0, 0)));
    };
    TRY_VOID(reader_.blocks(f, [&](const store::BlockRow& b) {
      store::Cycles rest = b.self() - std::min(b.self(), others[b.id]);  // what no line has
      for (const Cost& part : parts[b.id]) {
        cost(b.offset, part);
        rest -= std::min(rest, part.cycles);
      }
      cost(b.offset, {f.file, 0, rest});
    }));
    for (auto& [offset, part] : inlined) cost(offset, part);
    if (file != f.file) sink_(fmt::format("fe={}\n", files_.of(f.file)));
    store::Cycles self = f.self - f.os_time;  // what no block has stands at its beginning
    store::Cycles rest = self > told ? self - told : 0;
    if (rest || f.os_time || f.waited)
      sink_(fmt::format("{:#x} {} {}\n", f.offset, f.line, costs(rest, f.os_time, f.waited)));
    return calls(f);
  }

  std::unordered_map<uint32_t, store::FunctionRow> known;  // functions by id

 private:
  // Instructions are no time, so that of OS calls is not among them; what was waited has a column of its own unless it is in that time.
  void describe_events(const profile::Run& run) {
    has_os_time_ = !run.sampling && run.clock != "instructions";
    has_waited_ = !run.sampling && !reader_.adds_waits();
    std::string events;
    auto event = [&](const char* name, const char* about) {
      sink_(fmt::format("event: {} : {}\n", name, about));
      events += std::string(" ") + name;
    };
    if (run.sampling) event("Samples", "samples");
    else if (run.clock == "instructions") event("Ir", "instructions");
    else event("Cycles", run.clock == "wall" ? "ticks of the clock" : "cycles of the CPU model");
    if (has_os_time_) event("OsTime", has_waited_ ? "cycles in OS calls" : "cycles in OS calls, and what was waited there");
    if (has_waited_) event("Waited", "cycles off the processor in OS calls");
    sink_(fmt::format("events:{}\n", events));
  }
  std::string costs(store::Cycles cycles, store::Cycles os_time, store::Cycles waited) const {
    std::string text = std::to_string(cycles);
    if (has_os_time_) text += fmt::format(" {}", os_time);
    if (has_waited_) text += fmt::format(" {}", waited);
    return text;
  }
  std::string name(const store::FunctionRow& f) { return functions_.of(std::to_string(f.id), f.name); }

  Result<> calls(const store::FunctionRow& f) {
    store::CallQuery query;
    query.caller = f.id;
    query.by_site = true;
    return reader_.calls(query, [&](const store::CallRow& c) {
      auto callee = known.find(c.callee);
      if (callee == known.end() || (is_sampled_ && !c.total)) return;
      const store::FunctionRow& to = callee->second;
      sink_(fmt::format("cob={}\ncfi={}\ncfn={}\n", objects_.of(to.image), files_.of(to.file), name(to)));
      sink_(fmt::format("calls={} {:#x} {}\n", is_sampled_ ? c.total : c.calls, to.offset, to.line));
      sink_(fmt::format("{:#x} {} {}\n", c.offset, c.file == f.file ? c.line : 0,
                        costs(c.total - c.os_time_total, c.os_time_total, c.waited_total)));
    });
  }

  const store::Reader& reader_;
  const Sink& sink_;
  bool is_sampled_ = false, has_os_time_ = false, has_waited_ = false;
  Names objects_, files_, functions_;
};

}  // namespace

Result<> export_callgrind(const store::Reader& reader, const Sink& sink) {
  CallgrindWriter writer(reader, sink);
  TRY_VOID(writer.header());
  std::vector<uint32_t> order;
  store::FunctionQuery query;
  query.order = "offset";
  query.ascending = true;
  TRY_VOID(reader.functions(query, [&](const store::FunctionRow& f) {
    writer.known[f.id] = f;
    order.push_back(f.id);
  }));
  for (uint32_t id : order) TRY_VOID(writer.function(writer.known[id]));
  return {};
}

}  // namespace weir::report
