# An exec that fails and the program goes on; also in a child of vfork and with threads.
. "$(dirname "$0")/lib.sh"
compile fails.c -pthread <<'C'
#include "posix.h"
static void *wait_here(void *x) { for (;;) pause(); }
static void attempt(const char *path) { char *argv[] = {"x", NULL}; execve(path, argv, NULL); printf("%s: %s\n", path, strerrorname_np(errno)); }
int main() {
  pthread_t thread; char *huge[3] = {"x", malloc(200 << 10), NULL}; memset(huge[1], 'a', 200 << 10), huge[1][(200 << 10) - 1] = 0;
  close(open("plain", O_CREAT | O_WRONLY, 0644)), close(open("empty", O_CREAT | O_WRONLY, 0755)), mkdir("directory", 0755);
  int fd = open("text", O_CREAT | O_WRONLY, 0755); write(fd, "no shebang\n", 11), close(fd);
  fd = open("script", O_CREAT | O_WRONLY, 0755), write(fd, "#!/nonexistent/interpreter\n", 27), close(fd);
  fd = open("short", O_CREAT | O_WRONLY, 0755), write(fd, "\177ELF", 4), close(fd);
  symlink("loop", "loop");
  for (int round = 0; round < 3; round++) {
    attempt("/nonexistent"), attempt("plain"), attempt("empty"), attempt("directory"), attempt("text"), attempt("script"), attempt("short"), attempt("loop"), attempt(""), attempt("plain/x");
    execve("/bin/true", huge, NULL), printf("huge: %s\n", strerrorname_np(errno));
    if (round == 0) pthread_create(&thread, NULL, wait_here, NULL);
    if (round == 1 && fork()) { int status; wait(&status); print_status("child", status); exit(0); }
  }
  execlp("text", "text", NULL), printf("execlp: %s\n", strerrorname_np(errno)), fflush(stdout);
  execl("/bin/echo", "echo", "at last", NULL);
}
C
same "$T/fails"
