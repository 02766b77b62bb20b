// From addresses of an image to names and lines.
//
// An image is opened by path or from bytes; whatever is wrong with it, the object is usable: at worst every address is
// "image+0x1234". Addresses are those of the file (p_vaddr). Functions come from the symbol tables and unwind tables;
// lines and inlined calls from DWARF, of the file itself or of its separate debug file, read for one compilation unit at
// a time, when an address in it is first asked for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elf/image.h"

namespace weir::symbols {

using elf::Vaddr;
using elf::VRange;

enum class Kind : uint8_t { Function, Resolver, PltEntry };  // Resolver: chooses the function that an IFUNC stands for

// What a function without a symbol is called, and how that is known.
enum class NamedBy : uint8_t { Start, Variant, Target, Users, Nothing };
struct DerivedName {  // see derived_names.h
  std::string text;
  NamedBy by = NamedBy::Nothing;
};

struct Function {
  VRange range;
  std::string linkage_name = {};  // as in the symbol table, without its version; empty: the image has no name for it
  std::string whole = {};         // of one without a name: the symbol, section or file that it is a part of,
  uint64_t offset = 0;            // … and where in that
  Kind kind = Kind::Function;
  bool is_nameless = false;  // no symbol has it, whole or in part: "libc.so.6+0x1234"
  mutable std::string made_name = {};

  // For people: demangled, "read@plt", "work [constprop.0]", "memcpy [resolver]", or "libc.so.6+0x1234". Made when it is first asked for: an image has a hundred thousand.
  const std::string& name() const;
};

// A line of a source file. Views are good as long as the Symbols they come from.
struct Place {
  std::string_view file;  // a normalised path, absolute where the compiler said where it ran; empty: not known
  uint32_t line = 0;      // 0: code that the compiler gave no line

  friend bool operator==(const Place&, const Place&) = default;
};

// Instructions next to each other that come from one line.
struct Row {
  VRange range;
  Place place;
  bool is_statement;  // a good place for a breakpoint; the other rows are code of their line none the less
};

// A function that an instruction belongs to, and the place in it: its own line in the innermost, then those of the calls
// that were inlined.
struct Frame {
  std::string_view function;
  Place place;
  uint64_t scope = 0;  // of an inlined call: its number in the image; 0: the function itself
};

// A call that was inlined. Views are good as long as the Symbols.
struct InlinedCall {
  uint64_t parent = 0;  // the inlined call around it
  Vaddr entry;          // where it begins to run; 0: not known
  std::string_view function;
  uint64_t origin = 0;   // the same for all calls of a function, in one unit
  Place declared, call;  // the function, and the call in the source
};

std::string default_debug_root();  // WEIR_DEBUG_DIRECTORY, or /usr/lib/debug

struct Options {
  std::string build_id = {};                      // of the image that ran; a file with another one counts as missing
  std::string debug_root = default_debug_root();  // where separate debug files are
  // How long a download may take, all images of this process together. Only with DEBUGINFOD_URLS in the environment.
  std::chrono::milliseconds download_limit{30'000};
};

// For one thread at a time: tables are made when first asked for.
class Symbols {
 public:
  static std::unique_ptr<Symbols> open(const std::string& path, const Options& options = {});
  // From an open file (it may be deleted or renamed on disk).
  static std::unique_ptr<Symbols> open(Fd file, const std::string& path, const Options& options = {});
  // From bytes that are in memory already: the vDSO.
  static std::unique_ptr<Symbols> from_memory(std::vector<std::byte> bytes, const std::string& path,
                                              const Options& options = {});
  ~Symbols();

  // All functions, sorted and apart from each other.
  const std::vector<Function>& functions();
  // One of them, found without listing them all where that is possible.
  const Function* function_at(Vaddr v);
  struct Around {
    const Function* function;  // null: there is none, but
    VRange hole;               // … a hole between two, or before or behind them all
  };
  Around around(Vaddr v);
  // Is it a part of another function that the compiler put elsewhere (`work.cold`)? And of which: null where that is not known.
  bool is_part(const Function& f);
  const Function* whole_of(const Function& part);
  // Of the function at `v`, or "image+0x1234".
  std::string name_at(Vaddr v);
  // What is known of a function that is nameless. Takes long the first time: all code of the image is looked at.
  const DerivedName& derived_name(const Function& f);
  // Where the function at `v` is declared.
  Place declaration(Vaddr v);
  // The same, if it is in a unit that something was asked of before: others take long to read.
  Place known_declaration(Vaddr v);

  // The rows of a range, sorted, without the places that no row covers.
  std::vector<Row> rows(VRange range);
  // For each of `addresses`, which are sorted: its frames, innermost first, the function itself last. There is always
  // one; in code without lines its place is empty. The span, and the name of code without one, are good during the call.
  using TakeFrames = std::function<void(size_t index, std::span<const Frame> frames)>;
  void frames(std::span<const Vaddr> addresses, const TakeFrames& take);
  InlinedCall inlined(uint64_t scope);  // of a frame

  // Every line of `file` that has code in the image, sorted; needs the line tables of all units.
  std::vector<uint32_t> source_lines_of(std::string_view file);

  bool has_lines();                 // there is DWARF
  const std::string& debug_path();  // the separate debug file, empty where there is none
  // What could not be read, a line each: "libfoo.so: no such file".
  const std::vector<std::string>& notes() const;

 private:
  struct Parts;
  explicit Symbols(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::symbols
