# LD_PRELOAD, RTLD_NEXT, symbol interposition, ifuncs and lazy binding.
. "$(dirname "$0")/lib.sh"
library shim.c -ldl <<'C'
#include "posix.h"
static long calls; static void *(*next)(size_t);
void *malloc(size_t n) { if (!next) next = dlsym(RTLD_NEXT, "malloc"); calls++; return next(n); }
int puts(const char *text) { static int (*next)(const char *); if (!next) next = dlsym(RTLD_NEXT, "puts"); next("interposed"); return next(text); }
__attribute__((destructor)) static void report(void) { fprintf(stderr, "%s\n", calls > 0 ? "malloc seen" : "none"); }
C
compile main.c -Wl,-z,lazy <<'C'
#include "posix.h"
static int two(void) { return 2; } static int three(void) { return 3; }
static int (*resolve(void))(void) { __builtin_cpu_init(); return __builtin_cpu_supports("sse2") ? three : two; }
int chosen(void) __attribute__((ifunc("resolve")));
int main() { char *p = malloc(100); strcpy(p, "text"), puts(p), printf("%d\n", chosen()); free(p); }
C
same env LD_PRELOAD="$T/libshim.so" "$T/main"
same env LD_PRELOAD="$T/libshim.so" sh -c 'echo a | cat'
same_out env LD_BIND_NOW=1 LD_DEBUG=statistics "$T/main"
