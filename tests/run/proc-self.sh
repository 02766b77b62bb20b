# /proc/self/exe, cmdline, comm, status, auxv, environ and the program's own names as native.
. "$(dirname "$0")/lib.sh"
compile self.c <<'C'
#include "posix.h"
#include <elf.h>
#include <link.h>
extern char __executable_start, _start, **environ;
static int name(struct dl_phdr_info *info, size_t size, void *data) { const char *s = strrchr(info->dlpi_name, '/'); printf("image %s, %d headers\n", s ? s : info->dlpi_name, info->dlpi_phnum); return 0; }
static void show(const char *path) { char text[70000]; int fd = open(path, O_RDONLY); ssize_t n = read(fd, text, sizeof text); close(fd); printf("%s: %zd ", path, n); fwrite(text, 1, n, stdout), puts(""); }
int main(int argc, char **argv) {
  char link[PATH_MAX] = {}; readlink("/proc/self/exe", link, sizeof link - 1), puts(link);
  show("/proc/self/cmdline"), show("/proc/self/comm"), show("/proc/self/environ"), show("/proc/thread-self/comm"), show("/proc/self/personality"), show("/proc/self/coredump_filter"), show("/proc/self/oom_score_adj");
  const Elf64_Phdr *headers = (void *)getauxval(AT_PHDR);
  printf("AT_PHDR %d AT_ENTRY %d AT_EXECFN %s AT_PHNUM %lu AT_PAGESZ %lu AT_SECURE %lu AT_PLATFORM %s AT_HWCAP %lx AT_HWCAP2 %lx AT_CLKTCK %lu AT_UID %lu\n",
         (char *)headers - &__executable_start == ((Elf64_Ehdr *)&__executable_start)->e_phoff, getauxval(AT_ENTRY) == (long)&_start, (char *)getauxval(AT_EXECFN), getauxval(AT_PHNUM),
         getauxval(AT_PAGESZ), getauxval(AT_SECURE), (char *)getauxval(AT_PLATFORM), getauxval(AT_HWCAP), getauxval(AT_HWCAP2), getauxval(AT_CLKTCK), getauxval(AT_UID));
  printf("base of the loader %d\n", getauxval(AT_BASE) != 0), dl_iterate_phdr(name, NULL);
  Elf64_auxv_t kept[64]; FILE *file = fopen("/proc/self/auxv", "r"); size_t n = fread(kept, sizeof *kept, 64, file);
  for (size_t i = 0; i < n; i++) if (kept[i].a_type != AT_NULL) printf("kept %ld %d\n", kept[i].a_type, kept[i].a_un.a_val == getauxval(kept[i].a_type));
  char text[4096]; unsigned long at[52] = {}; fgets(text, sizeof text, file = fopen("/proc/self/stat", "r"));
  char *rest = strrchr(text, ')') + 3; for (int i = 4; i < 52; i++) at[i] = strtoul(rest, &rest, 10);
  printf("stat: code %d %d data %d\n", at[26] <= (long)main, (long)main < at[27], at[45] <= (long)&environ && at[46] >= at[45] && at[46] - at[45] < 65536);
  printf("%s %s %d\n", program_invocation_name, program_invocation_short_name, argc);
  long *p = (long *)environ; while (*p++) {} for (; *p; p += 2) printf("auxv %ld\n", *p);
  FILE *status = fopen("/proc/self/status", "r"); char line[300];
  while (fgets(line, sizeof line, status)) { char word[40] = " "; sscanf(line, "%30[^:]", word + 1), strcat(word, " "); if (strstr(" Name Threads SigBlk SigIgn SigCgt Uid TracerPid Umask Seccomp NoNewPrivs ", word)) fputs(line, stdout); }
}
C
same "$T/self" one 'two words' ''
(cd "$T"; ln -s self alias)
same bash -c "cd $T; exec -a 'another name' ./alias x"
build "$T/self.c" "$T/self" -no-pie
same "$T/self"
build "$T/self.c" "$T/self" -static-pie
same "$T/self"
