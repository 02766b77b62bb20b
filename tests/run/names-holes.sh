# Assembly with several FDEs in one function, and a hole between them (the C library's clone3 is so): one function, with symbols and stripped, and its
# calls are those that were made. What is called behind a trap, or behind the end of another, is a function of its own.
. "$(dirname "$0")/lib.sh"
cat >"$T/holes.S" <<'A'
	.text
	.globl holed, behind
	.type holed, @function
	.p2align 4
holed:	.cfi_startproc
	mov %edi, %eax
	and $7, %eax
	.cfi_endproc
	add %edi, %eax
	test $1, %edi
	jz 1f
	ret
1:	.cfi_startproc
	.cfi_undefined rip
	add $3, %eax
	ret
	.cfi_endproc
	.size holed, .-holed
	.type traps, @function
	.p2align 4
traps:	.cfi_startproc
	ud2
	.cfi_endproc
	.size traps, .-traps
	.type behind, @function
behind:	lea 5(%rdi), %eax
	ret
	.size behind, .-behind
	.globl trap
	.set trap, traps
	.section .note.GNU-stack,"",@progbits
A
cat >"$T/main.c" <<'C'
#include <stdio.h>
int holed(int), behind(int), trap(int);
__attribute__((noipa)) int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += holed(i) ^ behind(i); return n < 0 ? trap(s) : s; }
int main() { printf("%d\n", work(1000)); }
C
gcc -O2 -o "$T/holes" "$T/main.c" "$T/holes.S" || fail 'gcc'
profile "$T/holes"
answers "SELECT name, calls FROM function_total WHERE image = '$T/holes' AND calls >= 1000 ORDER BY 1" <<E
behind|1000
holed|1000
E
answers "SELECT name, calls FROM function_total WHERE image = '$T/holes' AND (name GLOB '*+*' OR name = 'trap') AND calls > 0" </dev/null
report functions --parts --limit 0 >"$T/parts"
grep -q 'holed' "$T/parts" || fail "$(<"$T/parts")"
# Stripped: as many functions with as many calls.
strip -o "$T/stripped" "$T/holes"
profile "$T/stripped"
answers "SELECT count(*) FROM function_total WHERE image = '$T/stripped' AND calls = 1000" <<<2
answers "SELECT count(*) FROM function_total WHERE image = '$T/stripped' AND calls > 1" <<<2

# The C library's own: each thread is made by one call, and begins in the same function.
compile threads.c -pthread <<'C'
#include "posix.h"
static void *nothing(void *p) { return p; }
int main() { for (int i = 0; i < 30; i++) { pthread_t t; CHECK(!pthread_create(&t, 0, nothing, 0) && !pthread_join(t, 0)); } puts("right"); }
C
profile "$T/threads"
answers "SELECT name FROM function_total WHERE name GLOB 'clone*+*' OR name GLOB '__clone*+*'" </dev/null
# (Where a thread begins is the middle of the call that has made it, and no call more.)
answers "SELECT name GLOB 'clone*', calls FROM function_total WHERE name IN ('clone3', 'clone') AND calls > 0" <<<'1|30'
