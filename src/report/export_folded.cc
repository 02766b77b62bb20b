// Folded stacks: "main;parse;read 1234", one line a path, the outermost function first; the value is the path's own time, with
// its OS calls, and never that of what it calls; of a sampled profile it is samples. For flamegraph.pl, inferno, speedscope.
#include <algorithm>
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
  std::vector<const std::string*> frames;
  std::string line;
  const std::string unknown = "?";
  for (const Path& path : paths) {
    if (path.self + path.os_time == 0) continue;
    frames.clear();
    for (const Path* p = &path;; p = &paths[p->parent]) {
      auto name = names.find(p->function);
      frames.push_back(name == names.end() ? &unknown : &name->second);
      if (p->parent == store::none) break;
    }
    line.clear();
    for (size_t i = frames.size(); i-- > 0;) line.append(*frames[i]).append(i ? ";" : " ");
    sink(line + std::to_string(path.self + path.os_time) + "\n");
  }
  return {};
}

}  // namespace weir::report
