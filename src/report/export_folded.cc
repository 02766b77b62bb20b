// Folded stacks: "main;parse;read 1234", one line a path, the outermost function first; the value is the path's own time, with
// its OS calls, and never that of what it calls; of a sampled profile it is samples. For flamegraph.pl, inferno, speedscope.
#include <algorithm>
#include <ranges>
#include <unordered_map>

#include "base/text.h"
#include "report/export.h"

namespace weir::report {

Result<> export_folded(const store::Reader& reader, const Sink& sink) {
  TRY(std::vector<Path> paths, merged_paths(reader, {}));
  std::unordered_map<uint32_t, std::string> names;
  TRY_VOID(reader.functions({}, [&](const store::FunctionRow& f) {
    std::string name = printable(f.name);
    std::ranges::replace(name, ';', ':');  // it stands between frames
    names[f.id] = std::move(name);
  }));
  auto frame = [&](const Path& path) {
    auto name = names.find(path.function);
    return name == names.end() ? "?" : name->second;
  };
  Stacks stacks(paths);
  std::string line;
  for (uint32_t i = 0; i < paths.size(); i++) {
    if (paths[i].self + paths[i].os_time == 0) continue;
    line.clear();
    for (uint32_t at : std::views::reverse(stacks.of(i)))
      line.append(at == store::none ? Stacks::gap_name(stacks.left_out(i)) : frame(paths[at])).append(";");
    line.back() = ' ';
    sink(line + std::to_string(paths[i].self + paths[i].os_time) + "\n");
  }
  return {};
}

}  // namespace weir::report
