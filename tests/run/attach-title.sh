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
# A program is called what it was started as, whatever its file is (redis-server is a link to redis-check-rdb), and a script by its own name.
is_named() {  # is_named FILE COMMAND...
  start "${@:2}"
  rm -rf "$T/here"; mkdir "$T/here"
  (cd "$T/here" && "$WEIR" profile -q --pid $P --seconds 0.1) || fail "not attached to ${*:2}"
  finish
  [[ $(ls "$T/here") == "$1" ]] || fail "${*:2}: $(ls "$T/here"), not $1"
}
sed 's/"titled /"server-of-a-long-name /' "$T/titled.c" >"$T/checker.c"; build "$T/checker.c" "$T/checker"
ln -s checker "$T/server-of-a-long-name"
is_named server-of-a-long-name.weir "$T/server-of-a-long-name" one two three four five six
compile plain.c <<'C'
#include <stdio.h>
int main() { char line[10]; puts("ready"), fflush(stdout); while (fgets(line, sizeof line, stdin)) continue; }
C
ln -s plain "$T/reader"
is_named plain.weir "$T/plain"
is_named reader.weir "$T/reader"
printf '#!/bin/sh\necho ready; read line\n:\n' >"$T/tool.sh"; chmod +x "$T/tool.sh"
is_named tool.sh.weir "$T/tool.sh"
