// What compilers take from exact counts.
//
// LLVM's sample profile (text, clang -fprofile-sample-use=FILE):
//
//   _Z4areai:2000:10            a function by its linkage name, the sum of its lines, how often it was entered
//    1: 10                      lines from its first one: how often they ran
//    2: 1990 _Z3maxii:40        and whom they called
//
// A line has the count of its block that ran most. Code that was inlined is told with the function that it came from, if that
// has a linkage name here: the profile is flat.
//
// BOLT's fdata without branch records (llvm-bolt -data FILE): how often every block of the program ran.
//
//   no_lbr exact
//   1 main 1f 4000              the block at offset 0x1f of main
//   1 parse/2 0 17              of the second local function of that name, see report/bolt_names.h
#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/fd.h"
#include "base/text.h"
#include "report/bolt_names.h"
#include "report/export.h"
#include "store/annotate.h"

namespace weir::report {
namespace {

// The name that a linker knows; without the version of a symbol.
std::string linker_name(const store::FunctionInfo& f) { return f.linkage_name.substr(0, f.linkage_name.find('@')); }

bool is_one_word(const std::string& name) {
  return !name.empty() && std::ranges::none_of(name, [](char c) { return c <= ' ' || c == ':'; });
}

struct Body {
  uint64_t entered = 0;
  std::map<uint32_t, uint64_t> counts;                            // by line, from the first
  std::map<uint32_t, std::map<std::string, uint64_t>> called_by;  // and by linkage name

  uint64_t total() const {
    uint64_t sum = 0;
    for (auto& [line, count] : counts) sum += count;
    return sum;
  }
};

Result<> refuse_samples(const store::Reader& reader, const char* format) {
  TRY(profile::Run run, reader.run());
  if (run.sampling) return fail("{}: --format {} needs exact counts; profile with: weir profile", reader.path(), format);
  return {};
}

// The program that was started, after its last exec; of processes that were selected, the first.
Result<const store::ProcessRow*> main_process(const store::Reader& reader,
                                              const std::vector<store::ProcessRow>& processes) {
  TRY(std::vector<store::ThreadRow> threads, reader.threads());
  const store::ProcessRow* best = nullptr;
  auto rank = [](const store::ProcessRow& p) { return std::tuple(p.parent != store::none, p.ended_by == "exec"); };
  for (const store::ProcessRow& p : processes) {
    bool is_selected = std::ranges::find(threads, p.id, &store::ThreadRow::process) != threads.end();
    if (is_selected && (!best || rank(p) < rank(*best))) best = &p;
  }
  return best;
}

// What BOLT rewrites: the image of that. Older profiles do not tell it, but the command leads there.
Result<std::string> program_of(const store::Reader& reader, const profile::Run& run) {
  TRY(std::vector<store::ProcessRow> processes, reader.processes());
  TRY(const store::ProcessRow* started, main_process(reader, processes));
  if (started && !started->program.empty()) return started->program;
  std::string command = run.command.empty() ? "" : run.command[0];
  std::error_code gone;
  std::string path = std::filesystem::weakly_canonical(std::filesystem::path(run.directory) / command, gone);
  std::string found;
  TRY_VOID(reader.images([&](uint32_t, const profile::Image& image) {
    if (image.path == path || (found.empty() && base_name(image.path) == base_name(command))) found = image.path;
  }));
  if (found.empty()) return fail("{}: does not tell which program {} is; profile it again", reader.path(), command);
  return found;
}

// None, where the program is not here any more, or is another.
Result<BoltNames> local_names(const store::Reader& reader, const std::string& program) {
  profile::Image profiled;
  TRY_VOID(reader.images([&](uint32_t, const profile::Image& image) {
    if (image.path == program) profiled = image;
  }));
  auto now = elf::Image::open(open_to_read(program), program);
  if (now && (*now)->build_id() == profiled.build_id && (*now)->bytes().size() == profiled.size) return bolt_names(**now);
  say("{}: is {}, so its local (static) functions have names that BOLT does not know", program,
      now ? "not what was profiled" : "not there any more");
  return BoltNames();
}

Result<std::vector<store::FunctionRow>> functions_of(const store::Reader& reader) {
  std::vector<store::FunctionRow> functions;
  TRY_VOID(reader.functions({}, [&](const store::FunctionRow& f) { functions.push_back(f); }));
  return functions;
}

}  // namespace

Result<> export_llvm(const store::Reader& reader, const Sink& sink) {
  TRY_VOID(refuse_samples(reader, "llvm"));
  TRY(std::vector<store::FunctionRow> functions, functions_of(reader));
  std::unordered_map<uint32_t, const store::FunctionRow*> by_id;
  for (const store::FunctionRow& f : functions) by_id[f.id] = &f;
  // A function that was inlined everywhere has a copy that never ran.
  std::map<store::SectionName, store::FunctionInfo> by_name;
  TRY_VOID(reader.all_functions([&](const store::FunctionInfo& f) {
    if (f.line && is_one_word(linker_name(f))) by_name.try_emplace({f.name, f.file}, f);
  }));
  std::map<std::string, Body> bodies;
  uint64_t told = 0, left_out = 0;  // lines
  for (const store::FunctionRow& f : functions) {
    TRY(auto sections, store::sections_of(reader, f));
    for (auto& [section, lines] : sections) {
      const store::FunctionInfo* owner = section.inlined.empty()     ? &f
                                         : by_name.contains(section) ? &by_name[section]
                                                                     : nullptr;
      if (!owner || !owner->line || owner->file != section.file || !is_one_word(linker_name(*owner))) {
        left_out += lines.size();
        continue;
      }
      Body& body = bodies[linker_name(*owner)];
      for (auto& [line, facts] : lines) {
        if (line < owner->line || facts.count() == 0) continue;
        told++;
        body.counts[line - owner->line] += facts.count();
      }
    }
  }
  for (const store::FunctionRow& f : functions)
    if (auto body = bodies.find(linker_name(f)); body != bodies.end()) body->second.entered += f.calls;
  store::CallQuery query;
  query.by_site = true;
  TRY_VOID(reader.calls(query, [&](const store::CallRow& c) {
    auto caller = by_id.find(c.caller), callee = by_id.find(c.callee);
    if (caller == by_id.end() || callee == by_id.end() || !c.line || c.file != caller->second->file) return;
    auto body = bodies.find(linker_name(*caller->second));
    if (body == bodies.end() || c.line < caller->second->line || !is_one_word(linker_name(*callee->second))) return;
    uint32_t line = c.line - caller->second->line;
    if (body->second.counts.contains(line)) body->second.called_by[line][linker_name(*callee->second)] += c.calls;
  }));
  std::vector<const std::pair<const std::string, Body>*> order;
  for (auto& entry : bodies)
    if (entry.second.total()) order.push_back(&entry);
  if (order.empty())
    return fail("{}: no lines are known, so there is nothing to tell a compiler; compile with -g and profile again",
                reader.path());
  std::ranges::stable_sort(order, std::ranges::greater(), [](auto* e) { return e->second.total(); });
  for (auto* entry : order) {
    const Body& body = entry->second;
    std::string text = fmt::format("{}:{}:{}\n", entry->first, body.total(), body.entered);
    for (auto& [line, count] : body.counts) {
      text += fmt::format(" {}: {}", line, count);
      if (auto calls = body.called_by.find(line); calls != body.called_by.end())
        for (auto& [callee, n] : calls->second) text += fmt::format(" {}:{}", callee, n);
      text += '\n';
    }
    sink(text);
  }
  if (left_out)
    say("{} lines are told; {} are of inlined code whose function has no linkage name, or of other files",
        with_commas(told), with_commas(left_out));
  return {};
}

Result<> export_bolt(const store::Reader& reader, const Sink& sink) {
  TRY_VOID(refuse_samples(reader, "bolt"));
  TRY(profile::Run run, reader.run());
  TRY(std::vector<store::FunctionRow> functions, functions_of(reader));
  TRY(std::string image, program_of(reader, run));
  TRY(BoltNames locals, local_names(reader, image));
  sink("no_lbr exact\n");
  uint64_t blocks = 0;
  for (const store::FunctionRow& f : functions) {
    std::string name = linker_name(f);
    if (f.image != image || !is_one_word(name)) continue;
    if (auto local = locals.find({f.offset, name}); local != locals.end()) name = local->second;
    std::string text;
    TRY_VOID(reader.blocks(f, [&](const store::BlockRow& b) {
      if (b.count == 0) return;
      blocks++;
      text += fmt::format("1 {} {:x} {}\n", name, b.offset - f.offset, b.count);
    }));
    sink(text);
  }
  if (blocks == 0) return fail("{}: {} has no symbols, which BOLT needs; do not strip it", reader.path(), image);
  say("{} blocks of {}: llvm-bolt {} -data FILE -o OUT", with_commas(blocks), image, quoted_command({image}));
  return {};
}

}  // namespace weir::report
