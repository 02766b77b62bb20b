# Functions of a stripped library have the names that are known of them (docs/report.md): the IFUNC whose resolver chooses one, the exported function
# that only jumps to it, those that alone refer to it. The truth is the symbol table of the same library before it was stripped.
. "$(dirname "$0")/lib.sh"
need sqlite3 nm strip
library lib.c -Wl,-soname,lib.so <<'C'
#define HIDDEN __attribute__((noinline, noclone, visibility("hidden")))
#define ALONE __attribute__((noinline, noclone))
int sink;
ALONE static int fast(int x) { asm volatile(""); return x * 3; }
ALONE static int slow(int x) { asm volatile("nop"); return x * 3; }
static int (*choose(void))(int) { return __builtin_cpu_supports("sse2") ? fast : slow; }
int triple(int x) __attribute__((ifunc("choose")));
int treble(int x) __attribute__((ifunc("choose")));
static int (*choose_other(void))(int) { return __builtin_cpu_supports("sse2") ? fast : slow; }
int thrice(int x) __attribute__((ifunc("choose_other")));
HIDDEN int inner(int x) { asm volatile("nop;nop"); return x + sink; }
asm(".globl jumps\n.type jumps,@function\njumps: .cfi_startproc\nendbr64\njmp inner\n.cfi_endproc\n.size jumps,.-jumps\n");
ALONE static int helper(int x) { sink += x; return x ^ sink; }
ALONE static int deeper(int x) { sink -= x; return sink * 7; }
ALONE static int helper2(int x) { sink++; return deeper(x) + 1; }
int one(int x) { return helper(x) + helper(x + 1); }
ALONE static int shared(int x) { sink += 2 * x; return sink; }
int two(int x) { return shared(x) + helper2(x); }
int three(int x) { return shared(x) - 1; }
ALONE static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
void qsort(void *, unsigned long, unsigned long, int (*)(const void *, const void *));
void sorted(int *v, int n) { qsort(v, n, 4, compare); }
ALONE static int pointed(int x) { return sink + x; }  // a table points at it: anybody may call it
int (*table[])(int) = {pointed};
C
compile user.c -L"$T" -l:liblib.so -Wl,-rpath,"$T" <<'C'
int triple(int), thrice(int), jumps(int), one(int), two(int), three(int); void sorted(int *, int);
extern int (*table[])(int);
int main(void) {
  int v[] = {3, 1, 2}, s = 0;
  for (int i = 0; i < 10; i++) s += triple(i) + thrice(i) + jumps(i) + one(i) + two(i) + three(i) + table[0](i);
  sorted(v, 3);
  return s == 1;
}
C
mv "$T/liblib.so" "$T/whole.so"
strip -o "$T/lib.so" "$T/whole.so"
strip "$T/user"
profile "$T/user"
at() { nm "$T/whole.so" | awk -v name="$1" '$3 == name { print $1 }' | sed 's/^0*/0x/'; }
is() {  # is FUNCTION NAMED_BY NAME: the function that was called so before
  local where got; where=$(at "$1")
  got=$(ask "SELECT coalesce(f.named_by, '') || '|' || n.text FROM function f JOIN string n ON n.id = f.name JOIN image i ON i.id = f.image
             WHERE i.path LIKE '%/lib.so' AND f.offset = $((where))")
  [[ $got == "$2|$3${2:+ [lib.so+$where]}" ]] || fail "$1 is called '$got', not '$2|$3'"
}
is fast variant thrice/treble
is slow variant thrice/treble
is inner jump jumps
is helper users 'in one'
is helper2 users 'in two'
is deeper users 'in two'
is shared users 'in two/three'
is compare users 'in sorted'
is pointed '' "lib.so+$(at pointed)"
[[ $(ask "SELECT count(*) FROM function WHERE named_by = 'start'") == 1 ]] || fail 'main has no name'
[[ $(ask "SELECT n.text LIKE 'main [user+0x%]' FROM function f JOIN string n ON n.id = f.name WHERE named_by = 'start'") == 1 ]] ||
  fail "main is called otherwise: $(ask "SELECT n.text FROM function f JOIN string n ON n.id = f.name WHERE named_by = 'start'")"

# A name that several have finds what it stands for, not the resolver of that name.
report detail thrice | grep -q 'thrice/treble' || fail "detail thrice: $(report detail thrice)"
report functions --filter '^in two$' --format json | grep -q 'in two \[lib.so' || fail 'the mark in brackets is not left out by --filter'
