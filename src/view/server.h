// The page and its questions over HTTP, for this machine and who knows the address only.
//
// It listens on 127.0.0.1. The first part of every path is a random token of 128 bits: other users of the machine, and pages of other
// sites in the user's browser, cannot guess it. A request whose Host is not ours is refused (DNS rebinding).
#pragma once

#include <functional>
#include <string>

#include "view/queries.h"

namespace weir::view {

struct Serving {
  uint16_t port = 0;                                        // 0: the usual one, or any that is free
  std::function<void(const std::string& address)> started;  // it listens; threads of its own get no SIGINT and SIGTERM
};

// Until SIGINT or SIGTERM.
Result<> serve(Queries& queries, const Serving& serving);

}  // namespace weir::view
