# Mlockall of a sampled program does not make Weir's sparse memory, and is not held to the program's limit for that.
. "$(dirname "$0")/lib.sh"
compile locked.c <<'C'
#include "posix.h"
#include <linux/capability.h>
static volatile long sum;
int main() {  // (without that capability nothing can go wrong for others)
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct caps[2];
  struct rlimit some = {8 << 20, 8 << 20};
  CHECK(syscall(SYS_capget, &head, caps) == 0), caps[0].effective &= ~(1u << CAP_IPC_LOCK);
  CHECK(syscall(SYS_capset, &head, caps) == 0 && setrlimit(RLIMIT_MEMLOCK, &some) == 0);
  for (int flags = 0; flags < 10; flags++) {
    printf("%d: %d\n", flags, mlockall(flags));
    for (int i = 0; i < 1000000; i++) sum++;
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
  }
  printf("%d\n", munlockall());
}
C
sampled "$T/locked"
seen main
