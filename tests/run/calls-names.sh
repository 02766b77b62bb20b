# What a name means: versions of a symbol, IFUNCs, local functions, static programs, names in debug files alone, libraries by their own names.
. "$(dirname "$0")/lib.sh"
cd "$T"

# Versions: an old program gets another function than a new one.
echo 'V1 { global: answer; local: *; }; V2 { } V1;' >"$T/map"
library versions.c -Wl,--version-script="$T/map" -Wl,-soname,libanswers.so.1 <<'C'
long old(void) { return 1; } long new(void) { return 2; }
__asm__(".symver old, answer@V1"); __asm__(".symver new, answer@@V2");
C
ln -s libversions.so "$T/libanswers.so.1"
echo 'long answer(void); int main(int c, char **v) { long s = 0; for (int i = 0; i < 5; i++) s += answer(); return s; }' >"$T/uses.c"
build "$T/uses.c" "$T/uses-new" "$T/libversions.so" -Wl,-rpath,"$T"
{ echo '__asm__(".symver answer, answer@V1");'; cat "$T/uses.c"; } >"$T/uses-old.c"
build "$T/uses-old.c" "$T/uses-old" "$T/libversions.so" -Wl,-rpath,"$T"
STATUS=10 calls "$T/uses-new" answer@V1; [[ $(number answer calls) == 0 ]] || fail "new program: V1 is called"
STATUS=10 calls "$T/uses-new" answer@V2; [[ $(number answer calls) == 5 ]] || fail "new program: V2"
STATUS=5 calls "$T/uses-old" answer@V2; [[ $(number answer calls) == 0 ]] || fail "old program: V2 is called"
STATUS=5 calls "$T/uses-old" answer@V1; [[ $(number answer calls) == 5 ]] || fail "old program: V1"
STATUS=5 calls "$T/uses-old" answer; [[ $(number answer calls) == 5 ]] || fail "any version"
STATUS=5 calls "$T/uses-old" libanswers.so.1:answer; [[ $(number answer returned) == 5 ]] || fail "by the name that the library gives itself"
STATUS=5 calls "$T/uses-old" "$T/libversions.so:answ?r"; [[ $(number answer calls) == 5 ]] || fail "by path, and a pattern"
STATUS=5 calls "$T/uses-old" libc.so.6:answer; [[ $(number answer calls) == 0 ]] || fail "of another image"

# IFUNCs: the C library's, which a program counts itself, and one of its own, in a program at any address, at a fixed one, and in a library.
cat >"$T/ifunc.c" <<'C'
#include "posix.h"
static long one(long n) { return n + 1; }
static long two(long n) { return n + 2; }
static void *choose(void) { __builtin_cpu_init(); return __builtin_cpu_supports("sse4.2") ? (void *)two : (void *)one; }
long chosen(long) __attribute__((ifunc("choose")));
int main(int argc, char **argv) {
  size_t (*volatile length)(const char *) = strlen; long sum = 0;
  for (int i = 0; i < 777; i++) sum += length(argv[i % argc]) + chosen(i);
  printf("%ld\n", sum);
}
C
build "$T/ifunc.c" "$T/ifunc"
build "$T/ifunc.c" "$T/ifunc-fixed" -no-pie
build "$T/ifunc.c" "$T/ifunc-static" -static
for program in ifunc ifunc-fixed ifunc-static; do
  OPTIONS=--trace calls "$T/$program some words" strlen chosen
  [[ $(number chosen calls) == 777 ]] || fail "$program: chosen: $(number chosen calls)"
  path="$T/$program"
  [[ $(traced "len([c for c in of('strlen') if c['result'] in (${#path}, 4, 5)]) >= 777") == True ]] || fail "$program: strlen"
  [[ $(traced "[c['result'] for c in of('chosen')] == [n + 2 for n in range(777)]") == True ]] || fail "$program: results of chosen"
done

# Names that are in no file that runs: a debug file beside it, one found by its build-id, and the compressed one inside.
cat >"$T/stripped.c" <<'C'
#include <stdio.h>
__attribute__((noinline, noipa)) static long secret(long n) { return n * 3; }
int main(void) { long s = 0; for (int i = 0; i < 33; i++) s += secret(i); printf("%ld\n", s); }
C
build "$T/stripped.c" "$T/whole" -g -Wl,--build-id
objcopy --only-keep-debug "$T/whole" "$T/whole.debug"
strip -o "$T/linked" "$T/whole"
(cd "$T" && objcopy --add-gnu-debuglink=whole.debug linked)
strip -o "$T/by-id" "$T/whole"
id=$(readelf -n "$T/whole" | sed -n 's/.*Build ID: //p')
calls "$T/by-id" secret; [[ $(number secret calls) == 0 ]] || fail "a name from nowhere"
calls "$T/linked" secret; [[ $(number secret calls) == 33 ]] || fail "a debug file beside it: $(number secret calls)"
mkdir -p "$T/debug/.build-id/${id:0:2}"
mv "$T/whole.debug" "$T/debug/.build-id/${id:0:2}/${id:2}.debug"
export WEIR_DEBUG_DIRECTORY=$T/debug
calls "$T/by-id" secret; [[ $(number secret calls) == 33 ]] || fail "a debug file by build-id: $(number secret calls)"
export -n WEIR_DEBUG_DIRECTORY
if command -v xz >/dev/null; then
  objcopy -S --keep-symbol=secret "$T/whole" "$T/mini"
  xz -c "$T/mini" >"$T/mini.xz"
  objcopy --add-section .gnu_debugdata="$T/mini.xz" "$T/by-id" "$T/compressed"
  calls "$T/compressed" secret; [[ $(number secret calls) == 33 ]] || fail ".gnu_debugdata: $(number secret calls)"
fi
