# The summary sets measured time beside what is counted: OS work and waiting in seconds and as shares, and says that counts do not tell
# the native processor time. The program's own clocks are the oracle.
. "$(dirname "$0")/lib.sh"
need jq
compile shares.c -O1 -fno-inline -pthread <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
static double now(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static double slept[4];
static void *doze(void *x) {
  double begin = now(CLOCK_MONOTONIC);
  nanosleep(&(struct timespec){0, 500000000}, 0);
  *(double *)x = now(CLOCK_MONOTONIC) - begin;
  return 0;
}
int main() {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(t + i, 0, doze, slept + i);
  double begin = now(CLOCK_MONOTONIC), waited = 0;
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  waited = now(CLOCK_MONOTONIC) - begin;
  for (int i = 0; i < 4; i++) waited += slept[i];
  while (now(CLOCK_PROCESS_CPUTIME_ID) < 1) continue;
  printf("%f %f\n", waited, waited / (waited + now(CLOCK_PROCESS_CPUTIME_ID)));
}
C
# (Beginning and end are work, too, and some of the waiting is for a processor.)
profile "$T/shares"
read -r waited share <"$T/profile.out"
report summary --format json >"$T/summary"
jq -e --argjson waited "$waited" --argjson share "$share" 'def near(a; b; part): (a - b | fabs) <= b * part;
  near(.waited_seconds; $waited; 0.15) and near(.waited_share; $share; 0.15) and .native_processor_seconds == null
  and near(.os_work_seconds; .run.os_time / .cycles_per_second; 1e-6) and near(.os_work_share; .run.os_time / .run.total; 1e-6)' "$T/summary" >/dev/null ||
  fail "waited $waited s, $share: $(jq -c 'del(.functions)' "$T/summary")"
report | grep -Eq "^  waited +[0-9.]+ s, [0-9.]+ % of threads' time, not in the total: see waits$" || fail "$(report)"
report | grep -q '^  natively  .*weir sample or perf stat' || fail "$(report)"
# What was waited is in neither figure of work, also where it is added to the total; a thread alone has no share of a time that is not known of it.
report summary --with-waits --format json | jq -e --slurpfile before "$T/summary" '.run.total > $before[0].run.total
  and .os_work_seconds == $before[0].os_work_seconds and .os_work_share == $before[0].os_work_share' >/dev/null || fail "--with-waits"
report summary --thread 1 --format json | jq -e '.waited_share == null and .waited_seconds > 0' >/dev/null || fail "--thread"
# The model of classes is no measurement, and by instructions OS calls are in no total.
OPTIONS=--os-model=classes profile "$T/shares"
report summary --format json | jq -e '.os_work_seconds == null and .os_work_share > 0' >/dev/null || fail "classes"
OPTIONS=--clock=instructions profile "$T/shares"
report summary --format json | jq -e '.os_work_seconds == null and .os_work_share == null and .waited_seconds > 2' >/dev/null || fail "instructions"
# Samples of CPU time are the native processor time.
"$WEIR" sample -q -o "$T/run.weir" -- "$T/shares" >"$T/out" || fail "sample"
report summary --format json | jq -e '(.native_processor_seconds - 1 | fabs) < 0.1 and .waited_seconds == null' >/dev/null || fail "$(report summary)"
! report | grep -q natively || fail "$(report)"
