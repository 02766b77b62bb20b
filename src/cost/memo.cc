#include "cost/memo.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>

#include "base/fd.h"

namespace weir::cost {

namespace {

constexpr uint64_t magic = 0x3174736F43726557;  // "WerCost1"
constexpr size_t most_entries = 1 << 18, most_figures = 1 << 22;

struct FileHead {
  uint64_t magic;
  uint64_t checksum;  // of all that follows it
  uint64_t maker;
  char cpu[32];
  uint16_t capacity[max_resources];
  uint16_t width, resources;
  uint32_t used, slots, figures;
};
static_assert(sizeof(FileHead) % 8 == 0 && sizeof(Memo::Entry) == 32 && sizeof(Figure) == 4);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

uint64_t checksum_of_file(const FileHead& head, std::span<const Memo::Entry> table, std::span<const Figure> pool) {
  uint64_t sum = checksum_of(bytes_of(head).subspan(offsetof(FileHead, maker)));
  return checksum_of(std::as_bytes(pool), checksum_of(std::as_bytes(table), sum));
}

bool read_all(int fd, void* to, size_t size) { return read(fd, to, size) == static_cast<ssize_t>(size); }
bool write_all(int fd, const void* from, size_t size) { return write(fd, from, size) == static_cast<ssize_t>(size); }

// The checksum says that we wrote it; this, that it does no harm even if we did not.
bool is_sound(const FileHead& head, std::span<const Memo::Entry> table, std::span<const Figure> pool) {
  size_t used = 0;
  for (const Memo::Entry& e : table) {
    const Descriptor& d = e.descriptor;
    if (e.key == Key{}) continue;
    used++;
    if (d.first > pool.size() || d.figures() > pool.size() - d.first) return false;
    for (Figure use : pool.subspan(d.first, d.figures()).last(d.uses))
      if (use.of >= head.resources) return false;
  }
  return used == head.used && used * 2 <= table.size();
}

}  // namespace

const Descriptor* Memo::find(Key key) const {
  if (table_.empty()) return nullptr;
  const Entry& e = table_[slot(key)];
  return e.key == key ? &e.descriptor : nullptr;
}

const Descriptor& Memo::insert(Key key, const Descriptor& d) {
  if ((size_ + 1) * 2 > table_.size()) grow();
  Entry& e = table_[slot(key)];
  size_ += e.key != key;
  e = {key, d};
  return e.descriptor;
}

size_t Memo::slot(Key key) const {
  size_t mask = table_.size() - 1;
  uint64_t mixed = (key.low ^ std::rotl(key.high, 29)) * 0x9E3779B97F4A7C15ull;
  size_t i = (mixed ^ mixed >> 32) & mask;
  while (table_[i].key != Key{} && table_[i].key != key) i = (i + 1) & mask;
  return i;
}

void Memo::grow() {
  std::vector<Entry> old = std::move(table_);
  table_.assign(old.empty() ? 4096 : old.size() * 2, {});
  for (const Entry& e : old)
    if (e.key != Key{}) table_[slot(e.key)] = e;
}

bool Memo::load(const std::string& path, uint64_t maker, Cpu& cpu) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat st;
  FileHead head;
  if (!fd || fstat(fd.get(), &st) || st.st_uid != geteuid() || !read_all(fd.get(), &head, sizeof head)) return false;
  if (head.magic != magic || head.maker != maker || !head.width || head.resources > max_resources ||
      !std::has_single_bit(head.slots) || head.slots > 2 * most_entries || head.figures > most_figures)
    return false;
  std::vector<Entry> table(head.slots);
  std::vector<Figure> pool(head.figures);
  if (!read_all(fd.get(), table.data(), std::span(table).size_bytes()) ||
      !read_all(fd.get(), pool.data(), std::span(pool).size_bytes()) || checksum_of_file(head, table, pool) != head.checksum ||
      !is_sound(head, table, pool) || std::count(head.capacity, head.capacity + head.resources, 0))
    return false;
  cpu = {std::string(head.cpu, strnlen(head.cpu, sizeof head.cpu)), head.width,
         {head.capacity, head.capacity + head.resources}};
  table_ = std::move(table), pool_ = std::move(pool), size_ = head.used;
  return true;
}

void Memo::save(const std::string& path, uint64_t maker, const Cpu& cpu) const {
  FileHead head{};
  if (size_ > most_entries || pool_.size() > most_figures || cpu.name.size() > sizeof head.cpu) return;
  head.magic = magic, head.maker = maker;
  memcpy(head.cpu, cpu.name.data(), cpu.name.size());
  std::ranges::copy(cpu.capacity, head.capacity);
  head.width = cpu.width, head.resources = static_cast<uint16_t>(cpu.capacity.size());
  head.used = static_cast<uint32_t>(size_), head.slots = static_cast<uint32_t>(table_.size());
  head.figures = static_cast<uint32_t>(pool_.size());
  head.checksum = checksum_of_file(head, table_, pool_);
  std::string temporary = fmt::format("{}.{}", path, getpid());
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return;
  bool written = write_all(fd.get(), &head, sizeof head) &&
                 write_all(fd.get(), table_.data(), std::span(table_).size_bytes()) &&
                 write_all(fd.get(), pool_.data(), std::span(pool_).size_bytes());
  if (!written || rename(temporary.c_str(), path.c_str())) unlink(temporary.c_str());
}

// Four sums side by side: a multiplication need not wait for the one before.
uint64_t checksum_of(std::span<const std::byte> bytes, uint64_t seed) {
  constexpr uint64_t k = 0xD6E8FEB86659FD93ull;
  uint64_t h[4] = {seed ^ (bytes.size() + 1), 2, 3, 4}, w;
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

std::string cache_directory() {
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

}  // namespace weir::cost
