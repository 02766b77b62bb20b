// The image, its separate debug file and its DWARF, each opened when first needed.
#include "symbols/symbols.h"

#include <algorithm>
#include <map>

#include "base/truncation.h"
#include "symbols/debug_file.h"
#include "symbols/debug_info.h"
#include "symbols/derived_names.h"
#include "symbols/frames.h"
#include "symbols/functions.h"
#include "symbols/parts.h"
#include "symbols/unpacked.h"

namespace weir::symbols {

std::string default_debug_root() {
  const char* directory = getenv("WEIR_DEBUG_DIRECTORY");
  return directory && *directory ? directory : "/usr/lib/debug";
}

struct Symbols::Parts {
  TruncationGuard guard;
  Options options;
  std::unique_ptr<Object> image;  // without bytes where the file could not be read
  std::vector<std::string> notes;
  bool debug_searched = false, short_names_told = false;
  std::unique_ptr<Object> debug, mini;
  std::optional<SymbolTable> symbols;
  bool functions_listed = false;
  std::vector<Function> functions;  // all; or those
  std::map<Vaddr, Function> found;  // … that were asked for, by their begin
  std::optional<FunctionFinder> finder;
  std::optional<PartFinder> part_finder;
  std::map<Vaddr, const Function*> wholes;              // of parts, by their begin
  std::optional<std::map<Vaddr, DerivedName>> derived;  // names, by where the function begins
  std::optional<DebugInfo> debug_info;

  Parts(Result<std::unique_ptr<Object>> opened, const std::string& path, const Options& options) : options(options) {
    if (opened && !options.build_id.empty() && (*opened)->build_id != options.build_id)
      opened = fail("{}: is not the file that ran: build-id {}, not {}", path, (*opened)->build_id, options.build_id);
    if (!opened) notes.push_back(opened.error().what);
    image = opened ? std::move(*opened) : std::make_unique<Object>();
    image->path = path;
  }

  void search_debug() {
    if (debug_searched || !image->elf) return;
    debug_searched = true;
    if (!image->has_dwarf()) debug = unpacked(find_debug_file(*image, options));
    bool has_symbols = std::ranges::any_of(image->sections, [](auto& s) { return s.header.sh_type == SHT_SYMTAB; });
    if (!debug && !has_symbols) mini = mini_debug_file(*image);
  }

  SymbolTable& symbol_table() {
    if (symbols) return *symbols;
    search_debug();
    std::vector<const Object*> files{image.get()};
    for (const Object* more : {debug.get(), mini.get()})
      if (more) files.push_back(more);
    return symbols.emplace(std::move(files));
  }

  const Function* known_at(Vaddr v) const {
    auto after = found.upper_bound(v);
    return after == found.begin() || !std::prev(after)->second.range.contains(v) ? nullptr : &std::prev(after)->second;
  }

  // None: that can only be told from the list.
  std::optional<Symbols::Around> find(Vaddr v) {
    if (const Function* known = known_at(v)) return Symbols::Around{known, {}};
    if (functions_listed || !image->elf) return {};
    if (!finder) finder.emplace(*image, symbol_table());
    std::optional<FunctionFinder::Place> place = finder->at(v);
    if (!place) return {};
    if (!place->function) return Symbols::Around{nullptr, place->hole};
    return Symbols::Around{&found.emplace(place->function->range.begin, std::move(*place->function)).first->second, {}};
  }

  PartFinder& parts() { return part_finder ? *part_finder : part_finder.emplace(*image, symbol_table()); }

  DebugInfo& info() {
    search_debug();
    if (!debug_info) debug_info.emplace(*image, debug ? *debug : *image, options, notes);
    return *debug_info;
  }
};

Symbols::Symbols(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Symbols::~Symbols() = default;

std::unique_ptr<Symbols> Symbols::open(const std::string& path, const Options& options) {
  TruncationGuard guard;
  return std::unique_ptr<Symbols>(new Symbols(std::make_unique<Parts>(open_object(path), path, options)));
}

std::unique_ptr<Symbols> Symbols::open(Fd file, const std::string& path, const Options& options) {
  TruncationGuard guard;
  auto image = open_object(std::move(file), path);
  return std::unique_ptr<Symbols>(new Symbols(std::make_unique<Parts>(std::move(image), path, options)));
}

std::unique_ptr<Symbols> Symbols::from_memory(std::vector<std::byte> bytes, const std::string& path,
                                              const Options& options) {
  auto image = object_from_memory(std::move(bytes), path);
  return std::unique_ptr<Symbols>(new Symbols(std::make_unique<Parts>(std::move(image), path, options)));
}

const std::vector<Function>& Symbols::functions() {
  if (parts_->functions_listed || !parts_->image->elf) return parts_->functions;
  parts_->functions_listed = true;
  return parts_->functions = list_functions(*parts_->image, parts_->symbol_table());
}

Symbols::Around Symbols::around(Vaddr v) {
  if (auto found = parts_->find(v)) return *found;
  const std::vector<Function>& all = functions();
  auto after = std::ranges::upper_bound(all, v, {}, [](const Function& f) { return f.range.begin; });
  VRange hole{{0}, after == all.end() ? Vaddr{UINT64_MAX} : after->range.begin};
  if (after == all.begin()) return {nullptr, hole};
  if (std::prev(after)->range.contains(v)) return {&*std::prev(after), {}};
  return {nullptr, {std::prev(after)->range.end, hole.end}};
}

const Function* Symbols::function_at(Vaddr v) { return around(v).function; }

bool Symbols::is_part(const Function& f) { return parts_->parts().is_part(f); }

const Function* Symbols::whole_of(const Function& part) {
  auto [known, is_new] = parts_->wholes.try_emplace(part.range.begin, nullptr);
  if (is_new) known->second = parts_->parts().whole_of(part, [this](Vaddr v) { return function_at(v); });
  return known->second;
}

std::string Symbols::name_at(Vaddr v) {
  const Function* function = function_at(v);
  return function ? function->name() : unnamed(*parts_->image, v);
}

const DerivedName& Symbols::derived_name(const Function& f) {
  static const DerivedName none;
  if (!parts_->derived) parts_->derived = derive_names(*parts_->image, functions());
  auto found = parts_->derived->find(f.range.begin);
  return found == parts_->derived->end() ? none : found->second;
}

Place Symbols::declaration(Vaddr v) { return parts_->info().declaration(v); }
Place Symbols::known_declaration(Vaddr v) { return parts_->info().known_declaration(v); }

std::vector<Row> Symbols::rows(VRange range) { return parts_->info().rows(range); }

void Symbols::frames(std::span<const Vaddr> addresses, const TakeFrames& take) {
  FrameFinder finder(*parts_->image, [this](Vaddr v) { return function_at(v); }, parts_->info());
  for (size_t i = 0; i < addresses.size(); ++i) take(i, finder.at(addresses[i]));
}

InlinedCall Symbols::inlined(uint64_t scope) { return parts_->info().inlined(scope); }

std::vector<uint32_t> Symbols::source_lines_of(std::string_view file) { return parts_->info().source_lines_of(file); }

bool Symbols::has_lines() { return !parts_->info().empty(); }

const std::string& Symbols::debug_path() {
  static const std::string no_path;
  parts_->search_debug();
  return parts_->debug ? parts_->debug->path : no_path;
}

const std::vector<std::string>& Symbols::notes() const {
  if (!parts_->short_names_told && parts_->debug_info && parts_->debug_info->has_short_names()) {
    parts_->short_names_told = true;
    parts_->notes.push_back(
        fmt::format("{}: compiled with -g1: names of inlined functions are without their namespaces; -g has them",
                    parts_->image->path));
  }
  return parts_->notes;
}

}  // namespace weir::symbols
