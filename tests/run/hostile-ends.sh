# What a program can have Weir read for ever, or wait for: arguments without end, a FIFO in place of a library, a
# descriptor that nobody writes to.
. "$(dirname "$0")/lib.sh"
compile arguments.c <<'C'
#include "posix.h"
#include "endless.h"
int main() {
  CHECK(have_endless_arguments() == 0);
  if (fork() == 0) _exit(3);
  int status; wait(&status), print_status("child", status);
}
C
same_out "$T/arguments"
library plugin.c <<'C'
int answer(void) { return 42; }
C
compile fifo.c -ldl <<'C'
#include "posix.h"
#include <dlfcn.h>
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  int (*answer)(void) = dlsym(library, "answer");
  CHECK(unlink(argv[1]) == 0 && mkfifo(argv[1], 0600) == 0);
  printf("%d\n", answer());
}
C
for way in run 'run --tool=icount' 'profile -q -o run.weir'; do
  cp "$T/libplugin.so" "$T/libgone.so"
  run weir "$WEIR" $way -- "$T/fifo" "$T/libgone.so"
  [[ $(<"$T/weir.status") == 0 && $(<"$T/weir.out") == 42 ]] || fail "$way: $(<"$T/weir.status") $(<"$T/weir.err")"
  rm "$T/libgone.so"
done
# Forged requests: a library that is a pipe without a writer, mappings that end before they begin, an exec that another thread makes.
compile forged.cc -I"$HERE/../../src" <<'C'
extern "C" {
#include "posix.h"
}
#include "rt/abi.h"
using namespace weir::rt;
int main() {
  auto *tb = reinterpret_cast<ThreadBlock *>(blocks_base + 2 * block_stride);  // of the thread below: it never wants anything
  pthread_t thread;
  pthread_create(&thread, NULL, [](void *) -> void * { for (;;) pause(); }, NULL);
  while (tb->request.state != RequestState::Idle || !tb->tid) usleep(100);
  usleep(10000);
  int ends[2];
  CHECK(pipe(ends) == 0 && close(ends[1]) == 0);
  auto ask_for = [](uint64_t slot, Request kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    auto *tb = reinterpret_cast<ThreadBlock *>(blocks_base + slot * block_stride);
    uint64_t args[] = {a, b, c, d};
    memcpy(tb->request.args, args, sizeof args);
    tb->request.kind = kind;
    tb->request.calls = 0;
    __atomic_store_n(&tb->request.state, RequestState::Posted, __ATOMIC_SEQ_CST);
    auto *control = reinterpret_cast<ControlBlock *>(blocks_base);
    __atomic_fetch_or(&control->posted[0], uint64_t(1) << slot, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&control->doorbell, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &control->doorbell, 1, 1, NULL, NULL, 0);
    while (__atomic_load_n(&tb->request.state, __ATOMIC_SEQ_CST) != RequestState::Answered) usleep(50);
  };
  auto ask = [&](Request kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d) { ask_for(2, kind, a, b, c, d); };
  ask(Request::Place, ends[0], 4096, 0, 0);
  ask(Request::Mapped, 0x10000, 4096, 0, ends[0]);
  auto code = reinterpret_cast<uint64_t>(&main);
  for (uint64_t i = 0; i < 40; i++) ask(Request::Change, code + 4096, code, 0, 0);
  ask(Request::Called, 1, uint64_t(1) << 63, 0, 0);
  ask(Request::Begin, 0, 0, 0, 0);
  if (vfork() == 0) {  // the first thread waits for us, and cannot be stopped
    ask_for(1, Request::Exec, uint64_t("/bin/true"), uint64_t(-100), 0, 0), ask_for(1, Request::ExecFailed, 0, 0, 0, 0);
    _exit(0);
  }
  for (uint64_t i = 0; i < 200; i++) ask(Request::NewThread, SIGCHLD, 0, 0, 0);
  CHECK(tb->request.answer[0] && tb->request.answer[0] < 32);  // those that never came were given up
  puts("answered"), fflush(stdout), _exit(0);
}
C
for way in run 'run --tool=icount' 'profile -q -o run.weir'; do
  run weir "$WEIR" $way -- "$T/forged"
  [[ $(<"$T/weir.status") == 0 && $(<"$T/weir.out") == answered ]] || fail "$way: $(<"$T/weir.status") $(<"$T/weir.err")"
done
