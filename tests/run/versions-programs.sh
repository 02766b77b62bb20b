# Threads change thousands of times between two versions of all functions, by probes in the middle of blocks and moved by Weir: real programs do the
# same, and execute the same instructions.
. "$(dirname "$0")/lib.sh"
need perl python3 bash gcc
changes=0
several() {
  changing_exactly "$@"
  (($(json 'min(j["by_version"])') > 1000)) || fail "$*: hardly anything ran in one of the versions: $(<"$T/count.json")"
  changes=$((changes + $(json 'j["gone"] + j["moved"]')))
}
several bash -c 'f() { local i s=0; for ((i = 0; i < $1; i++)); do s=$((s + i * i % 7)); done; echo $s; }; f 3000; x=$(f 100); echo "${x//2/two}"'
several perl -e 'my @a = map { $_ * 7919 % 1009 } 1..3000; my %h = map { $_ => length } @a; print join(" ", (sort { $a <=> $b } keys %h)[0..9]), "\n";
  $_ = "abc" x 500; my $n = () = /b+c?/g; print "$n\n"; eval { die "so\n" }; print $@'
several python3 -S -c 'import re
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
print(f(13), sorted({str(i): i for i in range(500)})[:5])
try: [][1]
except IndexError as e: print(e)'
cat >"$T/small.c" <<'C'
#include <string.h>
static int table[64];
int f(int n) { for (int i = 0; i < 64; i++) table[i] = table[(i * 7) % 64] + n; return table[n & 63]; }
int g(const char *s) { switch (s[0]) { case 'a': return f(1); case 'b': return f(2); case 'c': return 3; case 'd': return 4; case 'e': return 5; } return strlen(s); }
C
several "$(gcc -print-prog-name=cc1)" -quiet -O1 -fpreprocessed "$T/small.c" -o -
((changes > 5000)) || fail "only $changes changes"
