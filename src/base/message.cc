// Weir's own words: to stderr, or to the file of --log-file.
#include <fcntl.h>
#include <signal.h>
#include <time.h>

#include "base/fd.h"
#include "base/result.h"

namespace weir {
namespace {
int destination = 2;
}  // namespace

Result<> log_to(const std::string& path) {
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  if (!file) return fail_errno("--log-file {}: cannot be written", path);
  constexpr int behind_standard_streams = 3;  // one of those may be closed
  destination = fcntl(file.get(), F_DUPFD_CLOEXEC, behind_standard_streams);
  return {};
}

// A reader that has gone away must not end Weir: the program's exit status is still to be returned. Signals keep their actions, as the
// program inherits them.
void put_message(std::string_view line) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigprocmask(SIG_BLOCK, &pipe, &before);
  timespec at_once{};
  if (write(destination, line.data(), line.size()) < 0 && errno == EPIPE && !sigismember(&before, SIGPIPE))
    sigtimedwait(&pipe, nullptr, &at_once);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace weir
