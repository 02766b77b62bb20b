# Root attaches to a process of another user, or one that has dropped capabilities; it loads libraries and starts children under
# Weir, and goes on as it was.
. "$(dirname "$0")/lib.sh"
need setpriv
((EUID == 0)) || skip 'only root can attach to other users'
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
[[ $($user id -u) == 65534 ]] || skip 'setpriv is not permitted'
chmod 755 "$T"
compile work.c -ldl <<'C'
#include <dlfcn.h>
#include "posix.h"
static volatile long n;
__attribute__((noipa)) void spin(void) { for (long i = 0; i < 1000000; i++) n++; }
__attribute__((noipa)) double sine(int i) {
  void *library = dlopen("libm.so.6", RTLD_NOW);
  double (*f)(double) = (double (*)(double))dlsym(library, "sin");
  return f(i);
}
int main() {
  char byte;
  double sum = 0;
  int failed = 0;
  fcntl(0, F_SETFL, O_NONBLOCK);
  printf("begun\n"), fflush(stdout);
  while (read(0, &byte, 1) < 0) {
    spin(), sum += sine(1);
    int child = fork(), status = 0;
    if (!child) { if (n % 2) execl("/bin/true", "true", NULL); _exit(0); }
    failed += waitpid(child, &status, 0) != child || status;
  }
  printf("uid %d gid %d failed %d\n", getuid(), getgid(), failed);
}
C
for how in "$user" "$user --no-new-privs" 'setpriv --bounding-set -all --inh-caps -all'; do
  start $how "$T/work"
  state >"$T/before"
  "$WEIR" profile -q -o "$T/run.weir" --pid $P --seconds 2 || fail "$how: status $?"
  check_profile "$how"
  for name in spin sine sin; do
    [[ $(ask "SELECT sum(calls) > 0 FROM function_total WHERE name LIKE '%$name%'") == 1 ]] || fail "$how: $name was not called"
  done
  "$WEIR" sample -q -o "$T/run.weir" --pid $P --seconds 1 || fail "$how: sample: status $?"
  seen spin
  state >"$T/after"
  diff <(grep -v -e ' /usr' -e 'libm' "$T/before") <(grep -v -e ' /usr' -e 'libm' "$T/after") || fail "$how: it is not as it was"
  finish
  [[ $(<"$T/started.status") == 0 && $(tail -n 1 "$T/started.out") == uid*'failed 0' ]] || fail "$how: $(<"$T/started.out")"
done
# In another container the program cannot see Weir in /proc: it is sampled all the same, and a profile is refused in one line.
unshare --user --map-root-user --pid --mount-proc --fork true 2>/dev/null || exit 0
start unshare --user --map-root-user --pid --mount-proc --fork "$T/work"
outside=$P
P=$(pgrep -P "$outside" -x work)
state >"$T/before"
"$WEIR" sample -q -o "$T/run.weir" --pid "$P" --seconds 1 || fail "another container: status $?"
seen spin
expect_fail 125 'another container.*weir sample --pid' "$WEIR" profile -o "$T/x.weir" --pid "$P" --seconds 1
state >"$T/after"
diff <(grep -v -e ' /usr' -e 'libm' "$T/before") <(grep -v -e ' /usr' -e 'libm' "$T/after") || fail 'another container: it is not as it was'
P=$outside
finish
[[ $(tail -n 1 "$T/started.out") == *'failed 0' ]] || fail "$(<"$T/started.out")"
