# spec 3, S8: a handler of the program on a small alternate stack, as large as most have it, is sampled: nothing beside that stack is overwritten.
. "$(dirname "$0")/lib.sh"
compile alternate.c <<'C'
#include "posix.h"
static volatile long n;
static void on(int number, siginfo_t *info, void *context) { for (int i = 0; i < 1000000; i++) n++; }
int main() {
  long frame = getauxval(AT_MINSIGSTKSZ), size = 2 * frame + 1400, beside = 32768;
  if (size < 8192) size = 8192;
  char *room = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(room, 0x5a, beside);
  stack_t other = {.ss_sp = room + beside, .ss_size = size};
  CHECK(sigaltstack(&other, NULL) == 0);
  on_signal(SIGUSR1, on, SA_ONSTACK);
  for (int i = 0; i < 200; i++) raise(SIGUSR1);
  long overwritten = 0;
  for (long i = 0; i < beside; i++) overwritten += room[i] != 0x5a;
  printf("%ld bytes are overwritten\n", overwritten);
}
C
RATE=5000 sampled "$T/alternate"
