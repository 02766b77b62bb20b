#include "base/cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace weir {

// Four sums side by side: a multiplication need not wait for the one before.
uint64_t checksum_of(std::span<const std::byte> bytes, uint64_t seed) {
  constexpr uint64_t k = 0xD6E8FEB86659FD93ull;
  uint64_t h[4] = {seed ^ (bytes.size() + 1), 2, 3, 4}, w;
  size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32)
    for (size_t lane = 0; lane < 4; lane++) {
      memcpy(&w, &bytes[i + 8 * lane], 8);
      h[lane] = (h[lane] ^ w) * k;
      h[lane] ^= h[lane] >> 32;
    }
  for (; i < bytes.size(); i++) h[0] = (h[0] ^ static_cast<uint64_t>(bytes[i])) * k;
  for (uint64_t x : h) h[0] = (h[0] ^ x ^ x >> 29) * k;
  return h[0];
}

std::string cache_directory() {
  const char* xdg = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  if (!(xdg && *xdg == '/') && !(home && *home == '/')) return {};
  std::string base = xdg && *xdg == '/' ? xdg : std::string(home) + "/.cache";
  mkdir(base.c_str(), 0700);
  std::string own = base + "/weir";
  mkdir(own.c_str(), 0700);
  struct stat st;
  if (stat(own.c_str(), &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) return {};
  return own;
}

}  // namespace weir
