// Calls on sockets for call_kernel_test.cc.

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

#include "call_trial.h"

namespace weir::rt {
namespace {

using std::string;

// A name in the directory, of five bytes with its zero.
sockaddr_un named(const char* name) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  strncpy(a.sun_path, name, sizeof a.sun_path - 1);
  return a;
}
constexpr uint64_t name_size = 2 + 5;
int bound_to(const char* name, int type) {
  int fd = socket(AF_UNIX, type, 0);
  sockaddr_un a = named(name);
  if (bind(fd, reinterpret_cast<sockaddr*>(&a), name_size)) abort();
  if (type == SOCK_STREAM) listen(fd, 4);
  return fd;
}
int connected_to(const char* name, int type, const char* own = nullptr) {
  int fd = own ? bound_to(own, SOCK_DGRAM) : socket(AF_UNIX, type, 0);
  sockaddr_un a = named(name);
  if (connect(fd, reinterpret_cast<sockaddr*>(&a), name_size)) abort();
  return fd;
}
// What was sent from "own1" waits in it.
int with_datagram(const string& text) {
  int fd = bound_to("name", SOCK_DGRAM), sender = connected_to("name", SOCK_DGRAM, "own1");
  if (send(sender, text.data(), text.size(), 0) < 0) abort();
  return fd;
}
int one_of_pair(const string& text) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
  if (!text.empty() && send(ends[1], text.data(), text.size(), 0) < 0) abort();
  return ends[0];
}
struct Control {  // a struct cmsghdr with a descriptor
  uint64_t size;
  int level, type, descriptor;
};
Control passing() { return {20, SOL_SOCKET, SCM_RIGHTS, 0}; }
void* at(uint64_t address) { return reinterpret_cast<void*>(address); }
msghdr message(uint64_t name, unsigned size, uint64_t vectors, size_t count, uint64_t control = 0,
               size_t control_size = 0) {
  msghdr m{};
  m.msg_name = at(name), m.msg_namelen = size, m.msg_iov = static_cast<iovec*>(at(vectors)), m.msg_iovlen = count;
  m.msg_control = at(control), m.msg_controllen = control_size, m.msg_flags = 0x5a5a5a;
  return m;
}
uint64_t vectors(Trial& t, std::vector<uint64_t> buffers, size_t each) {
  std::vector<iovec> v;
  for (uint64_t b : buffers) v.push_back({at(b), each});
  return t.in(v);
}

}  // namespace

std::vector<Case> socket_cases() {
  return {
      {SYS_socketpair, "socketpair", [](Trial& t) { t.call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, t.out(8)); }},
      {SYS_bind, "bind",
       [](Trial& t) {
         sockaddr_un a = named("name");
         t.call(SYS_bind, uint64_t(socket(AF_UNIX, SOCK_DGRAM, 0)), t.bytes(&a, name_size), name_size);
       }},
      {SYS_bind, "bind of an address of the Internet",
       [](Trial& t) {
         sockaddr_in a{};
         a.sin_family = AF_INET;
         t.call(SYS_bind, uint64_t(socket(AF_INET, SOCK_DGRAM, 0)), t.in(a), sizeof a);
       }},
      {SYS_bind, "bind of an address of IPv6",
       [](Trial& t) {
         sockaddr_in6 a{};
         a.sin6_family = AF_INET6;
         t.call(SYS_bind, uint64_t(socket(AF_INET6, SOCK_DGRAM, 0)), t.in(a), sizeof a);
       }},
      {SYS_bind, "bind of an address of netlink",
       [](Trial& t) {
         sockaddr_nl a{};
         a.nl_family = AF_NETLINK;
         t.call(SYS_bind, uint64_t(socket(AF_NETLINK, SOCK_RAW, 0)), t.in(a), sizeof a);
       }},
      {SYS_connect, "connect",
       [](Trial& t) {
         bound_to("name", SOCK_STREAM);
         sockaddr_un a = named("name");
         t.call(SYS_connect, uint64_t(socket(AF_UNIX, SOCK_STREAM, 0)), t.bytes(&a, name_size), name_size);
       }},
      {SYS_accept, "accept",
       [](Trial& t) {
         int fd = bound_to("name", SOCK_STREAM);
         connected_to("name", SOCK_STREAM);
         uint64_t a = t.out(2);
         t.call(SYS_accept, uint64_t(fd), a, t.in(2));
       }},
      {SYS_accept4, "accept4",
       [](Trial& t) {
         int fd = bound_to("name", SOCK_STREAM);
         connected_to("name", SOCK_STREAM);
         uint64_t a = t.out(2);
         t.call(SYS_accept4, uint64_t(fd), a, t.in(2), 0);
       }},
      {SYS_getsockname, "getsockname",
       [](Trial& t) {
         int fd = bound_to("name", SOCK_DGRAM);
         uint64_t a = t.out(name_size);
         t.call(SYS_getsockname, uint64_t(fd), a, t.in(int(name_size)));
       }},
      {SYS_getsockname, "getsockname with room for a part",
       [](Trial& t) {
         int fd = bound_to("name", SOCK_DGRAM);
         uint64_t a = t.out(4);
         t.call(SYS_getsockname, uint64_t(fd), a, t.in(4));
       }},
      {SYS_getsockname, "getsockname with more room",
       [](Trial& t) {
         int fd = bound_to("name", SOCK_DGRAM);
         uint64_t a = t.out(40);
         t.is_not_missed();
         t.call(SYS_getsockname, uint64_t(fd), a, t.in(40));
       }},
      {SYS_getpeername, "getpeername",
       [](Trial& t) {
         bound_to("name", SOCK_DGRAM);
         int fd = connected_to("name", SOCK_DGRAM);
         uint64_t a = t.out(name_size);
         t.call(SYS_getpeername, uint64_t(fd), a, t.in(int(name_size)));
       }},
      {SYS_sendto, "sendto",
       [](Trial& t) {
         bound_to("name", SOCK_DGRAM);
         sockaddr_un a = named("name");
         uint64_t text = t.in(string("hello"));
         uint64_t to = t.bytes(&a, name_size);
         t.null_is_other();
         t.call(SYS_sendto, uint64_t(socket(AF_UNIX, SOCK_DGRAM, 0)), text, 6, 0, to, name_size);
       }},
      {SYS_recvfrom, "recvfrom",
       [](Trial& t) {
         int fd = with_datagram("hello");
         uint64_t text = t.out(5), from = t.out(name_size), size = t.in(int(name_size));
         t.call(SYS_recvfrom, uint64_t(fd), text, 5, 0, from, size);
       }},
      {SYS_recvfrom, "recvfrom of a part",
       [](Trial& t) {
         int fd = with_datagram("hello");
         uint64_t text = t.out(3), from = t.out(4), size = t.in(4);
         t.call(SYS_recvfrom, uint64_t(fd), text, 3, MSG_TRUNC, from, size);
       }},
      {SYS_sendmsg, "sendmsg",
       [](Trial& t) {
         bound_to("name", SOCK_DGRAM);
         sockaddr_un a = named("name");
         uint64_t to = t.bytes(&a, name_size);
         t.null_is_other();
         uint64_t v = vectors(t, {t.in(string("abc")), t.in(string("def"))}, 4);
         t.call(SYS_sendmsg, uint64_t(socket(AF_UNIX, SOCK_DGRAM, 0)), t.in(message(to, name_size, v, 2)), 0);
       }},
      {SYS_sendmsg, "sendmsg that passes a descriptor",
       [](Trial& t) {
         int fd = one_of_pair("");
         uint64_t control = t.bytes(std::vector<Control>{passing()}.data(), 20), v = vectors(t, {t.in(string("abc"))}, 4);
         t.call(SYS_sendmsg, uint64_t(fd), t.in(message(0, 0, v, 1, control, 20)), 0);
       }},
      {SYS_recvmsg, "recvmsg",
       [](Trial& t) {
         int fd = with_datagram("helloworld");
         uint64_t from = t.out(name_size), v = vectors(t, {t.out(5), t.out(5)}, 5);
         t.call(SYS_recvmsg, uint64_t(fd), t.in(message(from, name_size, v, 2)), 0);
       }},
      {SYS_recvmsg, "recvmsg of less, with a part of the name",
       [](Trial& t) {
         int fd = with_datagram("helloworld");
         uint64_t from = t.out(3), last = t.out(8);
         t.is_not_missed();
         std::vector<iovec> parts{{at(t.out(8)), 8}, {at(t.out(2)), 2}, {at(last), 8}};
         t.call(SYS_recvmsg, uint64_t(fd), t.in(message(from, 3, t.in(parts), 3)), 0);
       }},
      {SYS_recvmsg, "recvmsg with a descriptor",
       [](Trial& t) {
         int ends[2];
         if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
         Control c = passing();
         iovec text{const_cast<char*>("abc"), 3};
         msghdr m{};
         m.msg_iov = &text, m.msg_iovlen = 1, m.msg_control = &c, m.msg_controllen = sizeof c;
         if (sendmsg(ends[1], &m, 0) < 0) abort();
         uint64_t control = t.out(24);
         t.is_not_missed(), t.has_holes();
         uint64_t v = vectors(t, {t.out(3)}, 3);
         t.call(SYS_recvmsg, uint64_t(ends[0]), t.in(message(0, 0, v, 1, control, 24)), 0);
       }},
      {SYS_sendmmsg, "sendmmsg",
       [](Trial& t) {
         int fd = one_of_pair("");
         uint64_t v = vectors(t, {t.in(string("abc"))}, 4), w = vectors(t, {t.in(string("defg"))}, 5);
         std::vector<mmsghdr> m{{message(0, 0, v, 1), 0x5a5a5a5a}, {message(0, 0, w, 1), 0x5a5a5a5a}};
         m.back().msg_len = 0x5a5a5a5a;
         t.call(SYS_sendmmsg, uint64_t(fd), t.bytes(m.data(), 124), 2, 0);
       }},
      {SYS_recvmmsg, "recvmmsg",
       [](Trial& t) {
         int fd = bound_to("name", SOCK_DGRAM), sender = connected_to("name", SOCK_DGRAM, "own1");
         if (send(sender, "hello", 5, 0) < 0 || send(sender, "you", 3, 0) < 0) abort();
         uint64_t from = t.out(3), second = t.out(name_size);
         uint64_t v = vectors(t, {t.out(5)}, 5), w = vectors(t, {t.out(3)}, 3);
         std::vector<mmsghdr> m{{message(from, 3, v, 1), 0x5a5a5a5a}, {message(second, name_size, w, 1), 0x5a5a5a5a}};
         uint64_t all = t.bytes(m.data(), 124);
         t.call(SYS_recvmmsg, uint64_t(fd), all, 2, 0, t.in(timespec{1, 0}));
       }},
      {SYS_getsockopt, "getsockopt",
       [](Trial& t) {
         int fd = one_of_pair("");
         uint64_t p = t.out(4);
         t.call(SYS_getsockopt, uint64_t(fd), SOL_SOCKET, SO_SNDBUF, p, t.in(4));
       }},
      {SYS_getsockopt, "getsockopt with more room",
       [](Trial& t) {
         int fd = one_of_pair("");
         uint64_t p = t.out(40);
         t.is_not_missed();
         t.call(SYS_getsockopt, uint64_t(fd), SOL_SOCKET, SO_LINGER, p, t.in(40));
       }},
      {SYS_getsockopt, "getsockopt with less room",
       [](Trial& t) {
         int fd = one_of_pair("");
         uint64_t p = t.out(2);
         t.call(SYS_getsockopt, uint64_t(fd), SOL_SOCKET, SO_TYPE, p, t.in(2));
       }},
      {SYS_getsockopt, "getsockopt(TCP_INFO)",
       [](Trial& t) {
         uint64_t p = t.out(104);
         t.call(SYS_getsockopt, uint64_t(socket(AF_INET, SOCK_STREAM, 0)), IPPROTO_TCP, TCP_INFO, p, t.in(104));
       }},
      {SYS_getsockopt, "getsockopt(SO_GET_FILTER)",
       [](Trial& t) {
         int fd = socket(AF_INET, SOCK_DGRAM, 0);
         sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 9), BPF_STMT(BPF_RET | BPF_K, 0)};
         sock_fprog program{2, code};
         setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
         uint64_t p = t.out(16);
         t.call(SYS_getsockopt, uint64_t(fd), SOL_SOCKET, SO_GET_FILTER, p, t.in(2));
       }},
      {SYS_setsockopt, "setsockopt",
       [](Trial& t) { t.call(SYS_setsockopt, uint64_t(one_of_pair("")), SOL_SOCKET, SO_SNDBUF, t.in(9999), 4); }},
      {SYS_setsockopt, "setsockopt(SO_LINGER)",
       [](Trial& t) { t.call(SYS_setsockopt, uint64_t(one_of_pair("")), SOL_SOCKET, SO_LINGER, t.in(linger{0, 1}), 8); }},
      {SYS_setsockopt, "setsockopt(SO_ATTACH_FILTER)",
       [](Trial& t) {
         sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 9), BPF_STMT(BPF_RET | BPF_K, 0)};
         uint64_t filter = t.in(code);
         t.null_is_other();
         struct {
           uint16_t length, hole[3];
           uint64_t filter;
         } program{2, {}, filter};
         t.call(SYS_setsockopt, uint64_t(socket(AF_INET, SOCK_DGRAM, 0)), SOL_SOCKET, SO_ATTACH_FILTER, t.in(program), 16);
       }},
  };
}

}  // namespace weir::rt
