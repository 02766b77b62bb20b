// weir VERB [options] -- PROGRAM ARGS

#include <malloc.h>

#include "cli/verbs.h"
#include "process/keeper.h"
#include "process/spawn.h"

namespace weir::cli {

namespace {

constexpr const char* usage = R"(usage: weir VERB [options] [--] PROGRAM [arguments]

  weir run      run a program from the code cache, unchanged; count its instructions
  weir profile  count and cost every call, line and block of a program
  weir sample   interrupt a program at a rate, and see where it is; it runs nearly as fast as ever
  weir report   show a profile: functions, callers, source, call paths; as text, JSON or CSV
  weir view     show it in the browser: call graph, flame graph, source, and what changed since another run
  weir diff     compare two profiles; exit status 1 when code became slower than a threshold
  weir export   turn a profile into one HTML file, or a file for KCachegrind, pprof, speedscope, Firefox Profiler, Graphviz, LLVM, BOLT
  weir help     this text;  weir VERB --help tells more;  weir --version

  weir run -- ls -l
  weir run --tool=icount --json counts.json -- python3 script.py
  weir profile -- sort big.txt
  weir sample --pid 1234 --seconds 10
  weir report sort.weir detail strcoll
  weir view sort.weir
  weir export sort.weir --format pprof -o sort.pb.gz
)";

Result<int> dispatch(int argc, char** argv) {
  if (argc < 2) return fail("no verb given; see: weir help");
  std::string verb = argv[1];
  const Words words{{argv + 2, argv + argc}, {}};
  if (verb == "run") return run(words);
  if (verb == "profile") return profile(words);
  if (verb == "sample") return sample(words);
  if (verb == "report") return report(words);
  if (verb == "view") return view_profile(words);
  if (verb == "diff") return diff(words);
  if (verb == "export") return export_profile(words);
  if (verb == "help" && argc > 2) {
    char option[] = "--help";
    char* words[] = {argv[0], argv[2], option, nullptr};
    return dispatch(3, words);
  }
  if (verb == "help" || verb == "--help" || verb == "-h") {
    fputs(usage, stdout);
    return 0;
  }
  if (verb == process::Keeper::verb) return process::Keeper::keep(argc, argv);  // (not for people)
  if (verb == "--version") {
    fmt::print("weir {}\n", WEIR_VERSION);
    return 0;
  }
  return fail("{}: unknown verb; see: weir help", verb);
}

// As a shell gives them.
int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::NotFound: return 127;
    case ErrorKind::CannotRun: return 126;
    default: return 125;
  }
}

}  // namespace

}  // namespace weir::cli

int main(int argc, char** argv) {
  // Memory that was used once will be used again: giving it back to the kernel costs more than translating a function.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  auto status = weir::cli::dispatch(argc, argv);
  if (status && *status >= weir::process::by_signal) weir::process::end_as(*status);
  if (status) return *status;
  weir::say("{}", status.error().what);
  return weir::cli::status_of(status.error().kind);
}
