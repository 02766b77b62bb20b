# What got another name is the same all the same: a program, a function, a library, and a function that moved from one to the other.
. "$(dirname "$0")/lib.sh"
need jq
cat >"$T/work.c" <<'C'
#include <stdlib.h>
#include <stdio.h>
int helped(int);
__attribute__((noinline)) int slow(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
__attribute__((noinline)) int QUICK(int n) {
  volatile unsigned s = 1;
  unsigned a[64] = {0};
  for (int i = 0; i < n; i++) {
    a[i & 63] += (unsigned)i;
    s ^= a[(i * 7) & 63];
    if (s & 4) s += 3;
  }
  return (int)s;
}
int main(int argc, char** argv) { return (slow(atoi(argv[1])) + QUICK(atoi(argv[2])) + helped(100)) & 0; }
C
cat >"$T/help.c" <<'C'
__attribute__((noinline)) int helped(int n) {
  volatile unsigned s = 1;
  for (int i = 0; i < n; i++) { s = s * 1664525 + 1013904223; if (s >> 31) s ^= (unsigned)i; }
  return (int)s;
}
int other_help(int n) { volatile int s = n; return s; }
C
cd "$T"
library() { mkdir -p "$1"; gcc -O2 -w -shared -fPIC help.c "${@:3}" -o "$1/$2"; }  # library DIRECTORY NAME [flags]
linked() { gcc -O2 -w work.c "${@:3}" -o "$1" -L"$(dirname "$2")" -l:"$(basename "$2")" -Wl,-rpath,"$T/$(dirname "$2")"; }  # linked PROGRAM LIBRARY [flags]
library one libhelp.so.1.2 -Wl,-soname,libhelp.so.1.2
library two libhelp.so.1.3 -Wl,-soname,libhelp.so.1.3
linked work one/libhelp.so.1.2 -DQUICK=quick
linked another two/libhelp.so.1.3 -DQUICK=quick
linked renamed one/libhelp.so.1.2 -DQUICK=brisk
gcc -O2 -w work.c help.c -DQUICK=quick -o whole
cp work copy
for program in work copy another renamed whole; do "$WEIR" profile -q -o $program.weir -- ./$program 3000 20000; done
"$WEIR" profile -q -o half.weir -- ./copy 1500 10000
own='[.worse, .better, .new, .gone, .renamed | .[] | select(.image | test("^/lib|^/usr|vdso") | not)]'

# The same program by another name, and one that is twice as fast.
"$WEIR" diff work.weir copy.weir --threshold 1 --format json >json || fail "a copy is beyond: $(<json)"
jq -e "$own == [] and .images == [{before: \"$T/work\", now: \"$T/copy\", why: \"the same build\"}]" json >/dev/null || fail "a copy: $(<json)"
"$WEIR" diff work.weir half.weir --threshold 1 --format json >json || fail "half of the work is beyond: $(<json)"
jq -e '[.better[].name] | index("quick") != null and index("slow") != null' json >/dev/null || fail "half: $(<json)"
jq -e ".whole == \"better\" and ($own | all(.kind != \"new\" and .kind != \"gone\"))" json >/dev/null || fail "half: $(<json)"

# Another build, other names of the program and of its library.
"$WEIR" diff work.weir another.weir --format json >json
jq -e '([.images[].why] | sort) == ["another version", "the main program of both runs"]' json >/dev/null || fail "images: $(jq .images json)"
jq -e "$own == []" json >/dev/null || fail "another version: $(jq "$own" json)"

# A function by another name, and one that the library had before.
"$WEIR" diff work.weir renamed.weir --format json >json
jq -e "$own | length == 1 and .[0].kind == \"renamed\" and .[0].match == \"renamed\" and .[0].name == \"brisk\" and .[0].name_before == \"quick\"" json >/dev/null ||
  fail "renamed: $(jq "$own" json)"
"$WEIR" diff work.weir renamed.weir | grep -q 'brisk (was quick)' || fail "text does not tell of it"
"$WEIR" diff work.weir whole.weir --format json >json
jq -e '[.worse, .better, .renamed | .[] | select(.name == "helped")] | length == 1 and .[0].match == "moved" and (.[0].image_before | endswith("libhelp.so.1.2"))' json >/dev/null ||
  fail "moved: $(<json)"
"$WEIR" diff work.weir whole.weir | grep -q 'helped (was in libhelp.so.1.2)' || fail "text does not tell of it: $("$WEIR" diff work.weir whole.weir)"

# The user knows better, and a word that names nothing is told.
"$WEIR" diff work.weir renamed.weir --map quick=slow --map "work=renamed" --format json >json
jq -e '[.worse, .better, .renamed | .[] | select(.name == "slow" and .name_before == "quick")] | length == 1' json >/dev/null || fail "--map: $(<json)"
expect_fail 125 'map nothing=slow: say OLD=NEW' "$WEIR" diff "$T/work.weir" "$T/renamed.weir" --map nothing=slow
expect_fail 125 'map quick: say OLD=NEW' "$WEIR" diff "$T/work.weir" "$T/renamed.weir" --map quick

# For a comment on a change: the verdict, then what matters.
"$WEIR" diff half.weir renamed.weir --format markdown --threshold 2 >comment && fail "not beyond"
head -n 1 comment | grep -q '^\*\*beyond the threshold of 2 %: slower by [0-9.]* %: .* cycles of code\*\*$' || fail "$(<comment)"
grep -q '^| +[0-9.]* % | .* | `renamed` | `brisk (was quick)` |$' comment || fail "$(<comment)"
(($(wc -l <comment) < 60)) || fail "too long: $(<comment)"

# The page says the same.
view "$T/renamed.weir" --diff "$T/work.weir"
question changes | jq -e '[.worse, .better, .added, .removed | .[] | .name] | (index("brisk") == null and index("quick") == null)' >/dev/null || fail "page: $(question changes)"
question 'functions?filter=brisk' | jq -e '.rows[0].before.name == "quick" and .rows[0].before.self == .rows[0].self' >/dev/null || fail "page: $(question 'functions?filter=brisk')"
stop_view
