# Thread-local storage: initial-exec, of libraries, of libraries loaded later, with constructors.
. "$(dirname "$0")/lib.sh"
library later.c <<'C'
static __thread long counter = 100; __thread char big[5000];
long later(long n) { big[n % 5000] = n; counter += n; return counter + big[n % 5000]; }
C
library linked.cc -ftls-model=global-dynamic <<'C'
#include <cstdio>
struct Loud { long n = 7; ~Loud() {} }; thread_local Loud loud; __thread long shared_tls __attribute__((visibility("default"))) = 3;
extern "C" long linked(long n) { return loud.n += n * shared_tls++; }
C
compile tls.c -pthread -L"$T" -llinked -Wl,-rpath,"$T" <<'C'
#include "posix.h"
static __thread long local = 5, zero; extern __thread long shared_tls; long linked(long); static long (*later)(long); static pthread_barrier_t barrier;
static void *work(void *argument) {
  long me = (long)argument, sum = 0;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 1000; i++) { local += me, zero++; sum += linked(me) + later(i % 50) + shared_tls; if (i % 300 == 0) sched_yield(); }
  return (void *)(sum + local * zero);
}
int main(int argc, char **argv) {
  pthread_t threads[20]; void *result; pthread_barrier_init(&barrier, NULL, 20);
  for (long i = 0; i < 20; i++) {
    pthread_create(&threads[i], NULL, work, (void *)i);
    if (i == 10) { void *library = dlopen(argv[1], RTLD_NOW); CHECK(library); later = dlsym(library, "later"); }
  }
  for (int i = 0; i < 20; i++) pthread_join(threads[i], &result), printf("%ld\n", (long)result);
}
C
same "$T/tls" "$T/liblater.so"
