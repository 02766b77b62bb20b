# spec 3, S7: children by vfork, posix_spawn, system and popen end as they do natively, and are in the profile.
. "$(dirname "$0")/lib.sh"
compile spawns.c <<'C'
#include "posix.h"
extern char **environ;
static volatile long sum;
static void spin(int n) { for (int i = 0; i < n; i++) sum++; }
static int ended(pid_t pid) { int status; CHECK(waitpid(pid, &status, 0) == pid); return status; }
int main(int argc, char **argv) {
  if (argc > 1) { spin(3000000); return atoi(argv[1]); }
  for (int i = 0; i < 20; i++) {
    pid_t pid;
    char *words[] = {argv[0], "9", NULL}, *none[] = {"/nonexistent", NULL};
    spin(100000);
    if (!(pid = vfork())) execv(argv[0], words), _exit(1);
    CHECK(ended(pid) == 9 << 8);
    if (!(pid = vfork())) execv("/nonexistent", words), _exit(5);
    CHECK(ended(pid) == 5 << 8);
    CHECK(posix_spawn(&pid, argv[0], NULL, NULL, words, environ) == 0 && ended(pid) == 9 << 8);
    CHECK(posix_spawn(&pid, none[0], NULL, NULL, none, environ) == ENOENT);
    CHECK(system("exit 4") == 4 << 8);
    char line[20]; FILE *f = popen("echo $((6 * 7))", "r");
    CHECK(fgets(line, sizeof line, f) && atoi(line) == 42 && pclose(f) == 0);
  }
  puts("right");
}
C
sampled "$T/spawns"
(($(ask "SELECT count(*) FROM process_word WHERE kind = 'command' AND position = 1 AND text = '9'") > 0)) ||
  fail "no child in the profile: $(ask 'SELECT * FROM process_word')"
