# Exceptions through libraries: linked, loaded at run time, through C callbacks.
. "$(dirname "$0")/lib.sh"
library thrower.cc <<'C'
#include <stdexcept>
#include <cstdlib>
extern "C" void throws(int n) { if (n == 0) throw std::out_of_range("from the library"); throws(n - 1); asm(""); }
extern "C" void calls(void (*f)(int), int n) { f(n); asm(""); }
extern "C" int sorted(int (*f)(const void *, const void *)) { int a[] = {3, 1, 2}; qsort(a, 3, sizeof *a, f); return a[0]; }
C
compile main.cc -L"$T" -lthrower -Wl,-rpath,"$T" -ldl <<'C'
#include <cstdio>
#include <dlfcn.h>
#include <stdexcept>
extern "C" void throws(int); extern "C" void calls(void (*)(int), int);
extern "C" int sorted(int (*)(const void *, const void *));
static int compare(const void *a, const void *b) { throw 5; }
int main(int, char **argv) {
  try { throws(10); } catch (const std::out_of_range &e) { puts(e.what()); }
  try { calls([](int n) { throw n; }, 7); } catch (int n) { printf("%d\n", n); }
  try { calls([](int n) { calls(throws, n); }, 3); } catch (const std::exception &e) { puts(e.what()); }
  try { sorted(compare); } catch (int n) { printf("through qsort %d\n", n); }
  void *plugin = dlopen(argv[1], RTLD_NOW);
  auto load = (void (*)(int))dlsym(plugin, "throws");
  try { load(4); } catch (const std::exception &e) { puts(e.what()); }
}
C
library plugin.cc <<'C'
#include <stdexcept>
extern "C" void throws(int n) { throw std::runtime_error("from the plugin"); }
C
same "$T/main" "$T/libplugin.so"
