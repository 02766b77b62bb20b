# spec 3, S7: a program that Weir comes to late, while it calls the dynamic linker, has begun: its time in the kernel is seen at once.
. "$(dirname "$0")/lib.sh"
compile late.c <<'C'
#include "posix.h"
// Weir stops, and the child goes on alone: in its own program Weir finds it inside the linker.
static char state(pid_t pid) {
  char name[40], line[400]; sprintf(name, "/proc/%d/stat", pid);
  FILE *f = fopen(name, "r"); char *found = fgets(line, sizeof line, f); fclose(f);
  return found ? strrchr(line, ')')[2] : 0;
}
static int has_weir(void) {
  static char line[5000]; int found = 0;
  FILE *f = fopen("/proc/self/maps", "r"); while (fgets(line, sizeof line, f)) found |= strstr(line, "memfd:weir") != NULL;
  return fclose(f), found;
}
int main(int argc, char **argv) {
  if (argc == 3) {
    if (argv[2][0] == '-') fexecve(-1, argv, argv);  // (a call more that must be guarded)
    pid_t weir = atoi(argv[2]); kill(weir, SIGCONT);
    do for (int i = 0; i < 100000; i++) dlsym(RTLD_DEFAULT, "fexecve"); while (!has_weir());
    int zeros = open("/dev/zero", O_RDONLY); static char room[1 << 20];
    for (long end = clock() + CLOCKS_PER_SEC / 8; clock() < end;) read(zeros, room, sizeof room);
    return 7;
  }
  char weir[20]; sprintf(weir, "%d", getppid());
  kill(getppid(), SIGSTOP); while (state(getppid()) != 'T') {}
  pid_t pid = fork(); int status;
  if (!pid) execl(argv[0], argv[0], "late", weir, NULL);
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}
C
for ((i = 0; i < 5; i++)); do
  run weir "$WEIR" sample -q -F 1000 -o "$T/run.weir" -- "$T/late"
  [[ $(<"$T/weir.status") == 7 ]] || fail "status $(<"$T/weir.status"): $(<"$T/weir.err")"
  seen=$(ask "SELECT sum(total) FROM function_total WHERE name = 'read'")
  ((${seen:-0} > 30)) || fail "$seen samples in read: $(report)"
done
