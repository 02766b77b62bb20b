# Regions of a tool: what a child of fork has of them is a copy or the same, as the tool has asked, and its own children's too.
. "$(dirname "$0")/lib.sh"
use_tool marks
compile forks.c -pthread <<'C'
#include "marks.h"
static volatile uint64_t *all[MARKS_REGIONS];
static void wait_well(void) { int status; CHECK(wait(&status) > 0 && status == 0); }
static void *quiet(void *x) { for (;;) pause(); }
static int in_thread(void *x) { for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == 7), all[i][2] = 8; return 0; }
// Who is forked changes all, the parent too, and both look: shared ones have the last word, others their own.
static void family(int depth) {
  int to_child[2], to_parent[2]; char c;
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  for (int i = 0; i < MARKS_REGIONS; i++) all[i][2] = 100 + depth, all[i][1000] = depth;
  if (fork() == 0) {
    for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == 100u + depth && all[i][1000] == (uint64_t)depth), all[i][2] = 200 + depth;
    CHECK(write(to_parent[1], "x", 1) == 1 && read(to_child[0], &c, 1) == 1);
    for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == (i == MARKS_SHARED || i == MARKS_LOG_FILE ? 300u + depth : 200u + depth));
    if (depth) family(depth - 1);
    _exit(0);
  }
  CHECK(read(to_parent[0], &c, 1) == 1);
  for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == (i == MARKS_SHARED || i == MARKS_LOG_FILE ? 200u + depth : 100u + depth)), all[i][2] = 300 + depth;
  CHECK(write(to_child[1], "x", 1) == 1);
  wait_well();
  for (int i = 0; i < MARKS_REGIONS; i++) if (i != MARKS_SHARED && i != MARKS_LOG_FILE) CHECK(all[i][2] == 300u + depth);
  close(to_child[0]), close(to_child[1]), close(to_parent[0]), close(to_parent[1]);
}
int main(int argc, char **argv) {
  for (int i = 0; i < MARKS_REGIONS; i++) all[i] = region(i), CHECK(all[i][2] == 0), all[i][0] = 5;
  CHECK((uint64_t)all[MARKS_LOW] + region_size(MARKS_LOW) <= 0x80000000u);
  CHECK(region_size(MARKS_SHADOW) == 1ul << 44 && (uint64_t)all[MARKS_SHADOW] % (1 << 30) == 0);
  CHECK(all[MARKS_LOW][1] > 0 && all[MARKS_LOG_FILE][1] > 0);  // translated code counts there
  family(3);
  pthread_t t; pthread_create(&t, NULL, quiet, NULL), pthread_create(&t, NULL, quiet, NULL);
  family(1);
  // Who shares the memory shares all.
  for (int i = 0; i < MARKS_REGIONS; i++) all[i][2] = 7;
  static char stack[65536];
  CHECK(clone(in_thread, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL) > 0); wait_well();
  for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == 8);
  if (vfork() == 0) { for (int i = 0; i < MARKS_REGIONS; i++) all[i][2] = 9; _exit(0); }
  wait_well();
  for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == 9);
  // Many at once, each killed at some moment.
  for (int n = 0; n < 40; n++) { pid_t p = fork(); if (!p) { for (;;) all[n % MARKS_REGIONS][3]++, getppid(); } if (n % 3) usleep(n * 50); kill(p, SIGKILL), waitpid(p, NULL, 0); }
  // A process that changes its code parts from the others: its memory stays.
  if (fork() == 0) {
    for (int i = 0; i < MARKS_REGIONS; i++) all[i][2] = 20 + i;
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x07\0\0\0\xc3", 6); CHECK(((int (*)(void))code)() == 7); munmap(code, 4096);
    void *l = dlopen("libm.so.6", RTLD_NOW); CHECK(l); dlclose(l);
    for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][2] == 20u + i);
    _exit(0);
  }
  wait_well();
  // What is executed begins with nothing of it.
  if (argc > 1) { puts("executed"); return 0; }
  fflush(stdout);
  if (fork() == 0) { execl(argv[0], argv[0], "again", NULL); _exit(1); }
  wait_well();
  for (int i = 0; i < MARKS_REGIONS; i++) CHECK(all[i][0] == 5);
  execl(argv[0], argv[0], "again", NULL);
}
C
under "$T/forks"
[[ $(<"$T/weir.out") == executed$'\n'executed && ! -s $T/weir.err ]] || fail "$(<"$T/weir.out") $(<"$T/weir.err")"
# What Weir sees: of the shared one each process tells, the last one of a family as such; of the others each has its own.
[[ $(told 'len({r["pid"] for r in j["regions"]["3"]}) > 40') == True ]] || fail "$(<"$T/weir.json")"
[[ $(told 'sum(r["last"] for r in j["regions"]["2"])') == 3 ]] || fail "$(told '[(r["pid"], r["last"]) for r in j["regions"]["2"]]')"
[[ $(told 'all(r["last"] and r["first"] == 5 for r in j["regions"]["3"])') == True ]] || fail "$(<"$T/weir.json")"
[[ $(told 'max(r["touched"] for r in j["regions"]["3"]) <= 3 * 4096') == True ]] || fail "$(<"$T/weir.json")"
[[ $(told 'min(r["second"] for r in j["regions"]["2"]) > 0') == True ]] || fail "$(<"$T/weir.json")"
