// ioctl(2) of terminals, sockets, files, devices and counters, for call_kernel_test.cc.

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/if_tun.h>
#include <linux/loop.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>

#include "call_trial.h"

namespace weir::rt {
namespace {

using std::string;

uint64_t terminal() {
  int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0;
  ioctl(fd, TIOCSPTLCK, &zero);
  return uint64_t(ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY));
}
uint64_t control_of_terminal() { return uint64_t(open("/dev/ptmx", O_RDWR | O_NOCTTY)); }
uint64_t pipe_with(const string& text) {
  int ends[2];
  if (pipe(ends) || write(ends[1], text.data(), text.size()) < 0) abort();
  return uint64_t(ends[0]);
}
uint64_t internet() { return uint64_t(socket(AF_INET, SOCK_DGRAM, 0)); }
ifreq loopback() {
  ifreq r{};
  strcpy(r.ifr_name, "lo");
  return r;
}
uint64_t file(const char* text = "abc") {
  int fd = open("file", O_RDWR | O_CREAT, 0600);
  if (write(fd, text, strlen(text)) < 0) abort();
  return uint64_t(fd);
}
uint64_t counter() {
  perf_event_attr a{};
  a.type = PERF_TYPE_SOFTWARE, a.size = sizeof a, a.config = PERF_COUNT_SW_TASK_CLOCK;
  return uint64_t(syscall(SYS_perf_event_open, &a, 0, -1, -1, 0));
}
uint64_t loop() { return uint64_t(open("/dev/loop0", O_RDONLY)); }
termios settings() {
  termios s{};
  ioctl(int(terminal()), TCGETS, &s);
  return s;
}

}  // namespace

// Of the terminal's structures the kernel's, not the library's, are meant: 36 bytes.
std::vector<Case> device_cases() {
  return {
      {SYS_ioctl, "TCGETS", [](Trial& t) { t.call(SYS_ioctl, terminal(), TCGETS, t.out(36)); }},
      {SYS_ioctl, "TCSETS",
       [](Trial& t) {
         termios s = settings();
         t.call(SYS_ioctl, terminal(), TCSETS, t.bytes(&s, 36));
       }},
      {SYS_ioctl, "TCGETS2", [](Trial& t) { t.call(SYS_ioctl, terminal(), 0x802c542a, t.out(44)); }},
      {SYS_ioctl, "TCGETA",
       [](Trial& t) {
         uint64_t p = t.out(18);
         t.call(SYS_ioctl, terminal(), TCGETA, p);
       }},
      {SYS_ioctl, "TCSETA", [](Trial& t) { t.call(SYS_ioctl, terminal(), TCSETA, t.bytes(string(18, 0).data(), 18)); }},
      {SYS_ioctl, "TIOCGWINSZ", [](Trial& t) { t.call(SYS_ioctl, terminal(), TIOCGWINSZ, t.out(8)); }},
      {SYS_ioctl, "TIOCSWINSZ", [](Trial& t) { t.call(SYS_ioctl, terminal(), TIOCSWINSZ, t.in(uint64_t{0})); }},
      {SYS_ioctl, "TIOCOUTQ", [](Trial& t) { t.call(SYS_ioctl, terminal(), TIOCOUTQ, t.out(4)); }},
      {SYS_ioctl, "TIOCGETD", [](Trial& t) { t.call(SYS_ioctl, terminal(), TIOCGETD, t.out(4)); }},
      {SYS_ioctl, "TIOCSETD", [](Trial& t) { t.call(SYS_ioctl, terminal(), TIOCSETD, t.in(0)); }},
      {SYS_ioctl, "TIOCGSOFTCAR", [](Trial& t) { t.call(SYS_ioctl, terminal(), TIOCGSOFTCAR, t.out(4)); }},
      {SYS_ioctl, "TIOCPKT", [](Trial& t) { t.call(SYS_ioctl, control_of_terminal(), TIOCPKT, t.in(0)); }},
      {SYS_ioctl, "TIOCGPTN", [](Trial& t) { t.call(SYS_ioctl, control_of_terminal(), TIOCGPTN, t.out(4)); }},
      {SYS_ioctl, "TIOCSPTLCK", [](Trial& t) { t.call(SYS_ioctl, control_of_terminal(), TIOCSPTLCK, t.in(0)); }},
      {SYS_ioctl, "TIOCGEXCL", [](Trial& t) { t.call(SYS_ioctl, terminal(), TIOCGEXCL, t.out(4)); }},
      {SYS_ioctl, "TCFLSH", [](Trial& t) { t.call(SYS_ioctl, terminal(), TCFLSH, TCIFLUSH); }},
      {SYS_ioctl, "FIONREAD of a pipe", [](Trial& t) { t.call(SYS_ioctl, pipe_with("abc"), FIONREAD, t.out(4)); }},
      {SYS_ioctl, "FIONREAD of a terminal", [](Trial& t) { t.call(SYS_ioctl, terminal(), FIONREAD, t.out(4)); }},
      {SYS_ioctl, "FIONBIO", [](Trial& t) { t.call(SYS_ioctl, pipe_with(""), FIONBIO, t.in(1)); }},
      {SYS_ioctl, "FIOASYNC", [](Trial& t) { t.call(SYS_ioctl, pipe_with(""), FIOASYNC, t.in(0)); }},
      {SYS_ioctl, "FIOCLEX", [](Trial& t) { t.call(SYS_ioctl, pipe_with(""), FIOCLEX, 0); }},
      {SYS_ioctl, "FIOQSIZE", [](Trial& t) { t.call(SYS_ioctl, file(), FIOQSIZE, t.out(8)); }},
      {SYS_ioctl, "FIGETBSZ", [](Trial& t) { t.call(SYS_ioctl, file(), FIGETBSZ, t.out(4)); }},
      {SYS_ioctl, "FS_IOC_GETFLAGS", [](Trial& t) { t.call(SYS_ioctl, file(), FS_IOC_GETFLAGS, t.out(4)); }},
      {SYS_ioctl, "FS_IOC_SETFLAGS", [](Trial& t) { t.call(SYS_ioctl, file(), FS_IOC_SETFLAGS, t.in(0)); }},
      {SYS_ioctl, "FS_IOC_FSGETXATTR", [](Trial& t) { t.call(SYS_ioctl, file(), FS_IOC_FSGETXATTR, t.out(28)); }},
      {SYS_ioctl, "FIDEDUPERANGE",
       [](Trial& t) {
         std::vector<uint64_t> request{0, 3, 1, file(), 0, 0x5a5a5a5a5a5a5a5a, 0x5a5a5a5a};
         t.call(SYS_ioctl, file(), FIDEDUPERANGE, t.in(request));
       }},
      {SYS_ioctl, "FIOGETOWN", [](Trial& t) { t.call(SYS_ioctl, internet(), FIOGETOWN, t.out(4)); }},
      {SYS_ioctl, "FIOSETOWN", [](Trial& t) { t.call(SYS_ioctl, internet(), FIOSETOWN, t.in(0)); }},
      {SYS_ioctl, "SIOCATMARK",
       [](Trial& t) { t.call(SYS_ioctl, uint64_t(socket(AF_INET, SOCK_STREAM, 0)), SIOCATMARK, t.out(4)); }},
      {SYS_ioctl, "SIOCGIFFLAGS", [](Trial& t) { t.call(SYS_ioctl, internet(), SIOCGIFFLAGS, t.in(loopback())); }},
      {SYS_ioctl, "SIOCGIFINDEX", [](Trial& t) { t.call(SYS_ioctl, internet(), SIOCGIFINDEX, t.in(loopback())); }},
      {SYS_ioctl, "SIOCGIFMTU", [](Trial& t) { t.call(SYS_ioctl, internet(), SIOCGIFMTU, t.in(loopback())); }},
      {SYS_ioctl, "SIOCGIFHWADDR", [](Trial& t) { t.call(SYS_ioctl, internet(), SIOCGIFHWADDR, t.in(loopback())); }},
      {SYS_ioctl, "SIOCGIFMAP", [](Trial& t) { t.call(SYS_ioctl, internet(), SIOCGIFMAP, t.in(loopback())); }},
      {SYS_ioctl, "SIOCGIFTXQLEN", [](Trial& t) { t.call(SYS_ioctl, internet(), SIOCGIFTXQLEN, t.in(loopback())); }},
      {SYS_ioctl, "SIOCGIFNAME",
       [](Trial& t) {
         ifreq r{};
         r.ifr_ifindex = 1;
         t.call(SYS_ioctl, internet(), SIOCGIFNAME, t.in(r));
       }},
      {SYS_ioctl, "SIOCSIFFLAGS",
       [](Trial& t) {
         ifreq r = loopback();
         r.ifr_flags = IFF_UP;
         t.call(SYS_ioctl, internet(), SIOCSIFFLAGS, t.in(r));
       }},
      {SYS_ioctl, "SIOCSIFMTU",
       [](Trial& t) {
         ifreq r = loopback();
         r.ifr_mtu = 1400;
         t.call(SYS_ioctl, internet(), SIOCSIFMTU, t.in(r));
       }},
      {SYS_ioctl, "SIOCGIFCONF",
       [](Trial& t) {
         ifreq r = loopback();
         r.ifr_flags = IFF_UP;
         int fd = int(internet());
         ioctl(fd, SIOCSIFFLAGS, &r);
         r.ifr_addr.sa_family = AF_INET, r.ifr_addr.sa_data[2] = 127, r.ifr_addr.sa_data[5] = 1;
         ioctl(fd, SIOCSIFADDR, &r);
         uint64_t list = t.out(40);
         t.null_is_other();
         struct {
           int size, hole;
           uint64_t list;
         } conf{40, 0, list};
         t.call(SYS_ioctl, uint64_t(fd), SIOCGIFCONF, t.in(conf));
       }},
      {SYS_ioctl, "SIOCGIFCONF, asking for the size",
       [](Trial& t) {
         struct {
           int size, hole;
           uint64_t list;
         } conf{0, 0, 0};
         t.call(SYS_ioctl, internet(), SIOCGIFCONF, t.in(conf));
       }},
      {SYS_ioctl, "SIOCADDRT",
       [](Trial& t) {
         rtentry route{};
         route.rt_dst.sa_family = AF_INET, route.rt_genmask.sa_family = AF_INET;
         uint64_t name = t.bytes("none\0hole hole", 15);
         t.null_is_other();
         route.rt_dev = reinterpret_cast<char*>(name);
         t.call(SYS_ioctl, internet(), SIOCADDRT, t.in(route));
       },
       -ENODEV},
      {SYS_ioctl, "TUNSETIFF",
       [](Trial& t) {
         ifreq r{};
         strcpy(r.ifr_name, "tun7");
         r.ifr_flags = IFF_TUN;
         t.call(SYS_ioctl, uint64_t(open("/dev/net/tun", O_RDWR)), TUNSETIFF, t.in(r));
       },
       0, true},
      {SYS_ioctl, "TUNGETFEATURES",
       [](Trial& t) { t.call(SYS_ioctl, uint64_t(open("/dev/net/tun", O_RDWR)), TUNGETFEATURES, t.out(4)); }, 0, true},
      {SYS_ioctl, "RNDGETENTCNT",
       [](Trial& t) { t.call(SYS_ioctl, uint64_t(open("/dev/random", O_RDWR)), RNDGETENTCNT, t.out(4)); }},
      {SYS_ioctl, "RNDADDENTROPY",
       [](Trial& t) {
         t.call(SYS_ioctl, uint64_t(open("/dev/random", O_RDWR)), RNDADDENTROPY, t.in(std::vector<int>{0, 8, 1, 2}));
       }},
      {SYS_ioctl, "PERF_EVENT_IOC_ENABLE", [](Trial& t) { t.call(SYS_ioctl, counter(), PERF_EVENT_IOC_ENABLE, 0); }},
      {SYS_ioctl, "PERF_EVENT_IOC_ID", [](Trial& t) { t.call(SYS_ioctl, counter(), PERF_EVENT_IOC_ID, t.out(8)); }},
      {SYS_ioctl, "PERF_EVENT_IOC_PERIOD",
       [](Trial& t) { t.call(SYS_ioctl, counter(), PERF_EVENT_IOC_PERIOD, t.in(uint64_t{0})); }, -EINVAL},
      {SYS_ioctl, "PERF_EVENT_IOC_PAUSE_OUTPUT",
       [](Trial& t) { t.call(SYS_ioctl, counter(), PERF_EVENT_IOC_PAUSE_OUTPUT, 1); }, -EINVAL},
      {SYS_ioctl, "NS_GET_OWNER_UID",
       [](Trial& t) { t.call(SYS_ioctl, uint64_t(open("/proc/self/ns/user", O_RDONLY)), 0xb704, t.out(4)); }},
      {SYS_ioctl, "BLKGETSIZE64", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKGETSIZE64, t.out(8)); }},
      {SYS_ioctl, "BLKGETSIZE", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKGETSIZE, t.out(8)); }},
      {SYS_ioctl, "BLKSSZGET", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKSSZGET, t.out(4)); }},
      {SYS_ioctl, "BLKBSZGET", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKBSZGET, t.out(4)); }},
      {SYS_ioctl, "BLKROGET", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKROGET, t.out(4)); }},
      {SYS_ioctl, "BLKRAGET",
       [](Trial& t) {
         uint64_t p = t.out(8);
         t.null_is_other();
         t.call(SYS_ioctl, loop(), BLKRAGET, p);
       }},
      {SYS_ioctl, "BLKSECTGET", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKSECTGET, t.out(2)); }},
      {SYS_ioctl, "BLKPBSZGET", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKPBSZGET, t.out(4)); }},
      {SYS_ioctl, "BLKALIGNOFF", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKALIGNOFF, t.out(4)); }},
      {SYS_ioctl, "BLKROTATIONAL", [](Trial& t) { t.call(SYS_ioctl, loop(), BLKROTATIONAL, t.out(2)); }},
      {SYS_ioctl, "LOOP_SET_STATUS64",
       [](Trial& t) { t.call(SYS_ioctl, loop(), LOOP_SET_STATUS64, t.bytes(string(232, 0).data(), 232)); }, -ENXIO},
  };
}

}  // namespace weir::rt
