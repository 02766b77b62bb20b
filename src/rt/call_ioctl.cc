// ioctl(2). Most numbers say what the request does with the memory at its argument:
//
//     bits 31-30     1: the kernel reads it; 2: writes it; 3: both; 0: neither, or an old number
//     bits 29-16     how many bytes
//     bits 15-8      the kind of device
//
// Old ones, and some that say something else than they do, are listed in rt/call_ioctls.inc. Of other old ones nothing is known. Some
// kinds of devices have pointers in their structures, or go on behind them: what these lead to is unknown, too.

#include "rt/call_functions.h"

namespace weir::rt::calls {

namespace {

uint64_t at(const Teller& t) { return t.arg(2); }

// An interface's name is a text, in 16 bytes; up to 24 bytes follow.
constexpr uint64_t name_size = 16, request_size = 40;
void tell_name(Teller& t, uint64_t begin, uint64_t room = name_size) {
  uint64_t size = t.is_before() ? t.text_size(begin, room) : 0;
  t.reads(2, begin, size);
  t.copies(2, begin + size, room - size);
}
void get_interface(Teller& t) {
  tell_name(t, at(t));
  t.copies(2, at(t) + name_size, request_size - name_size);
  t.writes(2, at(t), request_size);
}
template <uint64_t size>
void set_interface(Teller& t) {
  tell_name(t, at(t));
  t.reads(2, at(t) + name_size, size);
  t.copies(2, at(t) + name_size + size, request_size - name_size - size);
}
void interface_name(Teller& t) {
  t.copies(2, at(t), name_size);
  t.reads(2, at(t) + name_size, 4);
  t.copies(2, at(t) + name_size + 4, request_size - name_size - 4);
  t.writes(2, at(t), request_size);
}
void bridge_name(Teller& t) { tell_name(t, at(t)); }

// size 4, hole 4, pointer 8; with a null the size is asked
void interfaces(Teller& t) {
  uint32_t room = t.kept32(0, at(t));
  uint64_t list = t.load64(at(t) + 8);
  t.before(list ? Use::Read : Use::Copied, 2, at(t), 4);
  t.copies(2, at(t) + 4, 4);
  t.reads(2, at(t) + 8, 8);
  t.writes(2, at(t), 4);
  if (list) t.fills(2, list, room, t.load32(at(t)));
}

// hole 8, three addresses of 16, flags 2, …, the device's name at 88
void route(Teller& t) {
  constexpr uint64_t size = 120, device = 88;
  t.reads(2, at(t), size);
  if (uint64_t name = t.load64(at(t) + device)) tell_name(t, name, name_size - 1);
}

void open_tunnel(Teller& t) {
  tell_name(t, at(t));
  t.reads(2, at(t) + name_size, 2);
  t.copies(2, at(t) + name_size + 2, request_size - name_size - 2);
  t.writes(2, at(t), request_size);
}

// four flags of 2, line 1, characters 8, hole 1
void set_old_terminal(Teller& t) {
  t.reads(2, at(t), 17);
  t.copies(2, at(t) + 17, 1);
}

// operation 4, flags 4, size 4, hole 4, pointer 8
void block_partition(Teller& t) {
  t.reads(2, at(t), 4);
  t.copies(2, at(t) + 4, 12);
  t.reads(2, at(t) + 16, 8);
  t.reads(2, t.load64(at(t) + 16), 20);
}

void filter_text(Teller& t) { t.text(2, at(t)); }

void counter_attributes(Teller& t) {
  uint64_t size = t.load32(at(t) + 4);
  t.reads(2, at(t), size > 64 ? size : 64);
}

// room 4, count 4, numbers
void counter_programs(Teller& t) {
  uint64_t room = t.load32(at(t));
  t.reads(2, at(t), 4);
  t.writes(2, at(t) + 4, 4);
  t.fills(2, at(t) + 8, room * 4, uint64_t{t.load32(at(t) + 4)} * 4);
}

// bits 4, bytes 4, and these
void entropy(Teller& t) {
  t.reads(2, at(t), 8);
  if (auto size = int32_t(t.load32(at(t) + 4)); size > 0) t.reads(2, at(t) + 8, uint64_t(size));
}

// 16 bytes, count 2, reserved 6; each: descriptor 8, offset 8, result: bytes 8, status 4; reserved 4
void same_ranges(Teller& t) {
  uint64_t count = t.load<uint16_t>(at(t) + 16);
  t.reads(2, at(t), 24);
  for (uint64_t range = at(t) + 24; count; count--, range += 32) {
    t.reads(2, range, 16);
    t.writes(2, range + 16, 12);
    t.reads(2, range + 28, 4);
  }
}

// start 8, length 8, flags 4, found 4, room 4, reserved 4; extents of 56
void extents(Teller& t) {
  if (t.is_before()) t.kept(0) = t.load32(at(t) + 24);
  t.reads(2, at(t), 20);
  t.copies(2, at(t) + 20, 4);
  t.reads(2, at(t) + 24, 4);
  t.copies(2, at(t) + 28, 4);
  t.writes(2, at(t), 32);
  uint64_t room = t.kept(0), found = t.load32(at(t) + 20);
  t.fills(2, at(t) + 32, room * 56, found * 56);
}

enum class Word : uint8_t { None, Reads, Writes, Updates, ToldBy };
struct Request {
  uint32_t number;
  Word word;
  uint16_t size;
  CallFunction* function;
};
struct Action {
  Word word;
  uint16_t size;
  CallFunction* function;
};
constexpr Action none{Word::None, 0, nullptr};
consteval Action reads(int size) { return {Word::Reads, uint16_t(size), nullptr}; }
consteval Action writes(int size) { return {Word::Writes, uint16_t(size), nullptr}; }
consteval Action updates(int size) { return {Word::Updates, uint16_t(size), nullptr}; }
consteval Action told_by(CallFunction* f) { return {Word::ToldBy, 0, f}; }
consteval Request request(uint32_t number, Action a) { return {number, a.word, a.size, a.function}; }
constexpr Request requests[] = {
#define IOCTL(number, name, action) request(number, action),
#include "rt/call_ioctls.inc"
#undef IOCTL
};
constexpr int request_count = sizeof requests / sizeof *requests;
consteval bool is_sorted() {
  for (int i = 1; i < request_count; i++)
    if (requests[i - 1].number >= requests[i].number) return false;
  return true;
}
static_assert(is_sorted());

const Request* find_request(uint32_t number) {
  int low = 0, high = request_count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (requests[middle].number < number) low = middle + 1;
    else high = middle;
  }
  return low < request_count && requests[low].number == number ? &requests[low] : nullptr;
}

void tell_request(Teller& t, const Request& r) {
  switch (r.word) {
    case Word::None: return;
    case Word::Reads: return t.reads(2, at(t), r.size);
    case Word::Writes: return t.writes(2, at(t), r.size);
    case Word::Updates: return t.updates(2, at(t), r.size);
    case Word::ToldBy: return r.function(t);
  }
}

// Kinds of devices whose structures have pointers, or more behind them: graphics, video, USB, sound, SPI, binder, XFS, NVMe, btrfs,
// RDMA, userfaultfd, KVM, vhost, device mapper, FUSE, and RAID.
bool leads_further(uint32_t kind) {
  constexpr uint8_t kinds[] = {'d', 'V', 'U', 'A', 'k', 'b', 'X', 'N', 0x94, 0x1b, 0xaa, 0xae, 0xaf, 0xfd, 0xe5, 0x09};
  for (uint8_t k : kinds)
    if (k == kind) return true;
  return false;
}

}  // namespace

void ioctl(Teller& t) {
  uint32_t number = t.uint_arg(1), direction = number >> 30, size = number >> 16 & 0x3fff;
  if (const Request* r = find_request(number)) return tell_request(t, *r);
  if (!direction) {
    t.takes(2);
    return t.unknown(2, at(t));
  }
  if (direction & 1) t.reads(2, at(t), size);
  if (direction & 2) t.writes(2, at(t), size);
  if (leads_further(number >> 8 & 0xff)) t.unknown(2, at(t));
}

}  // namespace weir::rt::calls
