# Static, static-PIE, non-PIE and stripped programs, with and without -fcf-protection, at each -O.
. "$(dirname "$0")/lib.sh"
cat >"$T/hello.c" <<'C'
#include <stdio.h>
int main(int argc, char **argv) { printf("hello, %d arguments\n", argc - 1); fprintf(stderr, "an error\n"); return argc; }
C
for flags in '' -static -static-pie -no-pie '-s' '-static -s' '-no-pie -static' -fcf-protection=full -fcf-protection=none -O0 -O3 -Os \
             '-fno-plt -Wl,-z,now' '-Wl,-z,lazy' '-Wl,--hash-style=sysv'; do
  build "$T/hello.c" "$T/hello" $flags
  STATUS=3 same "$T/hello" one two
done
