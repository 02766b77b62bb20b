# Arguments and an environment of a hundred kilobytes and more.
. "$(dirname "$0")/lib.sh"
compile big.c <<'C'
#include "posix.h"
extern char **environ;
int main(int argc, char **argv) {
  uint64_t sum = 0; long size = 0; int variables = 0;
  for (int i = 1; i < argc; i++) { size += strlen(argv[i]); for (char *p = argv[i]; *p; p++) sum = mix(sum, *p); }
  for (char **e = environ; *e; e++, variables++) if (strncmp(*e, "_=", 2)) for (char *p = *e; *p; p++) sum = mix(sum, *p);
  printf("%d arguments of %ld bytes, %d variables, %lx\n", argc, size, variables, sum), fflush(stdout);
  if (argv[1][0] == 'x') { argv[1][0] = 'y'; execv("/proc/self/exe", argv); }
}
C
long=$(printf '%0100000d' 7)
same "$T/big" "$long"
same "$T/big" "x$long" "$long"
same "$T/big" x $(seq 20000)
BIG=$long same "$T/big" x
for ((i = 0; i < 1000; i++)); do export "VARIABLE_$i=$(printf '%0200d' $i)"; done
same "$T/big" x
same env -i "$T/big" x
