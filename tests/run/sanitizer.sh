# Programs built with AddressSanitizer, whose shadow lies where the table is otherwise; and one that is caught by it.
. "$(dirname "$0")/lib.sh"
compile good.cc -fsanitize=address,undefined <<'C'
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
int main() {
  std::map<std::string, int> m;
  for (int i = 0; i < 2000; i++) m["key" + std::to_string(i % 97)] += i;
  try { m.at("none"); } catch (const std::out_of_range &) { puts("caught"); }
  printf("%d\n", m["key13"]);
}
C
same "$T/good"
compile bad.c -fsanitize=address -g0 <<'C'
#include <stdlib.h>
int main(int argc, char **argv) { char *p = malloc(10); free(p); return p[argc]; }
C
STATUS=1 same_status "$T/bad"
grep -q heap-use-after-free "$T/weir.err"
