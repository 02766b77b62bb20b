# A process of root's that drops its capabilities, or becomes somebody else, goes on getting code: libraries, and children that change code.
. "$(dirname "$0")/lib.sh"
[[ $EUID == 0 ]] || skip "only root has privileges to drop"
chmod 755 "$T"
library late.c <<<'int late(int x) { return 3 * x; }'
compile drop.c -ldl <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {0};
  if (argv[2][0] == 'c' ? syscall(SYS_capset, &header, none) : argv[2][0] == 'e' ? seteuid(65534) : setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) return 1;
  pid_t pid = fork();
  for (int i = 0; i < 20; i++) {
    static const unsigned char code[] = {0x8d, 0x47, 0x07, 0xc3};  // lea eax, [rdi + 7]; ret
    unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, code, sizeof code);
    p[2] = i;
    void *library = dlopen(argv[1], RTLD_NOW);
    int (*late)(int) = (int (*)(int))dlsym(library, "late");
    if (((int (*)(int))p)(100) != 100 + i || late(7) != 21) return 2;
    munmap(p, 4096);
    dlclose(library);
  }
  if (!pid) _exit(7);
  int status;
  waitpid(pid, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
}
C
for how in capabilities user effective; do same "$T/drop" "$T/liblate.so" $how; done
