# Gcc and g++ with all their processes: objects, binaries and diagnostics as native.
. "$(dirname "$0")/lib.sh"
cat >"$T/a.cc" <<'C'
#include <algorithm>
#include <iostream>
#include <vector>
int main() { std::vector<int> v{3, 1, 2}; std::sort(v.begin(), v.end()); for (int i : v) std::cout << i << '\n'; }
C
echo 'int add(int a, int b) { return a + b; }' >"$T/b.c"
echo 'int broken( { return x; }' >"$T/c.c"
TOOLS=${TOOLS##* }
same bash -c "gcc -O2 -g -c $T/b.c -o b.o && ar crD b.a b.o && gcc -shared -fPIC -pipe -o b.so $T/b.c && sha256sum b.o b.a b.so"
same bash -c "g++ -O1 -c $T/a.cc -o a.o && g++ a.o -o a && sha256sum a.o a && ./a"
same bash -c "gcc -flto -O2 $T/b.c -x c - <<<'int add(int, int); int main() { return add(1, -1); }' -o l && ./l && gcc -S -O3 -o - $T/b.c"
STATUS=1 same gcc -c "$T/c.c" -o c.o
STATUS=1 same gcc -c "$T/missing.c"
same gcc --version
