# A program with more libraries than most: each has a code cache of its own.
. "$(dirname "$0")/lib.sh"
for ((i = 0; i < 140; i++)); do
  echo "int f$i(int x) { return x + $i; }" | gcc -shared -fPIC -nostdlib -Wl,--build-id=0x$(printf '%040x' $((i + 1))) -x c - -o "$T/lib$i.so"
done
compile many.c -ldl <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int sum = 0;
  for (int i = 0; i < 140; i++) {
    char name[4096], symbol[16];
    snprintf(name, sizeof name, "%s/lib%d.so", argv[1], i), snprintf(symbol, sizeof symbol, "f%d", i);
    int (*f)(int) = (int (*)(int))dlsym(dlopen(name, RTLD_NOW), symbol);
    for (int k = 0; k < 10; k++) sum = f(sum) % 100003;
  }
  printf("%d\n", sum);
}
C
same "$T/many" "$T"
