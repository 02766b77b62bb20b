# File descriptors: the lowest number is free, all can be closed, moved and limited, and exec sees none of Weir's.
. "$(dirname "$0")/lib.sh"
compile descriptors.c <<'C'
#include "posix.h"
static void list(const char *what) { printf("%s:", what); for (int fd = 0; fd < 20000; fd++) if (fcntl(fd, F_GETFD) >= 0) printf(" %d", fd); DIR *d = opendir("/proc/self/fd"); int n = 0; while (readdir(d)) n++; closedir(d); printf(", %d in /proc\n", n), fflush(stdout); }
static int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }
int main(int argc, char **argv) {
  list(argc > 1 ? "after exec" : "start");
  printf("%d %d\n", open("/dev/null", O_RDONLY), dup(1));
  if (argc > 1) return 0;
  for (int fd = 10; fd < 1000; fd += 7) dup2(1, fd);
  list("dups"), CHECK(close_range(3, ~0u, 0) == 0), printf("%.2f\n", strtod("1.25", NULL));
  for (int fd = 3; fd < 1000; fd++) dup2(1, fd);
  closefrom(3), list("closefrom");
  for (int fd = 3; fd < 20000; fd++) close(fd);
  pid_t child = fork(); if (child == 0) { for (int fd = 0; fd < 20000; fd++) close(fd); if (strtol("12", NULL, 10) + work(15) == 622) { execl("/bin/sh", "sh", "-c", "exit 8", NULL); } _exit(1); }
  int status; waitpid(child, &status, 0), print_status("closed all", status);
  struct rlimit few = {5, 5}; setrlimit(RLIMIT_NOFILE, &few); list("limited");
  if (fork() == 0) { execl(argv[0], argv[0], "x", NULL); }
  wait(&status), print_status("limited", status);
  for (int fd = 0; fd < 3; fd++) close(fd);
  FILE *file = fopen("result", "w"); fprintf(file, "%d %d %s\n", fileno(file), work(20), strerror(5)), fclose(file);
  char line[100]; file = fopen("result", "r"), fgets(line, 100, file); return strcmp(line, "0 6765 Input/output error\n") ? 1 : 17;
}
C
STATUS=17 same "$T/descriptors"
same bash -c 'ls -l /proc/self/fd | wc -l; exec 3>&1 4>&1; ls /proc/self/fd; ls /proc/$$/fd'
