# Large libraries of the system are loaded, used and unloaded again and again.
. "$(dirname "$0")/lib.sh"
compile many.c <<'C'
#include "posix.h"
int main(int argc, char **argv) {   // ROUNDS (LIBRARY FUNCTION)...
  uint64_t sum = 0;
  for (int i = 0; i < atoi(argv[1]); i++)
    for (int n = 2; n + 1 < argc; n += 2) {
      void *library = dlopen(argv[n], RTLD_NOW); CHECK(library);
      const char *(*version)(void) = dlsym(library, argv[n + 1]); CHECK(version);
      int (*start)(void) = dlsym(library, "sqlite3_initialize"); if (start) CHECK(start() == 0);
      unsigned long (*crc)(unsigned long, const char *, unsigned) = dlsym(library, "crc32"); if (crc) sum = mix(sum, crc(i, argv[0], strlen(argv[0])));
      for (const char *p = version(); *p; p++) sum = mix(sum, *p);
      CHECK(dlclose(library) == 0);
    }
  printf("%lx\n", sum);
}
C
libraries=()
for pair in libsqlite3.so.0:sqlite3_libversion libz.so.1:zlibVersion libbz2.so.1.0:BZ2_bzlibVersion liblzma.so.5:lzma_version_string; do
  if "$T/many" 1 ${pair/:/ } >"$T/out" 2>&1; then libraries+=(${pair/:/ }); fi
done
((${#libraries[@]})) || skip 'none of the libraries is installed'
same "$T/many" 100 "${libraries[@]}"
