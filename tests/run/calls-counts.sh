# Calls of functions by name, from wherever they come: each is counted as often as a breakpoint of gdb's is hit.
. "$(dirname "$0")/lib.sh"
need gdb
compile ways.c -pthread -Wl,--export-dynamic <<'C'
#include "posix.h"
#define NOINLINE __attribute__((noinline, noclone, noipa))
NOINLINE long my_leaf(long n) { return n * 3; }
NOINLINE long my_direct(long n) { return my_leaf(n) + 1; }
NOINLINE long my_tail(long n) { return my_leaf(n + 1); }                       // a jump
NOINLINE long my_recursive(long n) { if (!n) return 0; long r = my_recursive(n - 1); asm volatile("" : "+r"(r)); return r + n; }
NOINLINE static long my_hidden(long n) { return my_direct(n) ^ 5; }
long my_interposed(long n) { return my_leaf(n) - 7; }                         // through the PLT, as it is exported
long (*volatile pointers[])(long) = {my_leaf, my_direct, my_tail, my_hidden};
long my_loops(long n);  // its first instruction is where it loops back to
asm(".globl my_loops; .type my_loops, @function; my_loops: dec %rdi; jnz my_loops; mov $1, %eax; ret; .size my_loops, . - my_loops");
long my_falls(long n); long my_into(long n);  // one leads into the other
asm(".globl my_falls; .type my_falls, @function; my_falls: inc %rdi; .size my_falls, . - my_falls; .globl my_into; .type my_into, @function; my_into: lea (%rdi, %rdi), %rax; ret; .size my_into, . - my_into");
static int my_by_size(const void *a, const void *b) { return *(int *)a - *(int *)b; }
int main(void) {
  long sum = 0;
  for (long i = 0; i < 1000; i++) sum += my_leaf(i) + my_direct(i) + my_tail(i) + my_hidden(i) + my_interposed(i) + pointers[i % 4](i);
  sum += my_recursive(100) + my_loops(1000) + my_loops(1) + my_falls(1) + my_into(2);
  int numbers[500];
  for (int i = 0; i < 500; i++) numbers[i] = (i * 7919) % 500;
  qsort(numbers, 500, sizeof(int), my_by_size);
  printf("%ld %d\n", sum, numbers[17]);
}
C
counted_by_gdb "my_leaf my_direct my_tail my_recursive my_hidden my_interposed my_falls my_into my_by_size" "$T/ways"
calls_equal "my_leaf my_direct my_tail my_recursive my_hidden my_interposed my_falls my_into my_by_size" "$T/ways"
# A loop back to the first instruction is no call (but a breakpoint there is hit).
calls "$T/ways" my_loops
[[ $(number my_loops calls) == 2 && $(number my_loops returned) == 2 ]] || fail "my_loops: $(cat "$T/calls.json")"

# Inside the C library, where calls go past the linkage table; a stripped program; one that is static.
counted_by_gdb "malloc free realloc calloc" /usr/bin/sort "$T/ways.c"
calls_equal "malloc free realloc calloc" /usr/bin/sort "$T/ways.c"
build "$T/ways.c" "$T/ways-static" -static
counted_by_gdb "my_leaf my_tail my_hidden my_by_size malloc" "$T/ways-static"
calls_equal "my_leaf my_tail my_hidden my_by_size malloc" "$T/ways-static"
