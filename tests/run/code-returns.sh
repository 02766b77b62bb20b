# Written code that calls: what a call returns to is looked at again, as it may have been rewritten meanwhile; at whatever place it stands.
. "$(dirname "$0")/lib.sh"
compile returns.c <<'C'
#include "posix.h"
typedef int Function(void (*)(), long);
static unsigned char *code;
static int calls, at;
static void change() { calls++; if (at) code[at]++; }
static Function *put(const void *bytes, int size) { memcpy(code, bytes, size); return (Function *)code; }
int main() {
  code = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(code != MAP_FAILED);
  // sub $8, %rsp ; call *%rdi ; mov $1, %eax ; add $8, %rsp ; ret
  Function *once = put("\x48\x83\xec\x08\xff\xd7\xb8\x01\0\0\0\x48\x83\xc4\x08\xc3", 16);
  at = 7;
  for (int i = 0; i < 5; i++) printf("%d\n", once(change, 0));
  // push %rbx ; push %r12 ; sub $8, %rsp ; mov %rdi, %r12 ; mov %esi, %ebx ; 1: call *%r12 ; mov $1, %eax ; dec %ebx ; jne 1b ; …
  Function *loop = put("\x53\x41\x54\x48\x83\xec\x08\x49\x89\xfc\x89\xf3\x41\xff\xd4\xb8\x01\0\0\0\xff\xcb\x75\xf4\x48\x83\xc4\x08\x41\x5c\x5b\xc3", 32);
  at = 16;
  for (int i = 1; i < 5; i++) printf("%d\n", loop(change, i));
  // The same with 300 calls, 3 + 1 to 7 bytes apart: whatever is cut out of it ends in the middle of an instruction somewhere.
  const char *pads[] = {"", "\x90", "\x66\x90", "\x0f\x1f\x00", "\x0f\x1f\x40\x00", "\x0f\x1f\x44\x00\x00", "\x66\x0f\x1f\x44\x00\x00", "\x0f\x1f\x80\x00\x00\x00\x00"};
  at = 0;
  for (int pad = 1; pad < 8; pad++) {
    unsigned char *end = code + 12;
    for (int i = 0; i < 300; i++) memcpy(end, "\x41\xff\xd4", 3), memcpy(end + 3, pads[pad], pad), end += 3 + pad;
    memcpy(end, "\xb8\x07\0\0\0\x48\x83\xc4\x08\x41\x5c\x5b\xc3", 13);
    printf("%d %d\n", loop(change, 1), calls);
  }
  return 0;
}
C
same "$T/returns"
# Code of one size with other instructions is other blocks: all tools count what a single-stepped run executes.
oracle "$T/returns"
written=$(json 'j["images"]["[anonymous]"]["instructions"]')
profile "$T/returns"
[[ $(ask "SELECT sum(c.count * b.instructions) FROM block_count c JOIN block b ON b.id = c.block JOIN function f ON f.id = b.function
  JOIN image i ON i.id = f.image WHERE i.path LIKE '[code written%'") == "$written" ]] || fail "the written code did not execute $written instructions"
