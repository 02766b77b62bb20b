# A tree of 32 C files, compiled as a kernel is: make -j2, dependency files, an archive, a link. Every file that comes out is the native one, byte for byte.
. "$(dirname "$0")/lib.sh"
need make gcc ar
tree() {  # tree DIRECTORY
  mkdir -p "$1"/{core,drivers,include}
  echo '#define MIX(a, b) (((a) ^ (b) >> 7) * 2654435761u)' >"$1/include/mix.h"
  local i where
  for i in {1..32}; do
    where=core; ((i % 2)) || where=drivers
    printf '#include "mix.h"\n#include <stdio.h>\nstatic const char *const names[] = {"a%d", "b"};\nunsigned unit%d(unsigned n) {\n  unsigned s = %d;\n  for (unsigned i = 0; i < n; i++) switch (s %% %d) { case 0: s = MIX(s, i); break; case 1: s += names[i & 1][0]; break; default: s = MIX(s + i, n) / 3; }\n  return s;\n}\n' \
      $i $i $i $((i % 7 + 3)) >"$1/$where/unit$i.c"
  done
  { echo '#include <stdio.h>'; for i in {1..32}; do echo "unsigned unit$i(unsigned);"; done
    echo 'int main() { unsigned s = 0;'; for i in {1..32}; do echo "s ^= unit$i($i);"; done; echo 'printf("%u\n", s); }'; } >"$1/main.c"
  cat >"$1/Makefile" <<'M'
objects := $(patsubst %.c,%.o,$(wildcard core/*.c drivers/*.c))
image: main.o built-in.a ; gcc -o $@ $^ && ./$@ >image.out
built-in.a: $(objects) ; rm -f $@; ar rcD $@ $(sort $^)
%.o: %.c ; @gcc -O2 -Wall -Wextra -Iinclude -MD -MF $@.d -c $< -o $@
M
}
files() { (cd "$1" && find . -type f ! -name Makefile | sort | xargs sha256sum); }
LIMIT=1500  # a hundred compilers
tree "$T/tree"
built() {  # built NAME COMMAND…: in the same directory each time
  local name=$1; shift
  rm -rf "$T/work"; cp -r "$T/tree" "$T/work"
  run "$name" "$@" make -C "$T/work" -j2 image
  [[ $(<"$T/$name.status") == 0 ]] || fail "$name: $(head -c 1000 "$T/$name.err")"
  files "$T/work" >"$T/$name.files"
}
built native
for way in 'run -q' "profile -q -o $T/make.weir"; do
  built weir "$WEIR" $way --
  diff "$T/native.files" "$T/weir.files" || fail "other files under weir $way"
done
[[ $(sqlite3 "$T/make.weir" 'SELECT count(*) >= 32 FROM process_word WHERE kind = "command" AND position = 0 AND text LIKE "%cc1"') == 1 ]] || fail 'not all compilers are in the profile'
