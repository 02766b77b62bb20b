#include "profile/sources.h"

#include <set>

#include "base/contents.h"
#include "base/zip.h"

namespace weir::profile {

uint32_t hash_of_source(std::string_view text) { return crc32_of(std::as_bytes(std::span(text))); }

void note_sources(Profile& profile) {
  std::set<std::string_view> paths;
  std::vector<bool> has_blocks(profile.functions.size());
  for (const Block& b : profile.blocks)
    if (b.function < has_blocks.size()) has_blocks[b.function] = true;
  for (size_t i = 0; i < profile.functions.size(); i++)
    if (has_blocks[i]) paths.insert(profile.functions[i].file);
  for (const LinePart& line : profile.lines) paths.insert(line.file);
  profile.sources.clear();
  for (std::string_view path : paths) {
    std::string name(path);
    if (std::optional<std::string> text = contents_of(name))
      profile.sources.push_back({name, text->size(), hash_of_source(*text)});
  }
}

}  // namespace weir::profile
