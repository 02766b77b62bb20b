// What the kernel tells of a process, also of one that has ended.
#include "process/memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "process/executable.h"
#include "process/threads.h"
#include "process/tracee.h"

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

// Callers ask of an error what kind it is, and nothing else. (The statuses that follow: tests/run/bad-program.sh and its kin.)
TEST(FindProgram, TellsMissingOnesFromThoseThatCannotRun) {
  auto kind = [](const char* name) { return find_program(name).error().kind; };
  EXPECT_TRUE(find_program("sh"));
  EXPECT_EQ(kind("/no/such/program"), ErrorKind::NotFound);
  EXPECT_EQ(kind("no-such-program"), ErrorKind::NotFound);
  EXPECT_EQ(kind(""), ErrorKind::NotFound);
  EXPECT_EQ(kind("/etc/passwd"), ErrorKind::CannotRun);
  EXPECT_EQ(kind("/etc"), ErrorKind::CannotRun);
  EXPECT_EQ(exec_error("/etc/passwd", ENOEXEC).kind, ErrorKind::CannotRun);
  EXPECT_EQ(exec_error("/no/such/program", ENOENT).kind, ErrorKind::NotFound);
  EXPECT_EQ(exec_error("/bin/sh", ENOENT).kind, ErrorKind::NotFound);  // its interpreter is
  EXPECT_EQ(read_whole("/no/such/file").error().kind, ErrorKind::Failed);
}

// a process may be gone between the opening of its file and the reading. (Of a thread that has ended the file says ESRCH.)
TEST(ReadWhole, FailsWhereTheProcessIsGone) {
  EXPECT_FALSE(read_whole("/proc/self/task/1/stat"));
  EXPECT_FALSE(read_whole("/proc/self/mem"));  // (opens, and cannot be read at 0)
  EXPECT_TRUE(read_whole("/proc/self/stat"));
}

// stopped while it executes another program, a process makes system calls for us, and goes on.
TEST(Threads, StopInsideExecve) {
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char* again = "exec sh -c \"$0\" \"$0\"";
    execl("/bin/sh", "sh", "-c", again, again, nullptr);
    _exit(127);
  }
  int inside = 0;
  for (int i = 0; i < 300; i++) {
    usleep(static_cast<useconds_t>(i % 50 * 20));
    Threads threads(pid);
    ASSERT_TRUE(threads.stop([] { return true; }));
    inside += threads.executed();
    auto remote = RemoteSyscalls::begin(Tracee(threads.agent()), find_syscall(pid));
    ASSERT_TRUE(remote) << remote.error().what;
    auto id = remote->call("getpid", SYS_getpid);
    ASSERT_TRUE(id) << i << ": " << id.error().what;
    EXPECT_EQ(*id, static_cast<uint64_t>(pid));
  }
  EXPECT_GT(inside, 0);
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), 0);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

}  // namespace weir::process
