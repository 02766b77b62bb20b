// Names for functions that no symbol names, by what is known of them: the only ones that a stripped library's own code has.
//
// Each is true of what it names, and says in brackets where that is, as several functions may have one:
//
//   main [sort+0x3a40]                           what the program's first code hands to __libc_start_main
//   memmove/memcpy [libc.so.6+0x163940]          resolvers of these IFUNCs choose it
//   qsort [libc.so.6+0x3c8a0]                    that exported function does nothing but jump there
//   in malloc/calloc/realloc… [libc.so.6+0x9a1b0]   only these, and functions that only these need, refer to it
#pragma once

#include <map>
#include <span>

#include "symbols/object.h"
#include "symbols/symbols.h"

namespace weir::symbols {

// Of those of `functions` that no symbol names, and of which something is known: by where they begin.
std::map<Vaddr, DerivedName> derive_names(const Object& image, std::span<const Function> functions);

}  // namespace weir::symbols
