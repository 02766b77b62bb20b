// Where the functions of certain names are in an image, and nothing else of it: a program has hundreds of images, and most have none of them.
//
// .dynsym is asked by its hash table. Of .symtab first the strings are searched, and the symbols are looked at only where a name is among
// them. An image without .symtab has it in a separate debug file, or in .gnu_debugdata. What is called a name may stand at several places:
// versions of it, local functions of several files, and, of an IFUNC, all that its resolver can choose.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elf/image.h"
#include "symbols/symbols.h"

namespace weir::symbols {

struct NamePattern {
  std::string symbol;        // as in the symbol table, mangled where the language does so; * and ? stand for any characters
  std::string image = {};    // path, file name, or the name that it gives itself (DT_SONAME); empty: any
  std::string version = {};  // "GLIBC_2.14"; empty: any
};

struct NamedFunction {
  Vaddr begin;
  uint32_t pattern;  // by its index
  std::string
      symbol;  // as it was found: "memcpy@@GLIBC_2.14" is what a new program gets, "memcpy@GLIBC_2.2.5" only an old one
};

// By address; one of each address and pattern. (The vector may be empty; it is what is needed of the image from then on.)
std::vector<NamedFunction> find_named(const elf::Image& image, std::span<const NamePattern> patterns,
                                      const Options& options = {});

}  // namespace weir::symbols
