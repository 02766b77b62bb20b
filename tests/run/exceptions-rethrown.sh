# Exceptions rethrown, replaced, nested in handlers and carried by exception_ptr.
. "$(dirname "$0")/lib.sh"
compile rethrown.cc <<'C'
#include <cstdio>
#include <exception>
#include <stdexcept>
using std::runtime_error;
__attribute__((noinline)) static void thrower(int n) { throw runtime_error(n % 2 ? "odd" : "even"); }
__attribute__((noinline)) static void rethrower(int n) {
  try { thrower(n); } catch (...) { if (n % 3) throw; throw std::logic_error("replaced"); }
}
static void print(const std::exception &e, int level = 0) {
  printf("%*s%s\n", level * 2, "", e.what());
  try { std::rethrow_if_nested(e); } catch (const std::exception &inner) { print(inner, level + 1); }
}
static void nest(int depth) {
  try { if (depth) nest(depth - 1); else thrower(depth); }
  catch (...) { std::throw_with_nested(runtime_error("level " + std::to_string(depth))); }
}
int main() {
  for (int i = 0; i < 6; i++) {
    try { rethrower(i); } catch (const std::exception &e) {
      printf("caught %s, uncaught %d\n", e.what(), std::uncaught_exceptions());
      try { throw i; } catch (int x) { printf("inside: %d\n", x); }
      printf("still %s\n", e.what());
    }
  }
  try { nest(5); } catch (const std::exception &e) { print(e); }
  std::exception_ptr kept;
  try { thrower(1); } catch (...) { kept = std::current_exception(); }
  for (int i = 0; i < 3; i++)
    try { std::rethrow_exception(kept); } catch (const runtime_error &e) { printf("kept %s\n", e.what()); }
}
C
same "$T/rethrown"
