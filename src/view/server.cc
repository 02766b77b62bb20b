#include "view/server.h"

#include <dlfcn.h>

#include "base/module.h"
#include "view/page.h"
#include "view/server_module.h"

namespace weir::view {

Result<> serve(Queries& queries, const Serving& serving) {
  TRY(std::string path, module_path(server_name));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail("{}", dlerror());
  auto* module = static_cast<const ServerModule*>(dlsym(library, server_symbol));
  if (!module || module->version != server_version) return fail("{}: is of another weir; build both anew", path);
  auto answer = [&](const std::string& name, const Parameters& parameters) -> Answer {
    Result<std::string> json = queries.answer(name, parameters);
    if (json) return {true, std::move(*json)};
    JsonWriter error = JsonWriter::compact();
    error.begin_object().member("error", json.error().what).end_object();
    return {false, std::move(error.text)};
  };
  return module->serve({page(), answer, serving.port, serving.started});
}

}  // namespace weir::view
