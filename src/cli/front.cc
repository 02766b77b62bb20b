#include "cli/front.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"

namespace weir::cli {

namespace {
volatile pid_t worker;
void forward(int sig) { kill(worker, sig); }
}  // namespace

Result<int> with_front(const std::function<Result<int>()>& work) {
  pid_t front = getpid();
  fflush(nullptr);
  pid_t pid = fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, engine::orphaned_signal());
    if (getppid() != front) raise(engine::orphaned_signal());
    return work();
  }
  worker = pid;
  struct sigaction action{};
  action.sa_handler = forward;
  action.sa_flags = SA_RESTART;
  // (The terminal sends the first two to all: once more does not matter.)
  for (int sig : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) sigaction(sig, &action, nullptr);
  for (int status;;) {
    if (waitpid(pid, &status, WUNTRACED) != pid) return fail_errno("waitpid");
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status)) return fail("the process that made the profile was ended by signal {}", WTERMSIG(status));
    if (WIFSTOPPED(status)) raise(SIGSTOP);
  }
}

}  // namespace weir::cli
