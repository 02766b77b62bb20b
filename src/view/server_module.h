// The HTTP server is a module of its own, libweir_server.so: Debian's cpp-httplib comes with OpenSSL and Brotli, which take
// milliseconds to load.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::view {

struct Answer {
  bool found;
  std::string json;
};

struct Site {
  std::string_view page;
  // A question of the page, from any thread.
  std::function<Answer(const std::string& name, const std::map<std::string, std::string>& parameters)> answer;
  uint16_t port = 0;
  std::function<void(const std::string& address)> started;
};

struct ServerModule {
  uint32_t version;
  Result<> (*serve)(const Site& site);
};
inline constexpr uint32_t server_version = 1;
inline constexpr const char* server_symbol = "weir_server_module";
inline constexpr const char* server_name = "libweir_server.so";

}  // namespace weir::view
