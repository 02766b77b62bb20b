#include "report/export.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/views.h"

namespace weir::report {

Result<> write_export(const store::Reader& reader, const std::string& format, const std::string& path) {
  static constexpr std::pair<std::string_view, Result<> (*)(const store::Reader&, const Sink&)> known[] = {
      {"callgrind", export_callgrind},
      {"folded", export_folded},
      {"pprof", export_pprof},
      {"speedscope", export_speedscope},
      {"firefox", export_firefox},
      {"dot", export_dot},
      {"svg", export_svg},
      {"csv", export_csv},
      {"json", export_json},
      {"llvm", export_llvm},
      {"bolt", export_bolt}};
  for (auto& [name, write] : known)
    if (format == name) return write_output(path, [&](const Sink& sink) { return write(reader, sink); });
  return fail("no export format '{}'; there are: {}", format, fmt::join(formats, ", "));
}

Result<> write_output(const std::string& path, const Writer& write) {
  return path == "-" ? write_stdout(write) : write_file(path, getpid(), write);
}

Result<std::vector<Path>> merged_paths(const store::Reader& reader, Apart apart) {
  TRY(store::Totals totals, reader.totals());
  TRY(profile::Run run, reader.run());
  if (totals.contexts == 0 && !run.sampling)
    return fail(
        "{}: holds callers only, and paths guessed from callers would be wrong; profile again with: weir profile "
        "--paths=full -- {}",
        reader.path(), quoted_command(run.command));
  std::vector<Path> paths;
  std::vector<uint32_t> path_of(totals.contexts, store::none);  // by context
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, uint32_t> known;
  TRY_VOID(reader.contexts([&](const store::ContextRow& c) {
    if (c.id >= path_of.size()) return;
    uint32_t parent = c.parent < c.id ? path_of[c.parent] : store::none;
    uint32_t site = apart.sites ? c.site : store::none;
    uint32_t thread = apart.threads ? c.thread : 0;
    auto [it, added] = known.try_emplace({parent, c.function, site, thread}, static_cast<uint32_t>(paths.size()));
    if (added) paths.push_back({parent, c.function, site, 0, 0, 0, c.thread});
    path_of[c.id] = it->second;
    Path& path = paths[it->second];
    path.calls += c.calls;
    path.self += c.self;
    path.os_time += c.os_time;
    path.waited += c.waited;
  }));
  if (!apart.leaves) return paths;
  TRY_VOID(reader.leaves([&](const store::LeafRow& leaf) {
    uint32_t path = leaf.context < path_of.size() ? path_of[leaf.context] : store::none;
    if (path == store::none) return;  // of a thread that is not selected
    std::vector<store::LeafRow>& leaves = paths[path].leaves;
    auto known = std::ranges::find(leaves, leaf.block, &store::LeafRow::block);
    if (known == leaves.end()) leaves.push_back(leaf);
    else known->samples += leaf.samples;
  }));
  return paths;
}

Stacks::Stacks(const std::vector<Path>& paths) : paths_(paths), depths_(paths.size()), outer_(paths.size()) {
  uint64_t cut = 0;
  for (uint32_t i = 0; i < paths.size(); i++) {
    uint32_t parent = paths[i].parent;
    depths_[i] = parent == store::none ? 1 : depths_[parent] + 1;
    outer_[i] = depths_[i] <= outer ? i : outer_[parent];
    most_left_out_ = std::max(most_left_out_, left_out(i));
    cut += left_out(i) > 0;
  }
  if (cut)
    say("{} call paths are deeper than {} functions: of each the middle is left out", with_commas(cut),
        with_commas(longest));
}

std::vector<uint32_t> Stacks::of(uint32_t path) const {
  std::vector<uint32_t> stack;
  uint32_t next = path;
  if (left_out(path)) {
    for (; stack.size() < longest - outer; next = paths_[next].parent) stack.push_back(next);
    stack.push_back(store::none);
    next = outer_[path];
  }
  for (; next != store::none; next = paths_[next].parent) stack.push_back(next);
  return stack;
}

std::unordered_map<uint32_t, std::vector<uint32_t>> depth_first(const std::vector<Path>& paths) {
  std::vector<std::vector<uint32_t>> below(paths.size());
  std::vector<uint32_t> roots, stack;
  for (uint32_t i = 0; i < paths.size(); i++)
    (paths[i].parent == store::none ? roots : below[paths[i].parent]).push_back(i);
  std::unordered_map<uint32_t, std::vector<uint32_t>> order;
  for (uint32_t root : roots) {
    std::vector<uint32_t>& list = order[paths[root].thread];
    for (stack = {root}; !stack.empty();) {
      uint32_t path = stack.back();
      stack.pop_back();
      list.push_back(path);
      stack.insert(stack.end(), below[path].rbegin(), below[path].rend());
    }
  }
  return order;
}

}  // namespace weir::report
