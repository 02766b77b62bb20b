# Executed instructions equal those of a single-stepped native run: C++ exceptions, static-PIE.
. "$(dirname "$0")/lib.sh"
compile throws.cc -static-pie -O1 <<'C'
#include <cstdio>
#include <stdexcept>
__attribute__((noinline)) static int deep(int n) { if (n == 0) throw std::runtime_error("x"); return deep(n - 1) + 1; }
int main() { int caught = 0; for (int i = 0; i < 2; i++) try { deep(3 + i); } catch (const std::exception &) { caught++; } return caught; }
C
oracle "$T/throws"
