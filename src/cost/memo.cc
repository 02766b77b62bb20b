#include "cost/memo.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>

#include "base/fd.h"

namespace weir::cost {

namespace {

constexpr uint64_t magic = 0x3174736F43726557;  // "WerCost1"
constexpr size_t most_slots = 1 << 19, most_figures = 1 << 22;

struct FileHead {
  uint64_t magic;
  uint64_t checksum;  // of the rest of the head
  uint64_t maker;
  char cpu[32];
  uint16_t capacity[max_resources];
  uint16_t width, resources;
  uint32_t slots, figures, pad;
};
static_assert(sizeof(FileHead) % 8 == 0 && sizeof(Entry) == 32 && sizeof(Figure) == 4);

uint64_t seal_of(const FileHead& head) {
  return checksum_of(std::as_bytes(std::span(&head, 1)).subspan(offsetof(FileHead, maker)));
}

uint32_t seal_of(const Entry& e, std::span<const Figure> figures) {
  uint64_t own = checksum_of(std::as_bytes(std::span(&e, 1)).first(offsetof(Entry, checksum)));
  return static_cast<uint32_t>(checksum_of(std::as_bytes(figures), own) >> 32);
}

// Where the key is in a table, or the empty place where it would be. (Only in a damaged file there may be neither.)
size_t slot(std::span<const Entry> table, Key key) {
  size_t mask = table.size() - 1;
  uint64_t mixed = (key.low ^ std::rotl(key.high, 29)) * 0x9E3779B97F4A7C15ull;
  size_t i = (mixed ^ mixed >> 32) & mask;
  for (size_t left = mask; left && table[i].key != Key{} && table[i].key != key; left--) i = (i + 1) & mask;
  return i;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  return write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

const Descriptor* Memo::find(Key key) const {
  if (table_.empty()) return nullptr;
  const Entry& e = table_[slot(table_, key)];
  return e.key == key ? &e.descriptor : nullptr;
}

const Descriptor& Memo::insert(Key key, const Descriptor& d) {
  if ((size_ + 1) * 2 > table_.size()) grow();
  Entry& e = table_[slot(table_, key)];
  size_ += e.key != key;
  e = {key, d};
  return e.descriptor;
}

const Descriptor& Memo::insert(Key key, Descriptor d, std::span<const Figure> figures) {
  d.first = static_cast<uint32_t>(pool_.size());
  pool_.insert(pool_.end(), figures.begin(), figures.end());
  return insert(key, d);
}

void Memo::grow() {
  std::vector<Entry> old = std::move(table_);
  table_.assign(old.empty() ? 4096 : old.size() * 2, {});
  for (const Entry& e : old)
    if (e.key != Key{}) table_[slot(table_, e.key)] = e;
}

bool MemoFile::open(const std::string& path, uint64_t maker, Cpu& cpu) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat st;
  if (!fd || fstat(fd.get(), &st) || st.st_uid != geteuid() || st.st_size < static_cast<off_t>(sizeof(FileHead)))
    return false;
  auto size = static_cast<size_t>(st.st_size);
  void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (p == MAP_FAILED) return false;
  Mapping file(p, size);
  FileHead head;
  memcpy(&head, p, sizeof head);
  if (head.magic != magic || head.maker != maker || head.checksum != seal_of(head) || !head.width ||
      head.resources > max_resources || !std::has_single_bit(head.slots) || head.slots > most_slots ||
      head.figures > most_figures || std::count(head.capacity, head.capacity + head.resources, 0) ||
      size != sizeof head + head.slots * sizeof(Entry) + head.figures * sizeof(Figure))
    return false;
  cpu = {std::string(head.cpu, strnlen(head.cpu, sizeof head.cpu)),
         head.width,
         {head.capacity, head.capacity + head.resources}};
  table_ = {reinterpret_cast<const Entry*>(file.data() + sizeof head), head.slots};
  pool_ = {reinterpret_cast<const Figure*>(table_.data() + table_.size()), head.figures};
  resources_ = head.resources;
  file_ = std::move(file);
  return true;
}

// The checksum says that we wrote it; the rest, that it does no harm even if we did not.
bool MemoFile::is_sound(const Entry& e) const {
  const Descriptor& d = e.descriptor;
  if (d.first > pool_.size() || d.figures() > pool_.size() - d.first) return false;
  std::span<const Figure> figures = pool_.subspan(d.first, d.figures());
  return e.checksum == seal_of(e, figures) &&
         std::ranges::all_of(figures.last(d.uses), [&](Figure use) { return use.of < resources_; });
}

const Descriptor* MemoFile::take(Key key, Memo& memo) const {
  if (table_.empty()) return nullptr;
  const Entry& e = table_[slot(table_, key)];
  if (e.key != key || !is_sound(e)) return nullptr;
  return &memo.insert(key, e.descriptor, pool_.subspan(e.descriptor.first, e.descriptor.figures()));
}

void MemoFile::save(const std::string& path, uint64_t maker, const Cpu& cpu, Memo memo) const {
  for (const Entry& e : table_)
    if (e.key != Key{} && !memo.find(e.key)) take(e.key, memo);
  std::vector<Entry> table(memo.table().begin(), memo.table().end());
  for (Entry& e : table)
    if (e.key != Key{}) e.checksum = seal_of(e, memo.figures(e.descriptor));
  FileHead head{};
  if (table.size() > most_slots || memo.pool().size() > most_figures || cpu.name.size() > sizeof head.cpu) return;
  head.magic = magic, head.maker = maker;
  memcpy(head.cpu, cpu.name.data(), cpu.name.size());
  std::ranges::copy(cpu.capacity, head.capacity);
  head.width = cpu.width, head.resources = static_cast<uint16_t>(cpu.capacity.size());
  head.slots = static_cast<uint32_t>(table.size()), head.figures = static_cast<uint32_t>(memo.pool().size());
  head.checksum = seal_of(head);
  std::string temporary = fmt::format("{}.{}", path, getpid());
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return;
  bool written = write_all(fd.get(), std::as_bytes(std::span(&head, 1))) &&
                 write_all(fd.get(), std::as_bytes(std::span(table))) &&
                 write_all(fd.get(), std::as_bytes(std::span(memo.pool())));
  if (!written || rename(temporary.c_str(), path.c_str())) unlink(temporary.c_str());
}

}  // namespace weir::cost
