# spec 2, V7: below a virtual root are the times that went through it, where call paths are known; else none above its own.
. "$(dirname "$0")/lib.sh"
need jq python3
compile work.c -g -Wl,-z,lazy <<'C'
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) int leaf(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
__attribute__((noipa)) int odd(int n);
__attribute__((noipa)) int even(int n) { volatile int s = n ? odd(n - 1) : leaf(1000); return s; }
__attribute__((noipa)) int odd(int n) { volatile int s = n ? even(n - 1) : 0; return s; }
__attribute__((noinline)) int little(int n) { volatile int s = leaf(n); return s; }
__attribute__((noinline)) int much(int n) { volatile int s = leaf(n) + even(8); return s; }
__attribute__((noipa)) int second(int calls);  // each calls the other, but never within itself
__attribute__((noipa)) int first(int calls) { volatile int s = calls ? second(0) : leaf(10); return s; }
__attribute__((noipa)) int second(int calls) { volatile int s = calls ? first(0) : leaf(10); return s; }
int compare(const void *a, const void *b) { volatile int s = strcmp(a, b); return s; }  // the linker's resolver within itself
int main() { char words[] = "b\0a"; qsort(words, 2, 2, compare); return (little(1000) + much(100000) + first(1) + second(1)) & 0; }
C
id() { question 'functions' | jq ".rows[] | select(.name == \"$1\").id"; }
OPTIONS=--paths=full profile "$T/work"
view "$T/run.weir"
question "graph?root=$(id little)" >"$T/little"
jq -e '.below and .functions == 2 and (.nodes[0] | .name == "little" and .root) and (.nodes[1] | .name == "leaf" and .calls == 1)
  and (.edges | length == 1)' "$T/little" >/dev/null || fail "$(<"$T/little")"
jq -e '.nodes[1].total < .nodes[0].total and .nodes[1].total == .edges[0].total' "$T/little" >/dev/null || fail "$(<"$T/little")"
question "graph?root=$(id even)" >"$T/even"
jq -e '[.nodes[] | [.name, .calls, .recursive]] | sort == [["even", 5, true], ["leaf", 1, false], ["odd", 4, true]]' "$T/even" >/dev/null || fail "$(<"$T/even")"
jq -e '(.nodes | map(.total) | max) as $most | all(.edges[], .nodes[]; .total <= $most) and $most == (.nodes[] | select(.root).total)' "$T/even" >/dev/null || fail "$(<"$T/even")"
question functions | jq -e '[.rows[] | select(.name == "first" or .name == "second" or .name == "even" or .name == "compare").recursive] | sort == [false, false, false, true]' >/dev/null || fail "recursive: $(question functions)"
question "neighbours?of=$(id leaf)&root=$(id little)" | jq -e '[.nodes[].name] | sort == ["leaf", "little"]' >/dev/null || fail "neighbours"
stop_view
# Of who called whom: leaf was called by others, too; all ways to even lead through much.
profile "$T/work"
view "$T/run.weir"
question "graph?root=$(id little)" >"$T/little"
jq -e '(.nodes[] | select(.root).total) as $most | .below and all(.nodes[], .edges[]; .total <= $most) and ([.nodes[] | [.name, .at_most]] | sort == [["leaf", true], ["little", null]])
  and .edges[0].total < $most' "$T/little" >/dev/null || fail "$(<"$T/little")"
question "graph?root=$(id much)" | jq -e '[.nodes[] | [.name, .at_most]] | sort == [["even", null], ["leaf", true], ["much", null], ["odd", null]]' >/dev/null || fail "even"
stop_view
