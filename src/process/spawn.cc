#include "process/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "process/executable.h"

namespace weir::process {

namespace {

// What a child that could not begin leaves in the pipe.
struct Failure {
  enum Call : int { Trace, Execute } call;
  int error;
};

[[noreturn]] void begin(const std::string& file, const std::vector<std::string>& command, int errors) {
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  Failure failure{Failure::Trace, 0};
  if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0) {
    failure.call = Failure::Execute;
    execv(file.c_str(), argv.data());
  }
  failure.error = errno;
  [[maybe_unused]] ssize_t n = write(errors, &failure, sizeof failure);
  _exit(125);
}

}  // namespace

Result<Tracee> spawn(const std::vector<std::string>& command, const std::function<void()>& prepare) {
  TRY(std::string file, find_program(command[0]));
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC)) return fail_errno("pipe");
  Fd reads(pipe[0]), writes(pipe[1]);
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    prepare();
    begin(file, command, writes.get());
  }
  writes = Fd();
  Failure failure;
  bool has_failed = read(reads.get(), &failure, sizeof failure) == sizeof failure;
  int status;
  if (waitpid(pid, &status, __WALL) != pid) return fail_errno("waitpid");
  if (has_failed && failure.call == Failure::Trace)
    return fail("{}: ptrace is refused ({}); allow it, e.g. sysctl kernel.yama.ptrace_scope=0", file,
                strerror(failure.error));
  if (has_failed) return std::unexpected(exec_error(file, failure.error));
  if (!WIFSTOPPED(status)) return fail("{}: ended before it began", file);
  return Tracee(pid);
}

int shell_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

int own_end(int status) { return WIFSIGNALED(status) ? by_signal + WTERMSIG(status) : WEXITSTATUS(status); }

void end_as(int end) {
  fflush(nullptr);
  if (end < by_signal) _exit(end);
  int number = end - by_signal;
  prctl(PR_SET_DUMPABLE, 0);  // a core file of ours would be no help
  signal(number, SIG_DFL);
  sigset_t own;
  sigemptyset(&own), sigaddset(&own, number);
  sigprocmask(SIG_UNBLOCK, &own, nullptr);
  raise(number);
  _exit(128 + number);
}

}  // namespace weir::process
