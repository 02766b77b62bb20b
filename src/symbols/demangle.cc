// libiberty's demanglers: what c++filt, nm and gdb show. They know Rust, which abi::__cxa_demangle does not, bound their
// recursion, and need no other library.
//
// A name of a hundred bytes can stand for gigabytes of text (each substitution may double it). The demanglers that write
// through a callback allocate nothing of their own, so that it may leave them by longjmp when it has seen enough.
#include "symbols/demangle.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <string_view>

namespace weir::symbols {

namespace {

constexpr size_t longest_name = 64 << 10;

struct Output {
  std::string text;
  std::jmp_buf enough;
};

void append(const char* text, size_t size, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  if (output.text.size() + size > longest_name) std::longjmp(output.enough, 1);
  output.text.append(text, size);
}

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

bool run(Demangler demangler, const char* linkage_name, Output& output) {
  output.text.clear();
  if (setjmp(output.enough) != 0) return false;
  return demangler(linkage_name, DMGL_PARAMS | DMGL_ANSI, append, &output) != 0;
}

}  // namespace

AuthorName split_clone(std::string_view linkage_name) {
  // GCC's, LLVM's and BOLT's. (Bodies of OpenMP regions and of coroutines are functions of their own.)
  static constexpr std::string_view words[] = {"cold",       "constprop", "isra",   "part",  "lto_priv",
                                               "localalias", "llvm",      "warm",   "clone", "specialized",
                                               "argprom",    "argelim",   "retelim"};
  std::string_view name = linkage_name;
  for (;;) {
    std::string_view rest = name;
    size_t digits = rest.find_last_not_of("0123456789");
    if (digits != rest.npos && digits + 1 < rest.size() && rest[digits] == '.') rest = rest.substr(0, digits);
    size_t dot = rest.rfind('.');
    if (dot == rest.npos || dot == 0 || std::ranges::find(words, rest.substr(dot + 1)) == std::end(words)) break;
    name = rest.substr(0, dot);
  }
  return {name, name.size() == linkage_name.size() ? "" : linkage_name.substr(name.size() + 1)};
}

std::string demangle(const std::string& linkage_name) {
  bool is_rust = linkage_name.starts_with("_R"), is_itanium = linkage_name.starts_with("_Z");
  if ((!is_rust && !is_itanium) || linkage_name.size() > longest_name) return linkage_name;
  static Output output;
  // Rust's older mangling is Itanium's with a hash as the last part: it must be tried first.
  if (run(rust_demangle_callback, linkage_name.c_str(), output)) return output.text;
  if (is_itanium && run(cplus_demangle_v3_callback, linkage_name.c_str(), output)) return output.text;
  return linkage_name;
}

}  // namespace weir::symbols
