# Code of an ELF file in memory that the program may write to: text relocations, code that is changed, shared mappings.
. "$(dirname "$0")/lib.sh"
cat >"$T/own.S" <<'S'
.globl text, next
text: movabs $message, %rax; ret
next: mov $5, %eax; ret
.data
message: .asciz "relocated"
.section .note.GNU-stack, "", @progbits
S
build "$T/own.S" "$T/libown.so" -nostdlib -shared -Wl,-N,-z,notext,--no-warn-rwx-segments
compile user.c "$T/libown.so" <<'C'
#include "posix.h"
char *text(); int next();
typedef int Function();
int main(int argc, char **argv) {
  for (int i = 0; i < 4; i++) ((char *)next)[1]++, printf("%s %d\n", text(), next());
  for (int shared = 0; shared < 2; shared++) {
    unsigned char *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, shared ? MAP_SHARED : MAP_PRIVATE, open(argv[1], O_RDWR), 0);
    CHECK(code != MAP_FAILED);
    for (int i = 0; i < 4; i++) memcpy(code + 4096, "\xb8\0\0\0\0\xc3", 6), code[4097] = i, printf("%d\n", ((Function *)(code + 4096))());
  }
  return 0;
}
C
cp "$T/user" "$T/copy"
same "$T/user" "$T/copy"; same "$T/user" "$T/copy"
