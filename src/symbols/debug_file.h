// Where the debug information of an image is: in itself, in a file beside it, below /usr/lib/debug, or on a server.
#pragma once

#include <elfutils/libdw.h>

#include "symbols/object.h"
#include "symbols/symbols.h"

namespace weir::symbols {

// The separate debug file of `image`: by build-id, by .gnu_debuglink, from debuginfod, in this order.
std::unique_ptr<Object> find_debug_file(const Object& image, const Options& options);
// .gnu_debugdata: a compressed ELF file inside `image` that holds the symbols which .dynsym has not.
std::unique_ptr<Object> mini_debug_file(const Object& image);
// .gnu_debugaltlink: what dwz moved out of several debug files. libdw finds the usual ones by itself.
std::unique_ptr<Object> find_alternate_file(const Object& debug, Dwarf* dwarf, const Options& options);

}  // namespace weir::symbols
