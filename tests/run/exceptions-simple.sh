# C++ exceptions, by type, with destructors on the way.
. "$(dirname "$0")/lib.sh"
compile simple.cc <<'C'
#include <cstdio>
#include <stdexcept>
#include <string>
struct Guard { int &n; ~Guard() { n++; } };
static int destroyed;
__attribute__((noinline)) static int deep(int n, int kind) {
  Guard guard{destroyed};
  if (n > 0) return deep(n - 1, kind) + 1;
  if (kind == 0) throw 42;
  if (kind == 1) throw std::runtime_error("runtime");
  if (kind == 2) throw std::string("a string");
  if (kind == 3) return std::string().at(3);
  return 0;
}
int main() {
  for (int i = 0; i < 2000; i++) {
    try { int r = deep(i % 40, i % 5); if (i < 10) printf("returned %d\n", r); }
    catch (int x) { if (i < 10) printf("int %d\n", x); }
    catch (const std::runtime_error &e) { if (i < 10) printf("runtime_error %s\n", e.what()); }
    catch (const std::exception &e) { if (i < 10) printf("exception %s\n", e.what()); }
    catch (...) { if (i < 10) printf("something\n"); }
  }
  printf("%d destroyed\n", destroyed);
}
C
same "$T/simple"
build "$T/simple.cc" "$T/simple" -static
same "$T/simple"
