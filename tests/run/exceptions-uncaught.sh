# An exception that nobody catches: message and status of abort; terminate handlers; noexcept.
. "$(dirname "$0")/lib.sh"
compile uncaught.cc -pthread <<'C'
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
static void quiet() noexcept { throw 1; }
struct Bad { ~Bad() noexcept(false) { throw 2; } };
int main(int, char **argv) {
  switch (argv[1][0]) {
    case 'u': throw std::runtime_error("nobody");
    case 'i': throw 3;
    case 'n': quiet();
    case 'd': try { Bad bad; throw 1; } catch (...) {} break;
    case 't': std::thread([] { throw std::logic_error("in a thread"); }).join(); break;
    case 'h': std::set_terminate([] { fprintf(stderr, "handler\n"); _Exit(9); }); throw 4;
    case 'r': throw;
  }
}
C
for way in uncaught int noexcept destructor thread rethrow; do STATUS=134 same "$T/uncaught" $way; done
STATUS=9 same "$T/uncaught" handler
