# Executed instructions equal those of a single-stepped native run: a dynamic program, its loader included.
. "$(dirname "$0")/lib.sh"
compile hello.c <<'C'
#include <stdio.h>
int main() { puts("hello"); return 3; }
C
oracle "$T/hello"
