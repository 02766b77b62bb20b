// The library is loaded when it is first needed: it brings curl, TLS and some thirty other libraries with it, and those
// who have not set DEBUGINFOD_URLS should not pay for them.
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>

#include <string_view>

#include "base/result.h"

namespace weir::symbols {

namespace {

using Clock = std::chrono::steady_clock;

struct Library {
  decltype(&debuginfod_begin) begin = nullptr;
  decltype(&debuginfod_end) end = nullptr;
  decltype(&debuginfod_find_debuginfo) find_debuginfo = nullptr;
  decltype(&debuginfod_set_progressfn) set_progressfn = nullptr;
  decltype(&debuginfod_set_user_data) set_user_data = nullptr;
  decltype(&debuginfod_get_user_data) get_user_data = nullptr;
  bool complete = false;

  Library() {
    void* handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      say("no debug files from DEBUGINFOD_URLS: {}", dlerror());
      return;
    }
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    complete = find(begin, "debuginfod_begin") && find(end, "debuginfod_end") &&
               find(find_debuginfo, "debuginfod_find_debuginfo") && find(set_progressfn, "debuginfod_set_progressfn") &&
               find(set_user_data, "debuginfod_set_user_data") && find(get_user_data, "debuginfod_get_user_data");
  }
};

const Library& library() {
  static Library the_library;
  return the_library;
}

// One download, as its progress function sees it.
struct Progress {
  std::string what;
  Clock::time_point deadline;
  bool terminal = isatty(2) == 1;
  bool shown = false;

  // Called about once a second: `done` of `total` bytes, both 0 before the first. Not 0: give up.
  int report(long done, long total) {
    if (Clock::now() >= deadline) return 1;
    if (terminal) {
      std::string state = total <= 0 ? "asking the servers"
                                     : fmt::format("{:.1f} of {:.1f} MB", static_cast<double>(done) / 1e6,
                                                   static_cast<double>(total) / 1e6);
      std::string line = fmt::format("\rweir: debug file of {}: {}\033[K", what, state);
      [[maybe_unused]] ssize_t n = write(2, line.data(), line.size());
      shown = true;
    }
    return 0;
  }
  ~Progress() {
    if (!shown) return;
    [[maybe_unused]] ssize_t n = write(2, "\r\033[K", 4);
  }
};

Clock::duration spent{};

}  // namespace

std::optional<Download> download_debug_file(const std::string& build_id, const std::string& what,
                                            std::chrono::milliseconds limit) {
  const char* urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
  if (!urls || !*urls || build_id.empty() || spent >= limit || !library().complete) return std::nullopt;
  debuginfod_client* client = library().begin();
  if (!client) return std::nullopt;
  Clock::time_point started = Clock::now();
  Progress progress{.what = what, .deadline = started + (limit - spent)};
  library().set_user_data(client, &progress);
  library().set_progressfn(client, [](debuginfod_client* c, long done, long total) {
    return static_cast<Progress*>(library().get_user_data(c))->report(done, total);
  });
  char* path = nullptr;
  int fd = library().find_debuginfo(client, reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
  library().end(client);
  spent += Clock::now() - started;
  if (fd < 0) return std::nullopt;
  Download download{Fd(fd), path ? path : ""};
  free(path);
  return download;
}

}  // namespace weir::symbols
