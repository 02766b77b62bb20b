# A program with hundreds of libraries. Weir opens each of them once, however often it looks: the program counts what its parent has mapped.
. "$(dirname "$0")/lib.sh"
library one.c <<'S'
int one(int x) { return x + 1; }
S
for i in $(seq 300); do cp "$T/libone.so" "$T/lib$i.so"; done
compile many.c -ldl <<'S'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static volatile long sum;
int main(int argc, char** argv) {
  char path[4096];
  int (*one)(int) = 0;
  for (int i = 1; i <= 300; i++) {
    snprintf(path, sizeof path, "%s/lib%d.so", argv[1], i);
    void* library = dlopen(path, RTLD_NOW);
    one = (int (*)(int))dlsym(library, "one");
  }
  snprintf(path, sizeof path, "%s/libone.so", argv[1]);
  for (int i = 0; i < 30; i++) {
    void* library = dlopen(path, RTLD_NOW);
    for (int k = 0; k < 3000000; k++) sum = one(k);
    if (i < 29) dlclose(library);
    else for (int k = 0; k < 100000000; k++) sum = one(k);  // (the others may be gone before Weir has looked)
  }
  int maps = 0;
  snprintf(path, sizeof path, "/proc/%d/maps", getppid());
  FILE* f = fopen(path, "r");
  for (int c; (c = getc(f)) != EOF;) maps += c == '\n';
  printf("%ld, its parent has %s mappings\n", sum, maps < 1500 ? "some" : "too many");
}
S
sampled "$T/many" "$T"
seen main one
