// What the kernel tells of a process, also of one that has ended.
#include "process/memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace weir::process {

TEST(Stat, NamesWithBracketsAndBlanks) {
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NAME, "a) Z 1 (b");
    raise(SIGSTOP);
    _exit(3);
  }
  int status;
  waitpid(pid, &status, WUNTRACED);
  Stat stopped = stat_of(pid);
  EXPECT_EQ(stopped.words[StatState], "T");
  EXPECT_GT(stopped.number(StatStartTime), 0u);
  kill(pid, SIGCONT);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  Stat zombie = stat_of(pid);
  EXPECT_EQ(zombie.words[StatState], "Z");
  EXPECT_EQ(zombie.number(StatExitCode), 3u << 8);
  EXPECT_EQ(zombie.number(StatStartTime), stopped.number(StatStartTime));
  waitpid(pid, &status, 0);
  EXPECT_EQ(stat_of(pid).words[StatState], "");
}

// issue 4, 3: a process may be gone between the opening of its file and the reading. (Of a thread that has ended the file says ESRCH.)
TEST(ReadWhole, FailsWhereTheProcessIsGone) {
  EXPECT_FALSE(read_whole("/proc/self/task/1/stat"));
  EXPECT_FALSE(read_whole("/proc/self/mem"));  // (opens, and cannot be read at 0)
  EXPECT_TRUE(read_whole("/proc/self/stat"));
}

}  // namespace weir::process
