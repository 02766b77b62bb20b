# Pthread_exit (of main too), cancellation deferred and at once, cleanup handlers, detached threads, robust mutexes.
. "$(dirname "$0")/lib.sh"
compile exits.c -pthread <<'C'
#include "posix.h"
static pthread_key_t key; static volatile int ready; static pthread_mutex_t robust;
static void cleanup(void *text) { printf("cleanup %s\n", (char *)text); }
static void destroy(void *text) { printf("key %s\n", (char *)text); }
static void *leaves(void *x) { pthread_setspecific(key, "of leaves"); pthread_cleanup_push(cleanup, "in leaves"); pthread_exit((void *)5); pthread_cleanup_pop(0); }
static void *sleeps(void *x) { pthread_cleanup_push(cleanup, "in sleeps"); ready = 1; for (;;) sleep(100); pthread_cleanup_pop(0); }
static void *spins(void *x) { int old; pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old); ready = 1; for (;;) {} }
static void *protected(void *x) { int old; pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old); ready = 1; usleep(20000); pthread_setcancelstate(old, NULL); pthread_testcancel(); return (void *)1; }
static void *dies(void *x) { pthread_mutex_lock(&robust); return NULL; }
static void *waits_for_main(void *thread) { void *result; pthread_join((pthread_t)thread, &result); printf("main left with %ld\n", (long)result); return NULL; }
static void try(const char *name, void *(*body)(void *), int cancel) {
  pthread_t thread; void *result; ready = 0;
  pthread_create(&thread, NULL, body, NULL);
  if (cancel) { while (!ready) sched_yield(); pthread_cancel(thread); }
  pthread_join(thread, &result);
  printf("%s: %ld\n", name, (long)result);
}
int main() {
  pthread_key_create(&key, destroy);
  for (int i = 0; i < 20; i++) { try("leaves", leaves, 0), try("sleeps", sleeps, 1), try("spins", spins, 1); }
  try("protected", protected, 1);
  pthread_mutexattr_t attributes; pthread_mutexattr_init(&attributes), pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), pthread_mutex_init(&robust, &attributes);
  try("dies", dies, 0);
  printf("%s\n", strerrorname_np(pthread_mutex_lock(&robust)));
  pthread_t thread; pthread_create(&thread, NULL, waits_for_main, (void *)pthread_self()), pthread_detach(thread);
  pthread_exit((void *)77);
}
C
same "$T/exits"
