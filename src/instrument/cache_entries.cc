// What stands in the code cache besides functions: stubs, jumps to far places, entries of the table, guards.

#include <algorithm>

#include "instrument/lowering.h"

namespace weir::instrument {

void write_stub(std::span<std::byte> out, uint32_t exit_id) {
  Emitter e(out, {});
  e.mov32(thread(offsetof(rt::ThreadBlock, exit_id)), exit_id);
  e.jmp(thread(offsetof(rt::ThreadBlock, enter_link)));
}

void write_far_jump(std::span<std::byte> out, CachePc to) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(out.data() + 8), to.value, __ATOMIC_RELEASE);
  Emitter e(out, {});
  e.jmp(relative(8));
}

void write_table_entry(std::span<std::byte> out, CachePc at, CachePc to) {
  Emitter e(out, at);
  e.mov(x86::RCX, thread(gs_rcx));
  e.jmp(to);
}

namespace {
void look_in_runtime(Emitter& e, CachePc record) {
  e.lea(x86::RCX, e.place(record));
  e.jmp(thread(offsetof(rt::ThreadBlock, enter_guard)));
}
}  // namespace

CachePc write_guard(std::span<std::byte> out, CachePc at, CachePc record) {
  Emitter e(out, at);
  e.mov(thread(gs_rcx), x86::RCX);
  CachePc through_table = e.pc();
  look_in_runtime(e, record);
  return through_table;
}

namespace {
// A guard's own registers: these two, which are put back, and rcx, which waits in its slot. It leaves the flags alone.
constexpr Zmm zmm30{30};
constexpr Mask k7{7};

void keep_vector(Emitter& e) {
  e.vmovdqu64(thread(offsetof(rt::ThreadBlock, zmm30)), zmm30);
  e.kmovq(thread(offsetof(rt::ThreadBlock, k7)), k7);
}

void put_vector_back(Emitter& e) {
  e.vmovdqu64(zmm30, thread(offsetof(rt::ThreadBlock, zmm30)));
  e.kmovq(k7, thread(offsetof(rt::ThreadBlock, k7)));
}

// Sets rcx to 0 if both are the same, of `size` bytes up to 64.
void compare(Emitter& e, CachePc a, CachePc b, uint64_t size) {
  bool is_part = size < 64;
  if (is_part) {
    e.movabs(x86::RCX, (uint64_t{1} << size) - 1);
    e.kmovq(k7, x86::RCX);
    e.vmovdqu8(zmm30, k7, e.place(a));
  } else {
    e.vmovdqu64(zmm30, e.place(a));
  }
  e.vpcmpneqb(k7, is_part ? k7 : Mask{0}, zmm30, e.place(b));
  e.kmovq(x86::RCX, k7);
}
}  // namespace

CachePc write_wide_guard(std::span<std::byte> out, CachePc at, CachePc record, CachePc to, std::span<const Compared> code) {
  Emitter e(out, at);
  std::vector<uint32_t> changed;  // displacements of jumps
  e.mov(thread(gs_rcx), x86::RCX);
  CachePc through_table = e.pc();
  keep_vector(e);
  for (const Compared& c : code)
    for (uint64_t done = 0; done < c.size; done += 64) {
      // (The last 64 bytes, and some once more, rather than a part.)
      uint64_t begin = c.size >= 64 ? std::min(done, c.size - 64) : 0;
      compare(e, c.code + static_cast<int64_t>(begin), c.was + static_cast<int64_t>(begin), std::min<uint64_t>(c.size, 64));
      uint32_t same = e.jrcxz();
      changed.push_back(e.jmp());
      e.comes_here_short(same);
    }
  put_vector_back(e);
  e.jmp(to);
  for (uint32_t displacement : changed) e.comes_here(displacement);
  put_vector_back(e);
  look_in_runtime(e, record);
  return through_table;
}

}  // namespace weir::instrument
