// Names for people: C++ (Itanium ABI) and Rust, both manglings.
#pragma once

#include <string>
#include <string_view>

namespace weir::symbols {

// "_ZN3foo3barEi" -> "foo::bar(int)"; a suffix that split_clone() does not know stays: "foo::bar(int) [clone ._omp_fn.0]". What is no mangled
// name, or becomes unreasonably long, is given back as it is.
std::string demangle(const std::string& linkage_name);

// "work.constprop.0" -> "work", "constprop.0": a compiler makes clones of a function, takes parts out of it, or gives it a name that is
// not another's, and says so behind the author's name.
struct AuthorName {
  std::string_view name, clone;
};
AuthorName split_clone(std::string_view linkage_name);

}  // namespace weir::symbols
