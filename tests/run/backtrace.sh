# Backtrace(), its symbols, and __builtin_return_address are as native; stack walks by frame pointer too.
. "$(dirname "$0")/lib.sh"
compile trace.c -rdynamic -fno-omit-frame-pointer -fno-optimize-sibling-calls -O1 <<'C'
#include "posix.h"
#include <execinfo.h>
#include <unwind.h>
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *count) { Dl_info info; printf(" %s", dladdr((void *)(_Unwind_GetIP(context) - 1), &info) && info.dli_sname ? info.dli_sname : "?"); ++*(int *)count; return _URC_NO_REASON; }
__attribute__((noipa)) void report(const char *what) {
  void *frames[50]; int n = backtrace(frames, 50), steps = 0; Dl_info info;
  printf("%s: %d frames:", what, n);
  for (int i = 0; i < n; i++) printf(" %s", dladdr(frames[i] - 1, &info) && info.dli_sname ? info.dli_sname : "?");
  printf("\nunwound:"), _Unwind_Backtrace(step, &steps), printf(" %d\n", steps);
}
__attribute__((noipa)) void by_frame_pointer(void) {
  void **fp = __builtin_frame_address(0); Dl_info info;
  for (int i = 0; i < 7; i++, fp = *fp) printf(" %s", dladdr(fp[1], &info) && info.dli_sname ? info.dli_sname : "?");
  printf("\n");
}
__attribute__((noipa)) void leaf(char *from, char *to) {
  char *address = __builtin_return_address(0), *above = __builtin_return_address(1);
  CHECK(address > from && address < to && above);
  CHECK(((unsigned char *)address)[-5] == 0xe8 && address + *(int *)(address - 4) == (char *)leaf);   // behind a call of this function
}
__attribute__((noipa)) void recursive(int n) { if (n) recursive(n - 1); else report("recursive"), by_frame_pointer(); asm volatile(""); }
__attribute__((noipa)) void caller(void) { leaf((char *)caller, (char *)caller + 200); recursive(5); asm volatile(""); }
void handler(int number, siginfo_t *info, void *context) { report("handler"); }
int compare(const void *a, const void *b) { static int once; if (!once++) report("qsort"); return 0; }
int main() {
  for (int i = 0; i < 3; i++) caller();
  on_signal(SIGUSR1, handler, 0), raise(SIGUSR1);
  int numbers[2] = {}; qsort(numbers, 2, sizeof *numbers, compare);
  void (*volatile pointer)(const char *) = report; pointer("pointer");
}
C
same "$T/trace"
