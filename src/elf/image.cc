// The problem: of any file that a program maps, say where the function around an address begins and ends, at once.
//
// Opening maps the file and reads its program headers; sections, unwind tables and symbols are looked at when the first
// address is asked for. Rules, the first that knows the address answers:
//   1. an entry of a PLT section            (one FDE covers them all, but each is a function)
//   2. the range of an FDE                  (names inside it do not split it)
//   3. a symbol in the gap between two FDEs, or what is there of one that began before it
// Invariant: an answer has the address asked for and lies in one executable segment, whatever the file says.
#include "elf/image.h"

#include <sys/stat.h>

#include <functional>

#include "elf/contents.h"
#include "elf/eh_frame.h"
#include "elf/symbols.h"

namespace weir::elf {

namespace {

struct Plt {
  VRange range;
  uint64_t entry_size;
};

std::vector<Plt> find_plts(std::span<const Section> sections) {
  std::vector<Plt> plts;
  for (const Section& s : sections) {
    // .plt, .plt.got, .plt.sec, .plt.bnd; lld keeps those of IFUNCs in .iplt.
    if (!s.is_code() || !(s.name.starts_with(".plt") || s.name == ".iplt")) continue;
    plts.push_back({s.range(), s.header.sh_entsize == 8 ? 8u : 16u});
  }
  return plts;
}

std::optional<VRange> plt_entry(std::span<const Plt> plts, Vaddr v) {
  for (const Plt& plt : plts) {
    if (!plt.range.contains(v)) continue;
    Vaddr begin = v + -static_cast<int64_t>((v.value - plt.range.begin.value) % plt.entry_size);
    return VRange{begin, std::min(end_of(begin, plt.entry_size), plt.range.end)};
  }
  return std::nullopt;
}

// What function_bounds() needs, made when it is first called.
struct Tables {
  std::vector<Section> sections;
  std::vector<Plt> plts;
  EhFrame frames;
  Symbols symbols;

  explicit Tables(const Contents& contents)
      : sections(read_sections(contents.file)),
        plts(find_plts(sections)),
        frames(contents, sections),
        symbols(contents, sections) {}

  std::optional<VRange> function_at(Vaddr v, VRange code) {
    if (std::optional<VRange> entry = plt_entry(plts, v)) return entry;
    EhFrame::Place place = frames.find(v);
    if (place.function) return place.function;
    const std::vector<VRange>& functions = symbols.functions_in(intersect(place.gap, code));
    auto after = std::ranges::upper_bound(functions, v, {}, &VRange::begin);
    if (after == functions.begin() || !std::prev(after)->contains(v)) return std::nullopt;
    return *std::prev(after);
  }

  // The end of the hole that `v` is in: there is no function at it.
  Vaddr next_function(Vaddr v, VRange code) {
    VRange gap = intersect(frames.find(v).gap, code);
    const std::vector<VRange>& functions = symbols.functions_in(gap);
    auto after = std::ranges::upper_bound(functions, v, {}, &VRange::begin);
    return after == functions.end() ? gap.end : after->begin;
  }
};

struct Note {
  std::string_view name;  // without its terminating zeros
  uint32_t type;
  Bytes description;
};

// The first note that `wanted` takes. A note: sizes of name and description, type (4 bytes each), name, description; both
// are padded to 4 bytes, or to 8 where the segment is aligned to 8.
std::optional<Note> find_note(const Contents& contents, const std::function<bool(const Note&)>& wanted) {
  for (const Segment& s : contents.segments) {
    if (s.type != PT_NOTE) continue;
    Bytes notes = slice(contents.file, s.offset, s.file_size);
    uint64_t align = s.align == 8 ? 8 : 4;
    auto padded = [&](uint64_t n) { return (n + align - 1) / align * align; };
    while (auto header = load<Elf64_Nhdr>(notes, 0)) {
      uint64_t description_at = padded(sizeof *header + header->n_namesz);
      Bytes name = slice(notes, sizeof *header, header->n_namesz);
      std::string_view text(reinterpret_cast<const char*>(name.data()), name.size());
      Note note{text.substr(0, text.find('\0')), header->n_type, slice(notes, description_at, header->n_descsz)};
      if (wanted(note)) return note;
      notes = slice(notes, padded(description_at + header->n_descsz));
    }
  }
  return std::nullopt;
}

}  // namespace

struct Image::Parts {
  std::string path;
  Mapping mapping;               // the bytes are here,
  std::vector<std::byte> owned;  // or here
  Contents contents;
  std::optional<Tables> tables;
  timespec modified{}, changed{};
};

Image::Image(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Image::~Image() = default;

Result<std::unique_ptr<Image>> Image::open(Fd file, std::string path) {
  struct stat status;
  if (fstat(file.get(), &status) != 0) return fail_errno("{}", path);
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return fail("{}: not an ELF file", path);
  size_t size = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return fail_errno("{}: cannot map", path);
  auto parts = std::make_unique<Parts>();
  parts->mapping = Mapping(data, size);
  parts->contents.file = parts->mapping.bytes();
  parts->modified = status.st_mtim, parts->changed = status.st_ctim;
  TRY(parts->contents.segments, read_segments(parts->contents.file, path));
  parts->path = std::move(path);
  return std::unique_ptr<Image>(new Image(std::move(parts)));
}

Result<std::unique_ptr<Image>> Image::from_memory(std::vector<std::byte> bytes, std::string path) {
  auto parts = std::make_unique<Parts>();
  parts->owned = std::move(bytes);
  parts->contents.file = parts->owned;
  TRY(parts->contents.segments, read_segments(parts->contents.file, path));
  parts->path = std::move(path);
  return std::unique_ptr<Image>(new Image(std::move(parts)));
}

const std::string& Image::path() const { return parts_->path; }
std::span<const Segment> Image::segments() const { return parts_->contents.segments; }
std::span<const std::byte> Image::bytes() const { return parts_->contents.file; }

timespec Image::modified() const { return parts_->modified; }
timespec Image::changed() const { return parts_->changed; }

std::string Image::build_id() const {
  auto is_build_id = [](const Note& n) { return n.name == "GNU" && n.type == NT_GNU_BUILD_ID; };
  std::optional<Note> note = find_note(parts_->contents, is_build_id);
  std::string text;
  if (note)
    for (std::byte b : note->description)
      for (int shift : {4, 0}) text += "0123456789abcdef"[std::to_integer<unsigned>(b) >> shift & 15];
  return text;
}

bool Image::uses_address_sanitizer() const {
  const Segment* dynamic = parts_->contents.find(PT_DYNAMIC);
  if (!dynamic) return false;
  Vaddr strings;
  uint64_t size = 0;
  Bytes table = parts_->contents.at(dynamic->vaddr);
  for (uint64_t offset = 0;; offset += sizeof(Elf64_Dyn)) {
    auto entry = load<Elf64_Dyn>(table, offset);
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_STRTAB) strings = {entry->d_un.d_ptr};
    if (entry->d_tag == DT_STRSZ) size = entry->d_un.d_val;
  }
  Bytes names = parts_->contents.at(strings);
  auto has = [&](std::string_view name) {
    return memmem(names.data(), std::min<uint64_t>(size, names.size()), name.data(), name.size());
  };
  return has("asan") && (has("__asan_init") || has("libasan.so"));
}

std::optional<VRange> Image::function_bounds(Vaddr v) const {
  std::optional<VRange> code = parts_->contents.code_at(v);
  if (!code) return std::nullopt;
  if (!parts_->tables) parts_->tables.emplace(parts_->contents);
  std::optional<VRange> function = parts_->tables->function_at(v, *code);
  return function ? std::optional(intersect(*function, *code)) : std::nullopt;
}

bool Image::is_part(Vaddr v) const {
  std::optional<VRange> bounds = function_bounds(v);
  if (!bounds || bounds->begin != v) return false;
  Symbols::Name name = parts_->tables->symbols.name_at(v);
  return name == Symbols::Name::Part || (name != Symbols::Name::Function && parts_->tables->frames.is_under_way(v));
}

bool Image::has_symbol(Vaddr v) const {
  return function_bounds(v) && parts_->tables->symbols.name_at(v) != Symbols::Name::None;
}

bool Image::has_frame(Vaddr v) const { return function_bounds(v) && parts_->tables->frames.find(v).function; }

Vaddr Image::next_function(Vaddr v) const {
  std::optional<VRange> code = parts_->contents.code_at(v);
  if (!code || function_bounds(v)) return v;
  return parts_->tables->next_function(v, *code);
}

}  // namespace weir::elf
