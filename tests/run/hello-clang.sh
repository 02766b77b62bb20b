# Programs of another compiler.
. "$(dirname "$0")/lib.sh"
need clang
cat >"$T/hello.c" <<'C'
#include <stdio.h>
int main(int argc, char **argv) { printf("hello, %d arguments\n", argc - 1); fprintf(stderr, "an error\n"); return argc; }
C
for flags in -O0 -O2 '-O2 -static' '-O2 -no-pie -s'; do
  clang $flags "$T/hello.c" -o "$T/hello"
  STATUS=2 same "$T/hello" one
done
