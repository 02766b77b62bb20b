# spec 1, A7: what a child has of its parent's calls is in every view the same, and no total exceeds the program's.
. "$(dirname "$0")/lib.sh"
need jq
compile forked.c -O1 -fno-inline -fno-optimize-sibling-calls <<'C'
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
void work(int n) { for (int i = 0; i < n; i++) sink += i; }
void child(void) { work(10000); _exit(0); }
void deep(int n) { if (n) deep(n - 1); else if (!fork()) child(); sink++; }
int main() { for (int i = 0; i < 3; i++) deep(5); while (wait(0) > 0); }
C
profile "$T/forked"
for f in main deep child work; do
  all=$(report functions --format json | jq -c ".functions[] | select(.name == \"$f\") | [.calls, .self, .total]")
  one=$(report detail $f --format json | jq -c '[.calls, .self, .total]')
  callers=$(report detail $f --format json | jq -c '[.callers[].total] | add')
  [[ $all == "$one" && $(jq '.[2]' <<<"$all") == "$callers" ]] || fail "$f: functions $all, detail $one, its callers $callers"
done
report functions --format json | jq -e '.run.total as $all | all(.functions[]; .total <= $all)' >/dev/null || fail "more than the total"
