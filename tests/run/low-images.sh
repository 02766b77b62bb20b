# Valgrind lies at 0x58000000 and maps the loader below it: the arena of what lies low is not where the program itself is.
. "$(dirname "$0")/lib.sh"
library low.c -nostdlib -Wl,-z,max-page-size=4096 <<<'int f(int x) { return x * 7; }'
compile high.c -static -no-pie -Wl,-Ttext-segment=0x58000000 <<'C'
#include <elf.h>
#include "posix.h"
static char kept[1 << 20] = "kept";
int main(int argc, char **argv) {
  int file = open(argv[1], O_RDONLY); Elf64_Ehdr head; Elf64_Phdr part;
  pread(file, &head, sizeof head, 0);
  for (int i = 0; i < head.e_phnum; i++) {
    pread(file, &part, sizeof part, head.e_phoff + i * sizeof part);
    if (part.p_type != PT_LOAD) continue;
    uint64_t at = part.p_vaddr & -4096L, size = part.p_vaddr + part.p_filesz - at;
    CHECK(mmap((char *)0x24000000 + at, size, part.p_flags & PF_X ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE | MAP_FIXED, file, part.p_offset & -4096L) != MAP_FAILED);
  }
  int (*f)(int) = (void *)(0x24000000 + strtol(argv[2], NULL, 16));
  printf("%d %s\n", f(6), kept);
}
C
same "$T/high" "$T/liblow.so" "$(nm "$T/liblow.so" | sed -n 's/ T f$//p')"
