// Calls on sockets: addresses, messages with their control data, options.

#include "rt/call_functions.h"

namespace weir::rt {

namespace {
constexpr uint64_t longest_address = 128;  // the kernel's struct sockaddr_storage
enum Family : uint16_t { AF_UNSPEC = 0, AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16 };

// How far an address is looked at: what is behind it is padding.
struct Looked {
  uint64_t begin, end;
};
Looked looked_at(Teller& t, uint64_t address, uint64_t size) {
  switch (t.load<uint16_t>(address)) {
    case AF_UNSPEC: return {2, 2};
    case AF_INET: return {2, 8};
    case AF_NETLINK: return {4, 12};
    case AF_UNIX:
      if (size > 2 && t.load<char>(address + 2)) return {2, 2 + t.text_size(address + 2, size - 2)};
      break;
    case AF_INET6:
      uint16_t prefix = t.load<uint16_t>(address + 8);
      bool has_scope = (prefix & 0xc0ff) == 0x80fe || (prefix & 0xff) == 0xff;  // link-local, multicast
      return {2, has_scope ? 28u : 24u};
  }
  return {2, size};
}
}  // namespace

void tell_address(Teller& t, int i, uint64_t address, uint64_t size) {
  if (t.is_after() || !size || size > longest_address) return;
  if (size < 2) return t.reads(i, address, size);
  Looked looked = looked_at(t, address, size);
  if (looked.begin > size) looked.begin = size;
  if (looked.end > size) looked.end = size;
  t.reads(i, address, 2);
  t.copies(i, address + 2, looked.begin - 2);
  t.reads(i, address + looked.begin, looked.end - looked.begin);
  t.copies(i, address + looked.end, size - looked.end);
}

void tell_address_out(Teller& t, int i, uint64_t address, int length_argument, uint64_t length, int k) {
  auto room = int32_t(t.kept32(k, length));
  t.updates(length_argument, length, 4);
  if (room > 0) t.fills(i, address, uint64_t(room), t.is_after() ? t.load32(length) : 0);
}

namespace calls {

void connect(Teller& t) {
  if (t.int_arg(2) > 0) tell_address(t, 1, t.arg(1), uint64_t(t.int_arg(2)));
}
void accept(Teller& t) {
  if (t.arg(1)) tell_address_out(t, 1, t.arg(1), 2, t.arg(2), 0);
}
void getsockname(Teller& t) { tell_address_out(t, 1, t.arg(1), 2, t.arg(2), 0); }
void sendto(Teller& t) {
  if (t.arg(4) && t.int_arg(5) > 0) tell_address(t, 4, t.arg(4), uint64_t(t.int_arg(5)));
}
void recvfrom(Teller& t) {
  if (t.arg(4)) tell_address_out(t, 4, t.arg(4), 5, t.arg(5), 0);
}

namespace {
struct Message {  // the kernel's struct user_msghdr
  uint64_t name;
  uint32_t name_size, hole;
  uint64_t vectors, count, control, control_size;
  uint32_t flags, hole_too;
};
static_assert(sizeof(Message) == 56);
constexpr uint64_t name_size_offset = 8, control_size_offset = 40, flags_offset = 48;
constexpr uint64_t in_array = 64, length_offset = 56;  // struct mmsghdr

bool tell_head(Teller& t, uint64_t at, Message& m) {
  t.reads(1, at, name_size_offset + 4);
  t.copies(1, at + name_size_offset + 4, 4);
  t.reads(1, at + 16, 32);
  t.copies(1, at + flags_offset, 8);
  return t.load(at, &m, sizeof m);
}

// Each piece: size 8, level 4, type 4, data; the next one begins at a multiple of 8.
void tell_control(Teller& t, uint64_t at, uint64_t size) {
  constexpr uint64_t head = 16;
  while (size >= head) {
    uint64_t length = t.load64(at);
    if (length < head || length > size) break;
    uint64_t whole = (length + 7) & ~uint64_t{7};
    if (whole > size) whole = size;
    t.reads(1, at, length);
    t.copies(1, at + length, whole - length);
    at += whole, size -= whole;
  }
  t.reads(1, at, size);
}

void tell_sent(Teller& t, uint64_t at) {
  Message m;
  if (t.is_after() || !tell_head(t, at, m)) return;
  if (m.name) tell_address(t, 1, m.name, m.name_size);
  tell_vectors(t, 1, m.vectors, m.count, Direction::In, 0);
  tell_control(t, m.control, m.control_size);
}

// `done` bytes have come; `room` is what there was for the name: the kernel has put the name's length in its place.
void tell_received(Teller& t, uint64_t at, uint64_t room, uint64_t done) {
  Message m;
  if (!tell_head(t, at, m)) return;
  if (m.name) t.fills(1, m.name, room, m.name_size);
  tell_vectors(t, 1, m.vectors, m.count, Direction::Out, done);
  if (m.control) t.fills(1, m.control, m.control_size, m.control_size);
  if (m.name) t.writes(1, at + name_size_offset, 4);
  t.writes(1, at + control_size_offset, 8);
  t.writes(1, at + flags_offset, 4);
}
constexpr uint32_t most_messages = 1024;
uint32_t messages(const Teller& t) { return t.uint_arg(2) < most_messages ? t.uint_arg(2) : most_messages; }
}  // namespace

void sendmsg(Teller& t) { tell_sent(t, t.arg(1)); }
void recvmsg(Teller& t) {
  uint32_t room = t.kept32(0, t.arg(1) + name_size_offset);
  if (!t.has_failed()) tell_received(t, t.arg(1), room, t.result());
}

void sendmmsg(Teller& t) {
  for (uint64_t n = 0; n < messages(t); n++) {
    uint64_t at = t.arg(1) + n * in_array;
    tell_sent(t, at);
    t.before(Use::MayWrite, 1, at + length_offset, 4);
    if (n < t.result()) t.after(Use::Written, 1, at + length_offset, 4);
  }
}

// Of the names of the first messages it is kept what room there was, a byte each.
void recvmmsg(Teller& t) {
  constexpr uint64_t all_kept = max_kept_words * sizeof(uint64_t);
  if (t.uint_arg(2) > most_messages) t.unknown(1, t.arg(1) + most_messages * in_array);
  auto* rooms = reinterpret_cast<uint8_t*>(&t.kept(0));
  for (uint64_t n = 0; n < (t.is_before() ? messages(t) : t.result()); n++) {
    uint64_t at = t.arg(1) + n * in_array, room = longest_address;
    if (t.is_before()) room = t.load32(at + name_size_offset);
    else if (n < all_kept) room = rooms[n];
    if (t.is_before() && n < all_kept) rooms[n] = uint8_t(room < longest_address ? room : longest_address);
    tell_received(t, at, room, t.is_after() ? t.load32(at + length_offset) : 0);
    t.writes(1, at + length_offset, 4);
  }
}

namespace {
constexpr int SOL_IP = 0, SOL_SOCKET = 1, SOL_TCP = 6, SOL_IPV6 = 41, SOL_SCTP = 132;
constexpr int SO_ATTACH_FILTER = 26, SO_ATTACH_REUSEPORT_CBPF = 51, TCP_ZEROCOPY_RECEIVE = 35;
// Options of packet filters and of routing have pointers inside, and are read where others are written.
bool is_unknown_option(int level, int option) {
  bool is_routing = option >= 200 && option <= 212;
  switch (level) {
    case SOL_IP:
      return is_routing || (option >= 64 && option <= 67) || (option >= 96 && option <= 99) ||
             (option >= 128 && option <= 131);
    case SOL_IPV6: return is_routing || option == 64 || option == 65 || option == 68 || option == 69;
    case SOL_TCP: return option == TCP_ZEROCOPY_RECEIVE;
  }
  return level == SOL_SCTP;
}
}  // namespace

// length 2, hole 6, pointer to instructions of 8 bytes
void tell_filter(Teller& t, int i, uint64_t program) {
  t.reads(i, program, 2);
  t.copies(i, program + 2, 6);
  t.reads(i, program + 8, 8);
  t.reads(i, t.load64(program + 8), uint64_t{t.load<uint16_t>(program)} * 8);
}

void setsockopt(Teller& t) {
  int level = t.int_arg(1), option = t.int_arg(2);
  if (is_unknown_option(level, option)) return t.unknown(3, t.arg(3));
  if (level == SOL_SOCKET && (option == SO_ATTACH_FILTER || option == SO_ATTACH_REUSEPORT_CBPF))
    return tell_filter(t, 3, t.arg(3));
  if (t.int_arg(4) > 0) t.reads(3, t.arg(3), uint64_t(t.int_arg(4)));
}

void getsockopt(Teller& t) {
  int level = t.int_arg(1), option = t.int_arg(2);
  auto room = int32_t(t.kept32(0, t.arg(4)));
  t.updates(4, t.arg(4), 4);
  if (is_unknown_option(level, option)) return t.unknown(3, t.arg(3));
  uint64_t unit = level == SOL_SOCKET && option == SO_ATTACH_FILTER ? 8 : 1;  // as SO_GET_FILTER it counts instructions
  if (room > 0) t.fills(3, t.arg(3), uint64_t(room) * unit, t.is_after() ? t.load32(t.arg(4)) * unit : 0);
}

}  // namespace calls
}  // namespace weir::rt
