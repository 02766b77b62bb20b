#include "engine/archive.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace weir::engine {

namespace {

constexpr uint64_t magic = 0x3172696557637241;  // "ArcWeir1"
constexpr size_t max_size = 256u << 20;

struct FileHead {
  uint64_t magic;
  int64_t writer_size, writer_seconds, writer_nanoseconds;  // of the weir that wrote it
  uint64_t units;
};

FileHead own_head() {
  struct stat st{};
  if (stat("/proc/self/exe", &st)) return {};
  return {magic, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, 0};
}

// $XDG_CACHE_HOME/weir or ~/.cache/weir, for us alone; empty where there is none.
std::string directory() {
  const char* xdg = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  if (!(xdg && *xdg == '/') && !(home && *home == '/')) return {};
  std::string base = xdg && *xdg == '/' ? xdg : std::string(home) + "/.cache";
  mkdir(base.c_str(), 0700);
  std::string own = base + "/weir";
  mkdir(own.c_str(), 0700);
  struct stat st;
  if (stat(own.c_str(), &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022)) return {};
  return own;
}

template <class T>
void append(std::vector<std::byte>& out, const T& value) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

// Four sums side by side: a multiplication need not wait for the one before.
uint64_t checksum_of(std::span<const std::byte> bytes) {
  constexpr uint64_t k = 0xD6E8FEB86659FD93ull;
  uint64_t h[4] = {bytes.size() + 1, 2, 3, 4}, w;
  size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32)
    for (size_t lane = 0; lane < 4; lane++) {
      memcpy(&w, &bytes[i + 8 * lane], 8);
      h[lane] = (h[lane] ^ w) * k;
      h[lane] ^= h[lane] >> 32;
    }
  for (; i < bytes.size(); i++) h[0] = (h[0] ^ static_cast<uint64_t>(bytes[i])) * k;
  for (uint64_t x : h) h[0] = (h[0] ^ x ^ x >> 29) * k;
  return h[0];
}

bool UnitView::is_sound() const {
  if (bytes_.size() < sizeof(ArchivedUnit) || reinterpret_cast<uintptr_t>(bytes_.data()) % 8) return false;
  const ArchivedUnit& h = head();
  constexpr uint32_t many = 1 << 24;
  for (uint32_t n : {h.blocks, h.table, h.exits, h.marks, h.relocs, h.code_size})
    if (n > many) return false;
  if (h.total != bytes_.size() || sizeof(ArchivedUnit) + relocs_end() + h.code_size > bytes_.size()) return false;
  if (checksum_of(bytes_.subspan(8)) != h.checksum || h.entry < h.begin || h.entry >= h.end ||
      h.entry_offset >= h.code_size)
    return false;
  // The checksum says that we wrote it; these say that it does no harm even if we did not.
  auto fits = [&](uint32_t offset, uint32_t size) { return offset <= h.code_size && size <= h.code_size - offset; };
  for (const instrument::Reloc& r : relocs())
    if (!fits(r.offset, r.kind == instrument::Reloc::Absolute ? 8 : 4)) return false;
  for (const ArchivedExit& e : exits())
    if (!fits(e.offset, 4) || e.stub > h.code_size) return false;
  return true;
}

std::shared_ptr<Archive> Archive::open(const elf::Image& image, const std::string& tool) {
  std::string id = image.build_id(), where = directory();
  if (id.empty() || tool.empty() || where.empty()) return nullptr;
  static std::map<std::string, std::weak_ptr<Archive>> opened;
  std::string path = fmt::format("{}/{}-{}", where, id, tool);
  if (auto known = opened[path].lock()) return known;
  auto archive = std::make_shared<Archive>();
  opened[path] = archive;
  archive->path_ = path;
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat st;
  if (!fd || fstat(fd.get(), &st) || st.st_uid != geteuid() || st.st_size < static_cast<off_t>(sizeof(FileHead)) ||
      static_cast<size_t>(st.st_size) > max_size)
    return archive;
  auto size = static_cast<size_t>(st.st_size);
  void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (p == MAP_FAILED) return archive;
  archive->file_ = Mapping(p, size);
  FileHead head, own = own_head();
  memcpy(&head, p, sizeof head);
  own.units = head.units;
  if (memcmp(&head, &own, sizeof head) || head.units > size / sizeof(Index) ||
      sizeof head + head.units * sizeof(Index) > size)
    return archive;
  archive->index_ = {reinterpret_cast<const Index*>(archive->file_.data() + sizeof head), head.units};
  return archive;
}

std::optional<UnitView> Archive::find(elf::Vaddr entry) const {
  auto i =
      std::lower_bound(index_.begin(), index_.end(), entry.value, [](const Index& x, uint64_t v) { return x.entry < v; });
  if (i == index_.end() || i->entry != entry.value || i->offset > file_.size() || i->size > file_.size() - i->offset)
    return {};
  UnitView view(std::span<const std::byte>(file_.bytes()).subspan(i->offset, i->size));
  if (!view.is_sound() || view.head().entry != entry.value) return {};
  return view;
}

void Archive::add(const instrument::Lowered& l, std::span<const std::byte> code, std::span<const std::byte> source,
                  AppPc entry, AppRange bounds, CachePc base, uint64_t bias, uint32_t first_exit) {
  if ((bounds.end.value - bias) >> 32) return;
  std::vector<std::byte> out;
  ArchivedUnit head{};
  head.code_size = l.size;
  head.entry = entry.value - bias, head.begin = bounds.begin.value - bias, head.end = bounds.end.value - bias;
  head.source = checksum_of(source);
  head.line_offset = base.value % 64;
  head.entry_offset = l.entry, head.has_high = l.has_high;
  head.blocks = static_cast<uint32_t>(l.blocks.size()), head.table = static_cast<uint32_t>(l.table.size()),
  head.exits = static_cast<uint32_t>(l.exits.size());
  head.marks = static_cast<uint32_t>(l.marks.size()), head.relocs = static_cast<uint32_t>(l.relocs.size());
  append(out, head);
  for (const auto& b : l.blocks) append(out, ArchivedPair{static_cast<uint32_t>(b.app - bounds.begin), b.offset});
  for (const auto& t : l.table) append(out, ArchivedPair{static_cast<uint32_t>(t.app - bounds.begin), t.offset});
  for (const auto& e : l.exits) append(out, ArchivedExit{e.target.value - bias, e.offset, e.stub, e.pops, e.kind, {}});
  for (const auto& m : l.marks) append(out, m);
  size_t at = out.size();
  for (const auto& r : l.relocs) append(out, r);
  auto* relocs = reinterpret_cast<instrument::Reloc*>(&out[at]);
  size_t code_at = out.size();
  out.insert(out.end(), code.begin(), code.end());
  for (size_t i = 0; i < l.relocs.size(); i++) {
    std::byte* place = &out[code_at + l.relocs[i].offset];
    uint64_t value = 0;
    bool wide = l.relocs[i].kind == instrument::Reloc::Absolute;
    memcpy(&value, place, wide ? 8 : 4);
    switch (l.relocs[i].kind) {
      case instrument::Reloc::Rip: value -= bias - base.value; break;
      case instrument::Reloc::Low:
      case instrument::Reloc::Absolute: value -= bias; break;
      case instrument::Reloc::High:
        value = 0;
        relocs[i].value -= static_cast<uint32_t>(bias);
        break;
      case instrument::Reloc::ExitId: value -= first_exit; break;
    }
    memcpy(place, &value, wide ? 8 : 4);
  }
  out.resize((out.size() + 7) & ~size_t{7});
  auto* h = reinterpret_cast<ArchivedUnit*>(out.data());
  h->total = static_cast<uint32_t>(out.size());
  h->checksum = checksum_of(std::span<const std::byte>(out).subspan(8));
  added_.push_back(std::move(out));
}

std::optional<UnitView> Archive::next(const UnitView& unit) const {
  std::span<const std::byte> file = file_.bytes();
  auto offset = static_cast<size_t>(unit.bytes().data() + unit.bytes().size() - file.data());
  ArchivedUnit head;
  if (offset + sizeof head > file.size()) return {};
  memcpy(&head, &file[offset], sizeof head);
  if (head.total > file.size() - offset) return {};
  UnitView view(file.subspan(offset, head.total));
  return view.is_sound() ? std::optional(view) : std::nullopt;
}

void Archive::save() {
  if (added_.empty()) return;
  std::vector<std::pair<uint64_t, std::span<const std::byte>>> units;  // by entry, in the order of the file
  std::vector<Index> index(index_.begin(), index_.end());
  std::sort(index.begin(), index.end(), [](const Index& a, const Index& b) { return a.offset < b.offset; });
  for (const Index& i : index)
    if (auto view = find({i.entry})) units.push_back({i.entry, view->bytes()});
  for (const auto& a : added_) units.push_back({UnitView(a).head().entry, a});
  FileHead head = own_head();
  head.units = units.size();
  uint64_t offset = sizeof head + units.size() * sizeof(Index);
  index.clear();
  for (const auto& [entry, bytes] : units) {
    index.push_back({entry, offset, bytes.size()});
    offset += bytes.size();
  }
  if (offset > max_size) return;
  std::stable_sort(index.begin(), index.end(), [](const Index& a, const Index& b) { return a.entry < b.entry; });
  std::vector<std::byte> out;
  out.reserve(offset);
  append(out, head);
  for (const Index& i : index) append(out, i);
  for (const auto& [entry, bytes] : units) out.insert(out.end(), bytes.begin(), bytes.end());
  std::string temporary = fmt::format("{}.{}", path_, getpid());
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  bool written = fd && write(fd.get(), out.data(), out.size()) == static_cast<ssize_t>(out.size());
  if (!written || rename(temporary.c_str(), path_.c_str())) unlink(temporary.c_str());
  added_.clear();
}

}  // namespace weir::engine
