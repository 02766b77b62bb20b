// Names for people: C++ (Itanium ABI) and Rust, both manglings.
#pragma once

#include <string>

namespace weir::symbols {

// "_ZN3foo3barEi" -> "foo::bar(int)"; a suffix of the compiler stays: "foo::bar(int) [clone .cold]". What is no mangled
// name, or becomes unreasonably long, is given back as it is.
std::string demangle(const std::string& linkage_name);

}  // namespace weir::symbols
