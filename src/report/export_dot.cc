// The river of time for Graphviz: thirty functions at first sight, arcs as wide as the logarithm of their time. As SVG it is laid out by
// the `dot` program; the page lays it out itself.
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmath>

#include "base/fd.h"
#include "base/text.h"
#include "report/export.h"
#include "report/river.h"

namespace weir::report {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string dot_of(const River& river, const profile::Run& run) {
  auto share = [&](store::Cycles c) { return river.whole ? static_cast<double>(c) / static_cast<double>(river.whole) : 0; };
  std::string dot = "digraph river {\n";
  dot += fmt::format("  label={};\n", quoted(fmt::format("{}: functions with at least {:.4g} % of {}",
                                                         shortened(quoted_command(run.command), 80), river.filter * 100,
                                                         with_unit(river.whole))));
  dot +=
      "  rankdir=TB; nodesep=0.2; ranksep=0.45; fontname=\"sans-serif\"; fontsize=11;\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\", fontsize=10, height=0.3, color=\"#a9b0b7\"];\n"
      "  edge [color=\"#4f93cf\", arrowsize=0.6];\n";
  for (const store::FunctionRow& f : river.functions) {
    auto heat = static_cast<int>(std::lround(255 * std::min(0.75, std::sqrt(share(f.self)))));
    dot += fmt::format("  {} [label={}, tooltip={}, fillcolor=\"#e0761b{:02x}\"];\n", f.id,
                       quoted(fmt::format("{}  {}", shortened(f.name, 40), percent(share(f.total)))),
                       quoted(fmt::format("{}: self {}, total {}, {}", shortened(f.name, 300), percent(share(f.self)),
                                          percent(share(f.total)), counted(f.calls, "call"))),
                       heat);
  }
  for (const River::Arc& a : river.arcs)
    dot += fmt::format("  {} -> {} [penwidth={:.2f}, tooltip={}{}];\n", a.caller, a.callee, arc_width(share(a.total)),
                       quoted(fmt::format("{}, {}", counted(a.calls, "call"), percent(share(a.total)))),
                       a.caller == a.callee ? ", color=\"#e0761b\"" : "");
  return dot + "}\n";
}

// What `dot -Tsvg` makes of it.
Result<std::string> svg_of(const std::string& dot) {
  Fd input(memfd_create("weir-dot", MFD_CLOEXEC)), output(memfd_create("weir-svg", MFD_CLOEXEC));
  if (!input || !output) return fail_errno("memfd_create");
  if (write(input.get(), dot.data(), dot.size()) != static_cast<ssize_t>(dot.size())) return fail_errno("dot");
  lseek(input.get(), 0, SEEK_SET);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input.get(), 0);
  posix_spawn_file_actions_adddup2(&files, output.get(), 1);
  const char* words[] = {"dot", "-Tsvg", nullptr};
  pid_t child;
  int error = posix_spawnp(&child, words[0], &files, nullptr, const_cast<char**>(words), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error) return fail("dot: {}; install graphviz, or save the picture in weir view, which needs none", strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) return fail("dot -Tsvg failed; weir export --format dot writes what it was given");
  std::string svg(static_cast<size_t>(std::max<off_t>(0, lseek(output.get(), 0, SEEK_END))), '\0');
  if (pread(output.get(), svg.data(), svg.size(), 0) != static_cast<ssize_t>(svg.size())) return fail_errno("dot");
  return svg;
}

Result<std::string> dot_of(const store::Reader& reader) {
  TRY(River river, river_of(reader));
  TRY(profile::Run run, reader.run());
  return dot_of(river, run);
}

}  // namespace

Result<> export_dot(const store::Reader& reader, const Sink& sink) {
  TRY(std::string dot, dot_of(reader));
  sink(dot);
  return {};
}

Result<> export_svg(const store::Reader& reader, const Sink& sink) {
  TRY(std::string dot, dot_of(reader));
  TRY(std::string svg, svg_of(dot));
  sink(svg);
  return {};
}

}  // namespace weir::report
