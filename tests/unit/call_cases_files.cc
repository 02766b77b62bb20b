// Calls on open files for call_kernel_test.cc.

#include <linux/aio_abi.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call_trial.h"

namespace weir::rt {
namespace {

using std::string;

int file_with(const string& text, const char* name = "file") {
  int fd = open(name, O_RDWR | O_CREAT, 0644);
  if (write(fd, text.data(), text.size()) < 0) abort();
  lseek(fd, 0, SEEK_SET);
  return fd;
}
int pipe_with(const string& text) {
  int ends[2];
  if (pipe(ends) || write(ends[1], text.data(), text.size()) < 0) abort();
  return ends[0];
}
int pipe_to_write() {
  int ends[2];
  if (pipe(ends)) abort();
  return ends[1];
}
std::vector<iovec> three(uint64_t a, uint64_t b, uint64_t c, size_t each) {
  auto at = [](uint64_t p) { return reinterpret_cast<void*>(p); };
  return {{at(a), each}, {at(b), each}, {at(c), each}};
}

const timespec second{1, 0}, moment{0, 1000};

}  // namespace

std::vector<Case> file_cases() {
  return {
      {SYS_read, "read of a file",
       [](Trial& t) {
         int fd = file_with(string(300, 'x'));
         t.call(SYS_read, uint64_t(fd), t.out(300), 300);
       }},
      {SYS_read, "read of less",
       [](Trial& t) {
         int fd = pipe_with("hello");
         uint64_t p = t.out(300);
         t.is_not_missed();
         t.call(SYS_read, uint64_t(fd), p, 300);
       }},
      {SYS_read, "read of nothing", [](Trial& t) { t.call(SYS_read, uint64_t(file_with("")), 0, 0); }},
      {SYS_read, "read of a bad descriptor",
       [](Trial& t) {
         uint64_t p = t.out(9);
         t.is_not_missed();
         t.call(SYS_read, 999, p, 9);
       },
       -EBADF},
      {SYS_write, "write to a file",
       [](Trial& t) { t.call(SYS_write, uint64_t(file_with("")), t.in(string(299, 'y')), 300); }},
      {SYS_write, "write to a pipe",
       [](Trial& t) { t.call(SYS_write, uint64_t(pipe_to_write()), t.in(string(299, 'y')), 300); }},
      {SYS_pread64, "pread64",
       [](Trial& t) { t.call(SYS_pread64, uint64_t(file_with(string(300, 'x'))), t.out(200), 200, 50); }},
      {SYS_pwrite64, "pwrite64",
       [](Trial& t) { t.call(SYS_pwrite64, uint64_t(file_with("")), t.in(string(99, 'y')), 100, 50); }},
      {SYS_readv, "readv",
       [](Trial& t) {
         auto v = three(t.out(10), t.out(10), t.out(10), 10);
         t.call(SYS_readv, uint64_t(pipe_with(string(30, 'x'))), t.in(v), 3);
       }},
      {SYS_readv, "readv of less",
       [](Trial& t) {
         uint64_t last = t.out(10);
         t.is_not_missed();
         auto v = three(t.out(10), t.out(5), last, 10);
         v[1].iov_len = 5;
         t.call(SYS_readv, uint64_t(pipe_with(string(15, 'x'))), t.in(v), 3);
       }},
      {SYS_readv, "readv of twenty",
       [](Trial& t) {
         uint64_t buffer = t.out(20);
         std::vector<uint64_t> v;
         for (uint64_t n = 0; n < 20; n++) v.push_back(buffer ? buffer + n : 0), v.push_back(1);
         t.call(SYS_readv, uint64_t(pipe_with(string(20, 'x'))), t.in(v), 20);
       }},
      {SYS_writev, "writev",
       [](Trial& t) {
         auto v = three(t.in(string(9, 'a')), t.in(string(9, 'b')), t.in(string(9, 'c')), 10);
         t.call(SYS_writev, uint64_t(pipe_to_write()), t.in(v), 3);
       }},
      {SYS_preadv, "preadv",
       [](Trial& t) {
         auto v = three(t.out(10), t.out(10), t.out(10), 10);
         t.call(SYS_preadv, uint64_t(file_with(string(40, 'x'))), t.in(v), 3, 5);
       }},
      {SYS_pwritev, "pwritev",
       [](Trial& t) {
         auto v = three(t.in(string(9, 'a')), t.in(string(9, 'b')), t.in(string(9, 'c')), 10);
         t.call(SYS_pwritev, uint64_t(file_with("")), t.in(v), 3, 5);
       }},
      {SYS_preadv2, "preadv2",
       [](Trial& t) {
         auto v = three(t.out(10), t.out(10), t.out(10), 10);
         t.call(SYS_preadv2, uint64_t(file_with(string(40, 'x'))), t.in(v), 3, 5);
       }},
      {SYS_pwritev2, "pwritev2",
       [](Trial& t) {
         auto v = three(t.in(string(9, 'a')), t.in(string(9, 'b')), t.in(string(9, 'c')), 10);
         t.call(SYS_pwritev2, uint64_t(file_with("")), t.in(v), 3, 5);
       }},
      {SYS_vmsplice, "vmsplice into a pipe",
       [](Trial& t) {
         std::vector<iovec> v{{reinterpret_cast<void*>(t.in(string(9, 'a'))), 10}};
         t.is_not_missed();
         t.call(SYS_vmsplice, uint64_t(pipe_to_write()), t.in(v), 1);
       }},
      {SYS_inotify_add_watch, "inotify_add_watch",
       [](Trial& t) { t.call(SYS_inotify_add_watch, uint64_t(inotify_init()), t.in(string(".")), IN_CREATE); }},
      {SYS_poll, "poll",
       [](Trial& t) {
         auto fd = pipe_with("x");
         t.call(SYS_poll, t.in(std::vector<pollfd>{{fd, POLLIN, 99}, {-1, 0, 99}}), 2, 0);
       }},
      {SYS_ppoll, "ppoll",
       [](Trial& t) {
         uint64_t p = t.in(std::vector<pollfd>{{pipe_with("x"), POLLIN, 99}}), time = t.in(second);
         t.call(SYS_ppoll, p, 1, time, t.in(uint64_t{0}), 8);
       }},
      {SYS_select, "select",
       [](Trial& t) {
         uint64_t bits = uint64_t{1} << pipe_with("x"), in = t.in(bits), out = t.in(uint64_t{0}), bad = t.in(uint64_t{0});
         t.call(SYS_select, 20, in, out, bad, t.in(timeval{1, 0}));
       }},
      {SYS_pselect6, "pselect6",
       [](Trial& t) {
         uint64_t bits = uint64_t{1} << pipe_with("x"), in = t.in(bits), out = t.in(uint64_t{0}), bad = t.in(uint64_t{0});
         uint64_t time = t.in(second), mask = t.in(uint64_t{0});
         t.call(SYS_pselect6, 20, in, out, bad, time, t.in(std::vector<uint64_t>{mask, 8}));
       }},
      {SYS_epoll_ctl, "epoll_ctl",
       [](Trial& t) {
         auto e = uint64_t(epoll_create1(0));
         t.call(SYS_epoll_ctl, e, EPOLL_CTL_ADD, uint64_t(pipe_with("")), t.in(epoll_event{EPOLLIN, {}}));
       }},
      {SYS_epoll_ctl, "epoll_ctl that deletes",
       [](Trial& t) {
         int e = epoll_create1(0), fd = pipe_with("");
         epoll_event event{EPOLLIN, {}};
         epoll_ctl(e, EPOLL_CTL_ADD, fd, &event);
         t.call(SYS_epoll_ctl, uint64_t(e), EPOLL_CTL_DEL, uint64_t(fd), t.in(event));
       }},
#define WAITING                                            \
  int e = epoll_create1(0), fd = pipe_with("x");           \
  epoll_event event{EPOLLIN, {.u64 = 0x1234567812345678}}; \
  epoll_ctl(e, EPOLL_CTL_ADD, fd, &event);
      {SYS_epoll_wait, "epoll_wait", [](Trial& t) { WAITING t.call(SYS_epoll_wait, uint64_t(e), t.out(12), 1, 0); }},
      {SYS_epoll_wait, "epoll_wait for more",
       [](Trial& t) {
         WAITING uint64_t p = t.out(48);
         t.is_not_missed();
         t.call(SYS_epoll_wait, uint64_t(e), p, 4, 0);
       }},
      {SYS_epoll_pwait, "epoll_pwait",
       [](Trial& t) {
         WAITING uint64_t p = t.out(12);
         t.call(SYS_epoll_pwait, uint64_t(e), p, 1, 0, t.in(uint64_t{0}), 8);
       }},
      {SYS_epoll_pwait2, "epoll_pwait2",
       [](Trial& t) {
         WAITING uint64_t p = t.out(12), time = t.in(second);
         t.call(SYS_epoll_pwait2, uint64_t(e), p, 1, time, t.in(uint64_t{0}), 8);
       }},
      {SYS_signalfd, "signalfd",
       [](Trial& t) {
         uint64_t p = t.in(uint64_t{0});
         t.null_is_other();
         t.call(SYS_signalfd, uint64_t(-1), p, 8);
       }},
      {SYS_signalfd4, "signalfd4",
       [](Trial& t) {
         uint64_t p = t.in(uint64_t{0});
         t.null_is_other();
         t.call(SYS_signalfd4, uint64_t(-1), p, 8, 0);
       }},
      {SYS_sendfile, "sendfile",
       [](Trial& t) {
         int in = file_with("abcdef"), out = file_with("", "out");
         t.call(SYS_sendfile, uint64_t(out), uint64_t(in), t.in(uint64_t{2}), 4);
       }},
      {SYS_splice, "splice",
       [](Trial& t) {
         int in = file_with("abcdef");
         t.call(SYS_splice, uint64_t(in), t.in(uint64_t{2}), uint64_t(pipe_to_write()), 0, 4, 0);
       }},
      {SYS_copy_file_range, "copy_file_range",
       [](Trial& t) {
         int in = file_with("abcdef"), out = file_with("", "out");
         uint64_t from = t.in(uint64_t{2});
         t.call(SYS_copy_file_range, uint64_t(in), from, uint64_t(out), t.in(uint64_t{0}), 4, 0);
       }},
      {SYS_fcntl, "fcntl(F_GETLK)",
       [](Trial& t) {
         struct flock lock{F_WRLCK, 0, 0, 0, 77};
         t.call(SYS_fcntl, uint64_t(file_with("")), F_GETLK, t.in(lock));
       }},
      {SYS_fcntl, "fcntl(F_SETLK)",
       [](Trial& t) {
         struct flock lock{F_WRLCK, 0, 0, 0, 77};
         t.call(SYS_fcntl, uint64_t(file_with("")), F_SETLK, t.in(lock));
       }},
      {SYS_fcntl, "fcntl(F_OFD_SETLK)",
       [](Trial& t) {
         struct flock lock{F_WRLCK, 0, 0, 0, 0};
         t.call(SYS_fcntl, uint64_t(file_with("")), F_OFD_SETLK, t.in(lock));
       }},
      {SYS_fcntl, "fcntl(F_SETOWN_EX)",
       [](Trial& t) { t.call(SYS_fcntl, uint64_t(file_with("")), 15, t.in(std::vector<int>{1, 0})); }},
      {SYS_fcntl, "fcntl(F_GETOWN_EX)", [](Trial& t) { t.call(SYS_fcntl, uint64_t(file_with("")), 16, t.out(8)); }},
      {SYS_fcntl, "fcntl(F_GETOWNER_UIDS)", [](Trial& t) { t.call(SYS_fcntl, uint64_t(file_with("")), 17, t.out(8)); }},
      {SYS_fcntl, "fcntl(F_GET_RW_HINT)", [](Trial& t) { t.call(SYS_fcntl, uint64_t(file_with("")), 1035, t.out(8)); }},
      {SYS_fcntl, "fcntl(F_SET_RW_HINT)",
       [](Trial& t) { t.call(SYS_fcntl, uint64_t(file_with("")), 1036, t.in(uint64_t{1})); }},
      {SYS_fcntl, "fcntl(F_GETFL)", [](Trial& t) { t.call(SYS_fcntl, uint64_t(file_with("")), F_GETFL, t.out(8)); }},
      {SYS_io_setup, "io_setup", [](Trial& t) { t.call(SYS_io_setup, 4, t.in(uint64_t{0})); }},
      {SYS_io_submit, "io_submit of a read",
       [](Trial& t) {
         aio_context_t context = 0;
         syscall(SYS_io_setup, 4, &context);
         iocb block{};
         block.aio_key = 0x12345678, block.aio_lio_opcode = IOCB_CMD_PREAD,
         block.aio_fildes = uint32_t(file_with("abcdef"));
         block.aio_buf = t.out(6), block.aio_nbytes = 6;
         t.is_not_missed();  // (it is written until the call returns, here)
         uint64_t at = t.in(block, 8);
         t.call(SYS_io_submit, context, 1, t.in(at));
       }},
      {SYS_io_submit, "io_submit of vectors",
       [](Trial& t) {
         aio_context_t context = 0;
         syscall(SYS_io_setup, 4, &context);
         auto text = [&] {
           uint64_t p = t.in(string(9, 'a'));
           return t.is_not_missed(), p;  // (that is told with the event)
         };
         uint64_t a = text(), b = text(), c = text();
         auto v = three(a, b, c, 10);
         iocb block{};
         block.aio_lio_opcode = IOCB_CMD_PWRITEV, block.aio_fildes = uint32_t(file_with(""));
         block.aio_buf = t.in(v), block.aio_nbytes = 3;
         uint64_t at = t.in(block, 8);
         t.call(SYS_io_submit, context, 1, t.in(at));
       }},
      {SYS_io_getevents, "io_getevents",
       [](Trial& t) {
         aio_context_t context = 0;
         syscall(SYS_io_setup, 4, &context);
         iocb block{}, *blocks = &block;
         char byte[6];
         block.aio_data = 0x1234567812345678, block.aio_lio_opcode = IOCB_CMD_PREAD,
         block.aio_fildes = uint32_t(file_with("abcdef"));
         block.aio_buf = reinterpret_cast<uint64_t>(byte), block.aio_nbytes = 6;
         syscall(SYS_io_submit, context, 1, &blocks);
         uint64_t p = t.out(32);
         t.is_not_missed();
         t.call(SYS_io_getevents, context, 1, 1, p, t.in(second));
       }},
      {SYS_io_pgetevents, "io_pgetevents",
       [](Trial& t) {
         aio_context_t context = 0;
         syscall(SYS_io_setup, 4, &context);
         uint64_t p = t.out(32);
         t.is_not_missed();
         uint64_t time = t.in(moment), mask = t.in(uint64_t{0});
         t.null_is_other();
         t.call(SYS_io_pgetevents, context, 0, 1, p, time, t.in(std::vector<uint64_t>{mask, 8}));
       }},
      {SYS_io_cancel, "io_cancel of nothing",
       [](Trial& t) {
         aio_context_t context = 0;
         syscall(SYS_io_setup, 4, &context);
         t.call(SYS_io_cancel, context, t.in(iocb{}, 56), 0);
       },
       -EINVAL},
      {SYS_io_uring_setup, "io_uring_setup",
       [](Trial& t) { t.call(SYS_io_uring_setup, 4, t.in(std::vector<uint64_t>(15))); }},
      {SYS_landlock_create_ruleset, "landlock_create_ruleset",
       [](Trial& t) { t.call(SYS_landlock_create_ruleset, t.in(uint64_t{1}), 8, 0); }},
      {SYS_landlock_add_rule, "landlock_add_rule",
       [](Trial& t) {
         landlock_ruleset_attr attributes{1};
         auto set = uint64_t(syscall(SYS_landlock_create_ruleset, &attributes, 8, 0));
         landlock_path_beneath_attr rule{1, open(".", O_PATH)};
         t.call(SYS_landlock_add_rule, set, 1, t.in(rule), 0);
       }},
      {451, "cachestat",
       [](Trial& t) {
         int fd = file_with("abc");
         uint64_t range = t.in(std::vector<uint64_t>{0, 0});
         t.call(451, uint64_t(fd), range, t.out(40), 0);
       }},
      {461, "lsm_list_modules",
       [](Trial& t) {
         uint32_t size = 0;
         syscall(461, nullptr, &size, 0);
         uint64_t p = t.out(size ? size : 8, 8);
         t.null_is_other();
         t.call(461, p, t.in(size ? size : 8), 0);
       }},
  };
}

}  // namespace weir::rt
