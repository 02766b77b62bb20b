# A code cache that is full is flushed, again and again, under threads, signals and forks, and the program does what it does natively.
. "$(dirname "$0")/lib.sh"
python3 - >"$T/many.c" <<'P'
print('#include "posix.h"\nstatic volatile int ticks;\nstatic void tick(int s, siginfo_t *i, void *c) { ticks++; }')
for n in range(2500):
    print(f"__attribute__((noipa)) uint64_t f{n}(uint64_t x) {{ for (int i = 0; i < 3; i++) {{ if (x % {n % 7 + 2} == 0) x = mix(x, {n}); else if (x & {1 << n % 30}) x = x * {2 * n + 3} + i; else x ^= x >> {n % 13 + 1}; }} return x; }}")
print("static uint64_t (*const all[])(uint64_t) = {" + ", ".join(f"f{n}" for n in range(2500)) + "};")
print("""static void *work(void *x) { uint64_t sum = (uint64_t)x; for (int r = 0; r < 3; r++) for (int i = 0; i < 2500; i++) sum = all[(i * 7 + r) % 2500](sum); return (void *)sum; }
int main() {
  on_signal(SIGALRM, tick, SA_RESTART);
  struct itimerval often = {{0, 2000}, {0, 2000}}; if (!getenv("QUIET")) setitimer(ITIMER_REAL, &often, NULL);
  pthread_t t[3]; void *sum;
  for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, work, (void *)(long)(i + 1));
  for (int i = 0; i < 3; i++) pthread_join(t[i], &sum), printf("%lx\\n", (uint64_t)sum);
  fflush(stdout);
  for (int i = 0; i < 3; i++) if (fork() == 0) { printf("%lx\\n", (uint64_t)work((void *)9)), fflush(stdout); _exit(0); } else wait(NULL);
}""")
P
build "$T/many.c" "$T/many" -O0 -pthread
OPTIONS='--cache-mb 1' same "$T/many"
run stats "$WEIR" run --stats --cache-mb 1 -- "$T/many"
(($(sed -n 's/.*flushed \([0-9]*\) times/\1/p' "$T/stats.err") >= 3)) || fail "it was not flushed: $(<"$T/stats.err")"
# (How many signals come depends on how long it takes.)
count env QUIET=1 "$T/many"; exact=$(json 'j["images"]["'"$T"'/many"]["instructions"] // 1000000')
OPTIONS='--cache-mb 1' count env QUIET=1 "$T/many"; limited=$(json 'j["images"]["'"$T"'/many"]["instructions"] // 1000000')
[[ $exact == "$limited" ]] || fail "$limited million instructions, not $exact"
expect_fail 125 'cache-mb' "$WEIR" run --cache-mb 0 -- true
