// Which functions of two programs, or of two builds of one, are the same.
//
// Images first, each with one of the other side at most: those that --map names, then by path, build-id, file name, name without version
// (libfoo.so.1.2 and libfoo.so.1.3), the main program of both runs, and by the names that they have in common.
// Then functions: within such a pair of images by name (by offset where the build is the same); what is left by its body, file and callers:
// those got another name, or moved to another image.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/body.h"
#include "store/reader.h"

namespace weir::store {

// One or several runs of the same program: its functions, each once.
struct Subject {
  struct Function {
    FunctionInfo info;      // as the first run that has it says
    uint32_t image = none;  // index
    uint32_t run = 0;       // the first that has it
    bool ran = false;
  };
  std::vector<const Reader*> runs;
  std::vector<profile::Image> images;
  std::vector<std::string>
      programs;  // paths of what the first process ran, one after the other; names where no path is known
  std::vector<Function> functions;
  std::vector<std::unordered_map<uint32_t, uint32_t>> index_of_id;  // of each run

  static Result<Subject> load(std::vector<const Reader*> runs);
};

struct ImagePair {
  std::string before, now;  // paths
  std::string why;          // "--map", "the same build", "version", …
};

struct FunctionPair {
  uint32_t before = none, now = none;  // in the subjects
  bool is_renamed = false, is_moved = false;
  double similarity = 1;  // of their bodies; 1 where nobody had to look
};

struct Match {
  Subject before, now;
  std::vector<ImagePair> renamed_images;  // whose file names differ
  std::vector<FunctionPair> functions;    // each function of either subject once at most
  std::string without_lines;  // an image that has debug information on the other side only; empty: there is none
};

// `map`: OLD=NEW, of images (paths, or their ends) or of functions.
Result<Match> match(std::vector<const Reader*> now, std::vector<const Reader*> before,
                    const std::vector<std::string>& map = {});

// What one side cannot tell is compared as it can: where it lacks debug information, what was inlined is folded in all runs.
Result<Match> match_alike(const std::vector<Reader*>& now, const std::vector<Reader*>& before,
                          const std::vector<std::string>& map);

// The parts of match(), each in a file of its own.
struct ImageMatch {
  uint32_t before, now;
  const char* why;
};
struct Mapping {  // a word of --map, and whether it named something
  std::string word;
  bool is_used = false;
};
std::vector<ImageMatch> match_images(const Subject& before, const Subject& now, std::vector<Mapping>& map);
Result<std::vector<FunctionPair>> match_functions(const Subject& before, const Subject& now,
                                                  const std::vector<ImageMatch>& images, std::vector<Mapping>& map);
// No symbol names it: its name is a place in its image, which the next build changes.
bool is_unnamed(const FunctionInfo& f);
// Many images have one: main, _init, puts@plt.
bool is_everywhere(std::string_view name);
// libfoo.so.1.2 → libfoo.so, python3.11 → python: a file name without the numbers in it.
std::string without_version(std::string_view file_name);

}  // namespace weir::store
