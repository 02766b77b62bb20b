# Instructions that do not exist, are not allowed or end nowhere raise the native signal at the native address.
. "$(dirname "$0")/lib.sh"
compile undefined.c <<'C'
#include "posix.h"
static sigjmp_buf back; static char *area;
static void handler(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  printf("signal %d code %d at %lld, si_addr at it %d\n", number, info->si_code, r[REG_RIP] - (long)area, (long)info->si_addr == r[REG_RIP]);
  siglongjmp(back, 1);
}
int main() {
  static const struct { const char *name, *bytes; int size; } all[] = {
#define CODE(name, bytes) {name, bytes, sizeof bytes - 1}
    CODE("ud2", "\x0f\x0b"), CODE("ud1", "\x0f\xb9\xc0"), CODE("ud0", "\x0f\xff\xc0"), CODE("push es", "\x06"), CODE("daa", "\x27"), CODE("salc", "\xd6"), CODE("0f 04", "\x0f\x04"),
    CODE("lock nop", "\xf0\x90"), CODE("lock add", "\xf0\x01\xc0"), CODE("lea register", "\x8d\xc0"), CODE("fe /2", "\xfe\xd0"), CODE("ff /7", "\xff\xff"), CODE("into", "\xce"), CODE("jmp far", "\xea\0\0\0\0\0\0"),
    CODE("bad vex", "\xc5\xf8\xff\xc0"), CODE("bad evex", "\x62\xf1\x00\x08\xff\xc0"), CODE("int1", "\xf1"), CODE("int3", "\xcc"), CODE("cd 03", "\xcd\x03"), CODE("cd 20", "\xcd\x20"), CODE("in", "\xec"), CODE("out", "\xee"), CODE("cli", "\xfa"),
    CODE("hlt", "\xf4"), CODE("rdmsr", "\x0f\x32"), CODE("mov cr0", "\x0f\x20\xc0"), CODE("lidt", "\x0f\x01\x1c\x24"), CODE("clts", "\x0f\x06"), CODE("invd", "\x0f\x08"), CODE("swapgs", "\x0f\x01\xf8"), CODE("sysret", "\x0f\x07"), CODE("too long", "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90")};
  int signals[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE};
  for (int i = 0; i < 5; i++) on_signal(signals[i], handler, 0);
  area = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int n = sizeof all / sizeof *all;
  for (int i = 0; i < n; i++) memcpy(area + i * 64, "\xb8\x01\0\0\0", 5), memcpy(area + i * 64 + 5, all[i].bytes, all[i].size), area[i * 64 + 5 + all[i].size] = 0xc3;
  mprotect(area, 1 << 16, PROT_READ | PROT_EXEC);
  for (int i = 0; i < n; i++) { printf("%s: ", all[i].name); if (!sigsetjmp(back, 1)) { ((void (*)(void))(area + i * 64))(); printf("returned\n"); } }
}
C
same "$T/undefined"
