// A server for long runs. Every connection gets a thread of its own, and asks for one thing:
//   work     computes
//   threads  creates eight threads that end at once
//   fork     a child computes, and tells the result by its exit status
//   spawn    the same of another program
//   load     opens the library next to the program, calls it, closes it
//   jit      maps room for code, writes some, calls it and unmaps it, in four ways; each time it is other code
// The answer is a number, which the client knows.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static const char *library;
static unsigned serial;

__attribute__((noinline)) static unsigned mix(unsigned x, int n) {
  for (int i = 0; i < n; i++) x = (x ^ x >> 15) * 0x2c1b3c6d + i;
  return x;
}
static void *brief(void *p) { return (void *)(long)mix((unsigned)(long)p, 100); }
static unsigned threads(void) {
  pthread_t t[8];
  unsigned sum = 0;
  for (long i = 0; i < 8; i++) if (pthread_create(&t[i], 0, brief, (void *)i)) abort();
  for (int i = 0; i < 8; i++) { void *r; pthread_join(t[i], &r); sum += (unsigned)(long)r; }
  return sum;
}
static unsigned status_of(pid_t child) {
  int status;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) abort();
  return WEXITSTATUS(status);
}
static unsigned forked(void) {
  pid_t child = fork();
  if (child == 0) _exit(mix(5, 1000) & 63);
  return status_of(child);
}
static unsigned spawned(void) {
  pid_t child;
  char *argv[] = {"sh", "-c", "exit 9", 0};
  if (posix_spawn(&child, "/bin/sh", 0, 0, argv, environ)) abort();
  return status_of(child);
}
static unsigned loaded(void) {
  void *handle = dlopen(library, RTLD_NOW);
  if (!handle) abort();
  unsigned result = ((unsigned (*)(unsigned))dlsym(handle, "answer"))(1);
  dlclose(handle);
  return result;
}
static void write_code(char *at, unsigned value) { at[0] = 0xb8, memcpy(at + 1, &value, 4), at[5] = 0xc3; }  // mov eax, value; ret
static unsigned call(char *at) { return ((unsigned (*)(void))at)(); }
static unsigned jit(void) {
  unsigned value = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED), wrong = 0;
  char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 4; i++) write_code(p, value + i), wrong += call(p) != value + i;
  munmap(p, 4096);
  p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 4; i++) {
    mprotect(p, 4096, PROT_READ | PROT_WRITE);
    write_code(p + 64 * i, value + i);
    mprotect(p, 4096, PROT_READ | PROT_EXEC);
    wrong += call(p + 64 * i) != value + i;
  }
  wrong += call(p) != value;
  munmap(p, 4096);
  int fd = memfd_create("code", 0);
  if (ftruncate(fd, 4096)) abort();
  p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char *x = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  for (int i = 0; i < 4; i++) write_code(p, value + i), wrong += call(x) != value + i;
  munmap(p, 4096), munmap(x, 4096), close(fd);
  return wrong;
}
static void *serve(void *p) {
  int fd = (int)(long)p;
  char what[16] = {0};
  if (read(fd, what, sizeof what - 1) > 0) {
    unsigned answer = !strcmp(what, "work") ? mix(1, 100000) : !strcmp(what, "threads") ? threads() : !strcmp(what, "fork") ? forked()
                      : !strcmp(what, "spawn") ? spawned() : !strcmp(what, "load") ? loaded() : !strcmp(what, "jit") ? jit() : ~0u;
    dprintf(fd, "%u\n", answer);
  }
  close(fd);
  return 0;
}
int main(int argc, char **argv) {
  library = argv[1];
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof here;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, (void *)&here, size) || listen(listener, 64) || getsockname(listener, (void *)&here, &size)) return 1;
  printf("%d\n", ntohs(here.sin_port)), fflush(stdout);
  for (;;) {
    int fd = accept4(listener, 0, 0, SOCK_CLOEXEC);
    pthread_t t;
    pthread_attr_t detached;
    pthread_attr_init(&detached), pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (fd < 0 || pthread_create(&t, &detached, serve, (void *)(long)fd)) return 2;
  }
}
