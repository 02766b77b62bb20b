# Posix_spawn with attributes and file actions, system and popen.
. "$(dirname "$0")/lib.sh"
compile spawn.c <<'C'
#include "posix.h"
extern char **environ;
int main() {
  posix_spawn_file_actions_t actions; posix_spawnattr_t attributes; sigset_t set; pid_t child; int status;
  posix_spawn_file_actions_init(&actions), posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 1, "written", O_WRONLY | O_CREAT, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 5);
  sigemptyset(&set), sigaddset(&set, SIGUSR1);
  posix_spawnattr_setsigmask(&attributes, &set);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  char *mask[] = {"grep", "SigBlk", "/proc/self/status", NULL}, *arguments[] = {"sh", "-c", "echo to 1; echo to 5 >&5; kill -TERM $$", NULL};
  CHECK(posix_spawnp(&child, "grep", NULL, &attributes, mask, environ) == 0);
  waitpid(child, &status, 0);
  CHECK(posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ) == 0);
  waitpid(child, &status, 0), print_status("spawned", status);
  printf("missing: %s\n", strerror(posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, environ))), fflush(stdout);
  char *cat[] = {"cat", "written", NULL};
  for (int i = 0; i < 10; i++) { CHECK(posix_spawnp(&child, "cat", NULL, NULL, cat, environ) == 0); waitpid(child, &status, 0); }
  print_status("system", system("echo by system; exit 3"));
  print_status("killed", system("kill -9 $$"));
  char line[100]; FILE *pipe = popen("echo one; echo two | tr a-z A-Z; exit 5", "r");
  while (fgets(line, sizeof line, pipe)) printf("read %s", line);
  print_status("popen", pclose(pipe));
  pipe = popen("wc -c", "w"); for (int i = 0; i < 10000; i++) fprintf(pipe, "%d\n", i);
  print_status("popen", pclose(pipe));
}
C
same "$T/spawn"
