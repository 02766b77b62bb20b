# Translations are kept of programs with several segments of code, and of images of a heap: files that are mapped to be written and
# executed. What was changed in memory runs as it is there.
. "$(dirname "$0")/lib.sh"
translated() {  # by a run of a program: functions
  (cd "$T/cwd" && "$WEIR" run --stats -- "$@" 2>&1 >/dev/null) | sed -n 's/^weir: translator: \([0-9,]*\) functions.*/\1/p' | tr -d ,
}
few() { local n; n=$(translated "$@"); [[ $n && $n -lt 150 ]] || fail "$1: $n functions were translated again"; }
mkdir -p "$T/cwd"
compile segments.c -no-pie -Wl,--section-start=.far=0x900000 <<'C'
#include "posix.h"
#define F(n) __attribute__((noinline, section(".far"))) int far##n(int x) { return x * n + 1; } __attribute__((noinline)) int near##n(int x) { return far##n(x) + n; }
#define F10(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define F100(n) F10(n##0) F10(n##1) F10(n##2) F10(n##3) F10(n##4) F10(n##5) F10(n##6) F10(n##7) F10(n##8) F10(n##9)
F100(1) F100(2)
#define C(n) sum += near##n(sum);
#define C10(n) C(n##0) C(n##1) C(n##2) C(n##3) C(n##4) C(n##5) C(n##6) C(n##7) C(n##8) C(n##9)
#define C100(n) C10(n##0) C10(n##1) C10(n##2) C10(n##3) C10(n##4) C10(n##5) C10(n##6) C10(n##7) C10(n##8) C10(n##9)
int main() { unsigned sum = 0; C100(1) C100(2) printf("%u\n", sum); return 0; }
C
same "$T/segments"
translated "$T/segments" >/dev/null
few "$T/segments"
compile heap.c <<'C'
#include "posix.h"
typedef unsigned Function(unsigned);
int main(int argc, char **argv) {
  enum { count = 400, size = 32 };
  const char code[] = "\x48\x83\xec\x08\x8d\x87\x01\0\0\0\x48\x83\xc4\x08\xc3";  // sub $8, %rsp ; lea n(%rdi), %eax ; add $8, %rsp ; ret
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  char *image = mmap((void *)0x1000000000, 64 << 10, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
  CHECK(image != MAP_FAILED);
  if (argc > 2 && !strcmp(argv[2], "make")) {
    for (int i = 0; i < count; i++) {
      char bytes[size] = {};
      memcpy(bytes, code, sizeof code), bytes[6] = i;
      CHECK(pwrite(fd, bytes, size, i * size) == size);
    }
    ftruncate(fd, 64 << 10);
  }
  unsigned sum = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < count; i++) sum = ((Function *)(image + i * size))(sum);
    printf("%u\n", sum);
    if (argc > 2) image[size * round + 6] += 5, mprotect(image + 4096 * (round + 1), 4096, PROT_READ | PROT_EXEC | (round ? PROT_WRITE : 0));
  }
  return 0;
}
C
"$T/heap" "$T/image" make >/dev/null
same "$T/heap" "$T/image"
translated "$T/heap" "$T/image" >/dev/null
few "$T/heap" "$T/image"
same "$T/heap" "$T/image" change
few "$T/heap" "$T/image" change
# Several programs of one run use the same image, each another part of it: all of that is kept.
compile parts.c <<'C'
#include "posix.h"
#define F(n) __attribute__((noinline)) static unsigned f##n(unsigned x) { return x * n + 1; }
#define F10(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
#define F100(n) F10(n##0) F10(n##1) F10(n##2) F10(n##3) F10(n##4) F10(n##5) F10(n##6) F10(n##7) F10(n##8) F10(n##9)
F100(1) F100(2) F100(3) F100(4) F100(5) F100(6)
#define C(n) f##n,
#define C10(n) C(n##0) C(n##1) C(n##2) C(n##3) C(n##4) C(n##5) C(n##6) C(n##7) C(n##8) C(n##9)
#define C100(n) C10(n##0) C10(n##1) C10(n##2) C10(n##3) C10(n##4) C10(n##5) C10(n##6) C10(n##7) C10(n##8) C10(n##9)
static unsigned (*const all[])(unsigned) = {C100(1) C100(2) C100(3) C100(4) C100(5) C100(6)};
int main(int argc, char **argv) {
  unsigned part = argc > 1 ? atoi(argv[1]) : 0, sum = 0;
  char next[] = {'1' + part, 0};
  pid_t child = part < 2 ? fork() : 1;
  if (!child) return execl(argv[0], argv[0], next, NULL);
  for (int i = 0; i < 200; i++) sum = all[part * 200 + i](sum);
  if (part < 2) waitpid(child, NULL, 0);
  printf("%u %u\n", part, sum);
  return 0;
}
C
same "$T/parts"
translated "$T/parts" >/dev/null
few "$T/parts"
