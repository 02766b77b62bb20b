// turns MODE CELLS MILLISECONDS: takes turns until the time is over, alone or in threads, forked processes (`quiet`: with a seccomp filter, which
// allows all), or one program after the other; each
// counts its own in a cell of the file CELLS, which all share, so that it is known from outside how many there were when they were
// killed. (The first cell says how many cells are in use.)
#include "posix.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { room = 512, steps = 5000 };
static volatile uint64_t* cells;
static struct timespec end;

static int is_over(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec);
}

__attribute__((noipa)) void turn(void) {
  long n = steps / 2;
  __asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
}

static void* take_turns(void* some) {
  uint64_t cell = __atomic_fetch_add(&cells[0], 1, __ATOMIC_SEQ_CST) + 1, most = (uint64_t)some;
  if (cell >= room) return NULL;
  for (uint64_t i = 0; i < most && (i % 64 || !is_over()); i++) turn(), cells[cell]++;
  return NULL;
}

int main(int argc, char** argv) {
  int fd = open(argv[2], O_RDWR);
  CHECK(argc > 3 && fd >= 0);
  cells = mmap(NULL, room * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(cells != MAP_FAILED);
  uint64_t ns = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;  // when to end, where an earlier program has told
  if (!ns) {
    clock_gettime(CLOCK_MONOTONIC, &end);
    ns = end.tv_sec * 1000000000ull + end.tv_nsec + atol(argv[3]) * 1000000ull;
  }
  end.tv_sec = ns / 1000000000, end.tv_nsec = ns % 1000000000;
  pthread_t threads[3];
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog all = {1, &allow};
  switch (argv[1][0]) {
    case 'a': take_turns((void*)~0ul); break;
    case 't':
      while (!is_over() && cells[0] < room - 4) {
        for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, take_turns, (void*)200) == 0);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
      }
      break;
    case 'q': CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0);  // fall through
    case 'f':
      while (!is_over() && cells[0] < room - 4) {
        for (int i = 0; i < 2; i++)
          if (fork() == 0) take_turns((void*)400), _exit(0);
        take_turns((void*)50);
        while (wait(NULL) > 0) {}
      }
      break;
    case 'e':
      take_turns((void*)300);
      if (is_over() || cells[0] >= room - 4) break;
      char text[32];
      sprintf(text, "%lu", ns);
      execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], text, NULL);
  }
  return 0;
}
