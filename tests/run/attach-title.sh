# What a process says of its command may be any text (redis, postgres: "redis-server *:6379", and zeros behind it): the profile has the program's name.
. "$(dirname "$0")/lib.sh"
need sqlite3
compile titled.c <<'C'
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
  char* end = argv[argc - 1] + strlen(argv[argc - 1]);
  memset(argv[0], 0, end - argv[0]);
  strcpy(argv[0], "titled *:6379");
  puts("ready"), fflush(stdout);
  char line[10];
  while (fgets(line, sizeof line, stdin)) continue;
}
C
start "$T/titled" one two three four five six
mkdir "$T/here"
(cd "$T/here" && "$WEIR" profile -q --pid $P --seconds 0.1) || fail "not attached"
finish
[[ $(ls "$T/here") == titled.weir ]] || fail "$(ls "$T/here")"
[[ $(sqlite3 "$T/here/titled.weir" "SELECT text FROM run_word WHERE kind = 'command'") == 'titled *:6379' ]] || fail "its title has empty words"
