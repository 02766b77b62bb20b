# spec 1, S2: the disassembly of a function without source: every instruction at its place, as objdump has them, with its count and whether
# it ran.
. "$(dirname "$0")/lib.sh"
need sqlite3 jq objdump strip
compile bare.c -O1 -rdynamic <<'C'
#include "posix.h"
__attribute__((noinline)) long work(long n) {
  long x = 1;
  for (long i = 0; i < n; i++) x = x * 1000003 + i;
  if (x == 42) write(1, "never\n", 6);
  return x;
}
int main() { return work(1000) + work(500) == 7; }
C
strip "$T/bare"
profile "$T/bare"
report asm work --format json >"$T/json"
jq -r '.rows[].offset' "$T/json" >"$T/shown"
read -r begin size < <(ask "SELECT offset, size FROM function f JOIN string n ON n.id = f.name WHERE n.text = 'work'" | tr '|' ' ')
objdump -d --start-address="$begin" --stop-address=$((begin + size)) "$T/bare" | sed -nE 's/^ +([0-9a-f]+):\t.*\t[a-z].*/0x\1/p' >"$T/all"
while read -r offset; do echo $((offset)); done <"$T/all" >"$T/expected"
[[ -s $T/shown ]] && diff "$T/expected" "$T/shown" || fail 'not the instructions that objdump shows'
marks() { jq -r "[.rows[] | select(.text | test(\"$1\")) | \"\(.mark) \(.count)\"] | unique | join(\", \")" "$T/json"; }
[[ $(marks imul) == '| 1500' ]] || fail "the loop: $(marks imul)"
[[ $(marks '^ret') == '| 2' ]] || fail "the end: $(marks '^ret')"
[[ $(marks '^call') == '# 0' ]] || fail "what never ran: $(marks '^call')"
[[ $(jq '[.rows[].self // 0] | add' "$T/json") == $(jq .self "$T/json") ]] || fail 'the self times of the rows are not that of the function'
report asm work >"$T/text"
grep -Eq ' 1,500 +\|.* imul ' "$T/text" || fail "the text: $(cat "$T/text")"
