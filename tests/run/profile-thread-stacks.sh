# Code written at run time goes to a stack above that of its thread, which ends all frames but the first: it has its own time, not the function that the
# thread began in.
. "$(dirname "$0")/lib.sh"
compile stacks.c -pthread <<'C'
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char *room;
static void finish(void) { _exit(0); }
static void *thread(void *code) { ((void (*)(char *, void *))code)(room + (3 << 20), finish); return NULL; }
int main() {
  // mov %rdi, %rsp ; mov $1000, %ecx ; lea 1f, %rax ; jmp *%rax ; 1: dec %ecx ; jnz 1b ; call *%rsi
  static const char bytes[] = "\x48\x89\xfc\xb9\xe8\x03\0\0\x48\x8d\x05\x02\0\0\0\xff\xe0\xff\xc9\x75\xfc\xff\xd6";
  char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, bytes, sizeof bytes);
  room = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes), pthread_attr_setstack(&attributes, room, 1 << 20);
  pthread_t id;
  pthread_create(&id, &attributes, thread, code);
  pthread_join(id, NULL);
}
C
same "$T/stacks"
profile "$T/stacks"
