// The code of a profile: images and functions that are added when an address in them comes up, and named when all are there; the
// source lines of blocks and call sites. What all that make profiles have in common.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "profile/profile.h"
#include "symbols/symbols.h"
#include "symbols/written_code.h"

namespace weir::symbols {

// A program, as far as the code is concerned that it wrote itself.
struct Writer {
  uint32_t pid = 0;
  int64_t started = 0;
  std::shared_ptr<const WrittenCode> code;  // what it says of it
};

class ProfileCode {
 public:
  explicit ProfileCode(profile::Profile& profile) : p_(profile) {}

  // Programs have images in common: each is added once. But code that a program wrote is an image of its own, as at the same
  // address another has other code.
  // `opened`: by somebody, before.
  uint32_t image(const std::string& path, const Writer* writer, std::shared_ptr<const elf::Image> opened = nullptr);
  // The function at `offset`; where none is known, [offset, offset + size) is one.
  uint32_t function(uint32_t image, uint64_t offset, uint64_t size);
  // The function at `offset`, or the one that this is a part of; where none is known, all that lies between its neighbours is one.
  uint32_t function_around(uint32_t image, uint64_t offset);
  // What the image's file has there: none where it has nothing, or there is no file.
  std::span<const std::byte> bytes_at(uint32_t image, Vaddr v) const;

  // Names the functions of an image, and says where those that `ran` (by id) are declared. `all`: those that the image has besides
  // are added, but not parts of functions.
  void name_functions(uint32_t image, const std::vector<bool>& ran, bool all);

  // An address whose line is wanted: of an instruction of a block that takes so many cycles, or of a site. Of what ran the inlined
  // calls are wanted, too: the functions of the image have names by then.
  struct Asked {
    Vaddr address;
    uint32_t block = profile::none, cycles = 0, site = profile::none;
    bool ran = false;
  };
  bool has_lines(uint32_t image) { return symbols(image) && symbols(image)->has_lines(); }
  void find_lines(uint32_t image, std::vector<Asked> asked);
  // The part of a block (an index in Profile::lines) that its last instruction is of, and the inlined call that this one is in.
  uint32_t part_at_end(uint32_t block) const { return block < part_at_end_.size() ? part_at_end_[block] : profile::none; }
  uint32_t scope_at_end(uint32_t block) const {
    uint32_t part = part_at_end(block);
    return part == profile::none ? profile::none : p_.lines[part].scope;
  }

  // What could not be read of an image, a line each.
  std::span<const std::string> notes(uint32_t image) const;

 private:
  Symbols* symbols(uint32_t image);  // null: it has no file
  void add_all(uint32_t image);
  // The call that was inlined into `function`, by its number in the image.
  uint32_t scope(uint32_t image, uint64_t number, uint32_t function);
  uint32_t inlined_function(uint32_t image, const InlinedCall& call);
  struct ImageState {
    std::shared_ptr<const elf::Image> file;
    std::unique_ptr<Symbols> symbols;  // opened when first needed: a program has hundreds of images
    std::map<uint64_t, uint32_t> functions, unlisted_functions;  // that symbols has, or not; by offset
    std::shared_ptr<const WrittenCode> written;                  // of the program
    std::map<std::pair<uint64_t, uint32_t>, uint32_t> scopes;    // by number, and the function that has the code
    std::unordered_map<uint64_t, uint32_t> functions_by_origin;  // see InlinedCall
    std::map<std::tuple<std::string, std::string, uint32_t>, uint32_t> functions_by_declaration;
  };

  profile::Profile& p_;
  std::vector<ImageState> images_;
  std::map<std::string, uint32_t> image_by_path_;
  std::vector<uint32_t> part_at_end_;  // by block
  // What was asked for last.
  struct KnownScope {
    uint64_t number = 0;
    uint32_t function = profile::none, scope = profile::none;
  } last_scope_;
};

}  // namespace weir::symbols
