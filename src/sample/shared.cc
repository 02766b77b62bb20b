#include "sample/shared.h"

#include <cstring>

#include "base/processor.h"

extern "C" const std::byte weir_sampler_image[], weir_sampler_image_end[];

namespace weir::sample {

namespace {
constexpr uint32_t tree_capacity = 1 << 20;  // nodes
constexpr uint64_t tree_stride = 64 << 20, trees_size = tree_stride * rt::max_sample_slots;
static_assert(CallTree::bytes_for(tree_capacity, rt::trace_capacity) <= tree_stride);
}  // namespace

Result<Shared> Shared::create() {
  Shared s;
  constexpr size_t page = 4096;
  auto size = static_cast<size_t>(weir_sampler_image_end - weir_sampler_image);
  TRY(s.code_, SharedMemory::create("weir-sampler", (size + page - 1) & ~(page - 1)));
  memcpy(s.code_.mapping.data(), weir_sampler_image, size);
  TRY(s.tables_, SharedMemory::create("weir-tables", rt::sample_tables_size));
  TRY(s.slots_, SharedMemory::create("weir-slots", rt::sample_slots_size, SharedMemory::Writer::Both));
  void* trees = mmap(nullptr, trees_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (trees == MAP_FAILED) return fail_errno("call paths (ulimit -v must allow {} GiB)", trees_size >> 30);
  s.trees_ = Mapping(trees, trees_size);
  CHECK(s.header().version == rt::sampler_version);
  s.control().version = rt::sampler_version;
  s.control().has_fsbase = processor().has_fsgsbase;
  return s;
}

std::vector<Shared::File> Shared::files() const {
  return {{code_.file.get(), rt::sampler_base, code_.mapping.size(), PROT_READ | PROT_EXEC},
          {tables_.file.get(), rt::sample_tables_base, rt::sample_tables_size, PROT_READ},
          {slots_.file.get(), rt::sample_slots_base, rt::sample_slots_size, PROT_READ | PROT_WRITE}};
}

CallTree Shared::tree(uint32_t place) const {
  auto* head = reinterpret_cast<TreeHead*>(trees_.data() + place * tree_stride);
  return head->capacity ? CallTree(head) : CallTree::make(head, tree_capacity, rt::trace_capacity);
}

uint64_t Shared::append(std::span<const std::byte> bytes) {
  constexpr uint64_t line = 64;
  uint64_t size = (bytes.size() + line - 1) & ~(line - 1);
  uint64_t at = __atomic_load_n(&used_, __ATOMIC_RELAXED);
  do
    if (size > rt::sample_tables_size - at) return 0;
  while (!__atomic_compare_exchange_n(&used_, &at, at + size, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  memcpy(tables_.mapping.data() + at, bytes.data(), bytes.size());
  return rt::sample_tables_base + at;
}

// As the handler does it.
uint32_t Shared::slot_of(uint64_t key) {
  uint64_t* keys = control().keys;
  constexpr uint32_t mask = rt::max_sample_slots - 1;
  uint32_t vacant = 0, place = rt::first_place(key);
  for (uint32_t i = 0; i < rt::max_sample_slots; i++, place = (place + 1) & mask) {
    if (place == 0) continue;
    uint64_t found = __atomic_load_n(&keys[place], __ATOMIC_ACQUIRE);
    if (found == key) return place;
    if (!vacant && (found == rt::free_key || found == rt::used_key)) vacant = place;
    if (found == rt::free_key) break;
  }
  uint64_t was = vacant ? __atomic_load_n(&keys[vacant], __ATOMIC_RELAXED) : key;
  bool is_vacant = was == rt::free_key || was == rt::used_key;
  if (is_vacant && __atomic_compare_exchange_n(&keys[vacant], &was, key, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return vacant;
  return 0;
}

void Shared::warm(uint64_t key) {
  constexpr size_t page = 4096, map = rt::trace_capacity * sizeof(rt::Link), maps = (rt::map_count + 1) * map;
  uint32_t place = slot_of(key);
  if (!place) return;
  auto populate = [&](uint64_t offset, size_t size) {
    madvise(slots_.mapping.data() + place * rt::sample_slot_stride + offset, size, MADV_POPULATE_WRITE);
  };
  populate(0, page);
  populate(rt::handler_stack - page, page);
  for (uint64_t first :
       {uint64_t{0}, rt::map_count * map, maps, maps + rt::map_count * map})  // the first map, and the fresh one
    populate(rt::trace_offset + first, page);
  populate(rt::trace_offset + 2 * maps, rt::known_count * sizeof(rt::KnownRule));
  populate(rt::records_offset, page);
}

void Shared::free(uint32_t place) {
  CHECK(madvise(&slot(place), rt::sample_slot_stride, MADV_REMOVE) == 0);
  CHECK(madvise(trees_.data() + place * tree_stride, tree_stride, MADV_REMOVE) == 0);
  // (Never as a free one again: somebody's key may lie behind it.)
  __atomic_store_n(&control().keys[place], rt::used_key, __ATOMIC_RELEASE);
}

}  // namespace weir::sample
