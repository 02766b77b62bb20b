// Calls on names of files, and on file systems, for call_kernel_test.cc.

#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>

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
uint64_t at_cwd() { return uint64_t(AT_FDCWD); }
const timespec two_times[2] = {{1000, 1}, {2000, 2}};
const timeval two_old_times[2] = {{1000, 1}, {2000, 2}};

struct Handle {
  unsigned size;
  int type;
  unsigned char bytes[128];
};
Handle handle_of(const char* name) {
  Handle h{};
  h.size = 128;
  int mount;
  if (syscall(SYS_name_to_handle_at, AT_FDCWD, name, &h, &mount, 0)) h.size = 8;
  return h;
}
// Of the file a; (for root only).
void set_attribute() {
  if (setxattr("a", "trusted.n", "value", 5, 0)) abort();
}

}  // namespace

std::vector<Case> name_cases() {
  return {
      {SYS_open, "open",
       [](Trial& t) {
         file_with("", "some");
         t.call(SYS_open, t.in(string("some")), O_RDONLY);
       }},
      {SYS_open, "open, by a name that is too long",
       [](Trial& t) {
         uint64_t p = t.in(string(5000, 'x'));
         t.is_not_missed();
         t.call(SYS_open, p, O_RDONLY);
       },
       -ENAMETOOLONG},
      {SYS_openat, "openat", [](Trial& t) { t.call(SYS_openat, at_cwd(), t.in(string("new")), O_RDWR | O_CREAT, 0600); }},
      {SYS_openat2, "openat2",
       [](Trial& t) {
         open_how how{O_RDWR | O_CREAT, 0600, 0};
         uint64_t name = t.in(string("new"));
         t.call(SYS_openat2, at_cwd(), name, t.in(how), sizeof how);
       }},
      {SYS_creat, "creat", [](Trial& t) { t.call(SYS_creat, t.in(string("new")), 0600); }},
      {SYS_stat, "stat",
       [](Trial& t) {
         uint64_t p = t.in(string("."));
         t.call(SYS_stat, p, t.out(144));
       }},
      {SYS_lstat, "lstat",
       [](Trial& t) {
         uint64_t p = t.in(string("."));
         t.call(SYS_lstat, p, t.out(144));
       }},
      {SYS_fstat, "fstat", [](Trial& t) { t.call(SYS_fstat, uint64_t(file_with("")), t.out(144)); }},
      {SYS_newfstatat, "newfstatat",
       [](Trial& t) {
         uint64_t p = t.in(string("."));
         t.call(SYS_newfstatat, at_cwd(), p, t.out(144));
       }},
      {SYS_newfstatat, "newfstatat of a descriptor",
       [](Trial& t) {
         uint64_t p = t.in(string(""));
         t.call(SYS_newfstatat, uint64_t(file_with("")), p, t.out(144), AT_EMPTY_PATH);
       }},
      {SYS_statx, "statx",
       [](Trial& t) {
         uint64_t p = t.in(string("."));
         t.call(SYS_statx, at_cwd(), p, 0, 0x7ff, t.out(256));
       }},
      {SYS_statfs, "statfs",
       [](Trial& t) {
         uint64_t p = t.in(string("."));
         t.call(SYS_statfs, p, t.out(120));
       }},
      {SYS_fstatfs, "fstatfs", [](Trial& t) { t.call(SYS_fstatfs, uint64_t(file_with("")), t.out(120)); }},
      {SYS_ustat, "ustat",
       [](Trial& t) {
         struct stat s;
         stat(".", &s);
         uint64_t p = t.out(32);
         t.is_not_missed();
         t.call(SYS_ustat, s.st_dev, p);
       },
       0},
      {SYS_access, "access", [](Trial& t) { t.call(SYS_access, t.in(string("."))); }},
      {SYS_faccessat, "faccessat", [](Trial& t) { t.call(SYS_faccessat, at_cwd(), t.in(string("."))); }},
      {SYS_faccessat2, "faccessat2", [](Trial& t) { t.call(SYS_faccessat2, at_cwd(), t.in(string(".")), 0, 0); }},
      {SYS_truncate, "truncate",
       [](Trial& t) {
         file_with("abc", "some");
         t.call(SYS_truncate, t.in(string("some")), 1);
       }},
      {SYS_getcwd, "getcwd",
       [](Trial& t) {
         char here[200];
         auto n = syscall(SYS_getcwd, here, sizeof here);
         t.call(SYS_getcwd, t.out(uint64_t(n)), uint64_t(n));
       }},
      {SYS_getcwd, "getcwd into more",
       [](Trial& t) {
         uint64_t p = t.out(100);
         t.is_not_missed();
         t.call(SYS_getcwd, p, 100);
       }},
      {SYS_chdir, "chdir", [](Trial& t) { t.call(SYS_chdir, t.in(string("."))); }},
      {SYS_rename, "rename",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(SYS_rename, a, t.in(string("b")));
       }},
      {SYS_renameat, "renameat",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(SYS_renameat, at_cwd(), a, at_cwd(), t.in(string("b")));
       }},
      {SYS_renameat2, "renameat2",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(SYS_renameat2, at_cwd(), a, at_cwd(), t.in(string("b")));
       }},
      {SYS_mkdir, "mkdir", [](Trial& t) { t.call(SYS_mkdir, t.in(string("d")), 0700); }},
      {SYS_mkdirat, "mkdirat", [](Trial& t) { t.call(SYS_mkdirat, at_cwd(), t.in(string("d")), 0700); }},
      {SYS_rmdir, "rmdir",
       [](Trial& t) {
         mkdir("d", 0700);
         t.call(SYS_rmdir, t.in(string("d")));
       }},
      {SYS_link, "link",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(SYS_link, a, t.in(string("b")));
       }},
      {SYS_linkat, "linkat",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(SYS_linkat, at_cwd(), a, at_cwd(), t.in(string("b")));
       }},
      {SYS_unlink, "unlink",
       [](Trial& t) {
         file_with("", "a");
         t.call(SYS_unlink, t.in(string("a")));
       }},
      {SYS_unlinkat, "unlinkat",
       [](Trial& t) {
         file_with("", "a");
         t.call(SYS_unlinkat, at_cwd(), t.in(string("a")));
       }},
      {SYS_symlink, "symlink",
       [](Trial& t) {
         uint64_t a = t.in(string("a"));
         t.call(SYS_symlink, a, t.in(string("b")));
       }},
      {SYS_symlinkat, "symlinkat",
       [](Trial& t) {
         uint64_t a = t.in(string("a"));
         t.call(SYS_symlinkat, a, at_cwd(), t.in(string("b")));
       }},
      {SYS_readlink, "readlink",
       [](Trial& t) {
         if (symlink("target", "l")) abort();
         uint64_t l = t.in(string("l"));
         t.call(SYS_readlink, l, t.out(6), 6);
       }},
      {SYS_readlinkat, "readlinkat into more",
       [](Trial& t) {
         if (symlink("target", "l")) abort();
         uint64_t l = t.in(string("l")), p = t.out(60);
         t.is_not_missed();
         t.call(SYS_readlinkat, at_cwd(), l, p, 60);
       }},
      {SYS_chmod, "chmod",
       [](Trial& t) {
         file_with("", "a");
         t.call(SYS_chmod, t.in(string("a")), 0600);
       }},
      {SYS_fchmodat, "fchmodat",
       [](Trial& t) {
         file_with("", "a");
         t.call(SYS_fchmodat, at_cwd(), t.in(string("a")), 0600);
       }},
      {452, "fchmodat2",
       [](Trial& t) {
         file_with("", "a");
         t.call(452, at_cwd(), t.in(string("a")), 0600, 0);
       }},
      {SYS_chown, "chown",
       [](Trial& t) {
         file_with("", "a");
         t.call(SYS_chown, t.in(string("a")), uint64_t(-1), uint64_t(-1));
       }},
      {SYS_lchown, "lchown",
       [](Trial& t) {
         file_with("", "a");
         t.call(SYS_lchown, t.in(string("a")), uint64_t(-1), uint64_t(-1));
       }},
      {SYS_fchownat, "fchownat",
       [](Trial& t) {
         file_with("", "a");
         t.call(SYS_fchownat, at_cwd(), t.in(string("a")), uint64_t(-1), uint64_t(-1), 0);
       }},
      {SYS_mknod, "mknod", [](Trial& t) { t.call(SYS_mknod, t.in(string("a")), S_IFIFO | 0600, 0); }},
      {SYS_mknodat, "mknodat", [](Trial& t) { t.call(SYS_mknodat, at_cwd(), t.in(string("a")), S_IFIFO | 0600, 0); }},
      {SYS_utime, "utime",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(SYS_utime, a, t.in(std::vector<uint64_t>{1, 2}));
       }},
      {SYS_utimes, "utimes",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(SYS_utimes, a, t.in(two_old_times));
       }},
      {SYS_futimesat, "futimesat",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.null_is_other();
         t.call(SYS_futimesat, at_cwd(), a, t.in(two_old_times));
       }},
      {SYS_utimensat, "utimensat",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.null_is_other();
         t.call(SYS_utimensat, at_cwd(), a, t.in(two_times), 0);
       }},
      {SYS_utimensat, "utimensat of a descriptor",
       [](Trial& t) { t.call(SYS_utimensat, uint64_t(file_with("")), 0, t.in(two_times), 0); }},
      {SYS_setxattr, "setxattr",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a")), n = t.in(string("trusted.n"));
         t.call(SYS_setxattr, a, n, t.in(string("value")), 6, 0);
       }},
      {SYS_lsetxattr, "lsetxattr",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a")), n = t.in(string("trusted.n"));
         t.call(SYS_lsetxattr, a, n, t.in(string("value")), 6, 0);
       }},
      {SYS_fsetxattr, "fsetxattr",
       [](Trial& t) {
         int fd = file_with("", "a");
         uint64_t n = t.in(string("trusted.n"));
         t.call(SYS_fsetxattr, uint64_t(fd), n, t.in(string("value")), 6, 0);
       }},
      {SYS_getxattr, "getxattr",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a")), n = t.in(string("trusted.n")), v = t.out(5);
         t.null_is_other();
         t.call(SYS_getxattr, a, n, v, 5);
       }},
      {SYS_getxattr, "getxattr, asking for the size",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a")), n = t.in(string("trusted.n"));
         t.call(SYS_getxattr, a, n, 0, 0);
       }},
      {SYS_lgetxattr, "lgetxattr",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a")), n = t.in(string("trusted.n")), v = t.out(5);
         t.null_is_other();
         t.call(SYS_lgetxattr, a, n, v, 5);
       }},
      {SYS_fgetxattr, "fgetxattr",
       [](Trial& t) {
         int fd = file_with("", "a");
         set_attribute();
         uint64_t n = t.in(string("trusted.n")), v = t.out(5);
         t.null_is_other();
         t.call(SYS_fgetxattr, uint64_t(fd), n, v, 5);
       }},
      {SYS_listxattr, "listxattr",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a")), v = t.out(10);
         t.null_is_other();
         t.call(SYS_listxattr, a, v, 10);
       }},
      {SYS_llistxattr, "llistxattr",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a")), v = t.out(10);
         t.null_is_other();
         t.call(SYS_llistxattr, a, v, 10);
       }},
      {SYS_flistxattr, "flistxattr",
       [](Trial& t) {
         int fd = file_with("", "a");
         set_attribute();
         uint64_t v = t.out(10);
         t.null_is_other();
         t.call(SYS_flistxattr, uint64_t(fd), v, 10);
       }},
      {SYS_removexattr, "removexattr",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a"));
         t.call(SYS_removexattr, a, t.in(string("trusted.n")));
       }},
      {SYS_lremovexattr, "lremovexattr",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a"));
         t.call(SYS_lremovexattr, a, t.in(string("trusted.n")));
       }},
      {SYS_fremovexattr, "fremovexattr",
       [](Trial& t) {
         int fd = file_with("", "a");
         set_attribute();
         t.call(SYS_fremovexattr, uint64_t(fd), t.in(string("trusted.n")));
       }},
      {463, "setxattrat",
       [](Trial& t) {
         file_with("", "a");
         struct {
           uint64_t value;
           uint32_t size, flags;
         } args{t.in(string("value")), 6, 0};
         uint64_t a = t.in(string("a")), n = t.in(string("trusted.n"));
         t.call(463, at_cwd(), a, 0, n, t.in(args), sizeof args);
       }},
      {464, "getxattrat",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         struct {
           uint64_t value;
           uint32_t size, flags;
         } args{t.out(5), 5, 0};
         t.null_is_other();
         uint64_t a = t.in(string("a")), n = t.in(string("trusted.n"));
         t.call(464, at_cwd(), a, 0, n, t.in(args), sizeof args);
       }},
      {465, "listxattrat",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a")), v = t.out(10);
         t.null_is_other();
         t.call(465, at_cwd(), a, 0, v, 10);
       }},
      {466, "removexattrat",
       [](Trial& t) {
         file_with("", "a");
         set_attribute();
         uint64_t a = t.in(string("a"));
         t.call(466, at_cwd(), a, 0, t.in(string("trusted.n")));
       }},
      {468, "file_getattr",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(468, at_cwd(), a, t.out(24), 24, 0);
       }},
      {469, "file_setattr",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a"));
         t.call(469, at_cwd(), a, t.in(std::vector<uint64_t>{0, 0, 0}), 24, 0);
       }},
      {SYS_getdents64, "getdents64",
       [](Trial& t) {
         file_with("", "abc");
         uint64_t p = t.out(72);
         t.is_not_missed();
         t.has_holes();
         t.call(SYS_getdents64, uint64_t(open("/proc/self/task", O_RDONLY)), p, 72);
       }},
      {SYS_getdents, "getdents",
       [](Trial& t) {
         uint64_t p = t.out(72);
         t.is_not_missed();
         t.has_holes();
         t.call(SYS_getdents, uint64_t(open("/proc/self/task", O_RDONLY)), p, 72);
       }},
      {SYS_fanotify_mark, "fanotify_mark",
       [](Trial& t) {
         auto fd = uint64_t(syscall(SYS_fanotify_init, 0, 0));
         uint64_t p = t.in(string("."));
         t.null_is_other();
         t.call(SYS_fanotify_mark, fd, 1, 1, at_cwd(), p);
       }},
      {SYS_quotactl_fd, "quotactl_fd",
       [](Trial& t) { t.call(SYS_quotactl_fd, uint64_t(open(".", O_RDONLY)), 0x80000400, 0, t.out(4)); }},
      {SYS_uselib, "uselib", [](Trial& t) { t.call(SYS_uselib, t.in(string("none"))); }, -ENOENT},
      {SYS_lookup_dcookie, "lookup_dcookie", [](Trial& t) { t.call(SYS_lookup_dcookie, 1, t.out(9), 9); }, -EINVAL},
      {SYS_io_uring_enter, "io_uring_enter",
       [](Trial& t) {
         uint64_t params[15] = {};
         auto ring = uint64_t(syscall(SYS_io_uring_setup, 4, params));
         uint64_t p = t.in(uint64_t{0});
         t.is_not_missed();  // (it does not wait)
         t.call(SYS_io_uring_enter, ring, 0, 0, 1, p, 8);
       }},
      {SYS_io_uring_register, "io_uring_register",
       [](Trial& t) {
         uint64_t params[15] = {};
         auto ring = uint64_t(syscall(SYS_io_uring_setup, 4, params));
         uint64_t p = t.in(std::vector<int>{-1, -1});
         t.is_not_missed();
         t.call(SYS_io_uring_register, ring, 2, p, 2);
       }},
      {SYS_pipe, "pipe", [](Trial& t) { t.call(SYS_pipe, t.out(8)); }},
      {SYS_pipe2, "pipe2", [](Trial& t) { t.call(SYS_pipe2, t.out(8), 0); }},
      {SYS_memfd_create, "memfd_create", [](Trial& t) { t.call(SYS_memfd_create, t.in(string("name")), 0); }},
      {SYS_acct, "acct of no file",
       [](Trial& t) {
         uint64_t p = t.in(string("none"));
         t.null_is_other();
         t.call(SYS_acct, p);
       },
       -ENOENT},
      {SYS_chroot, "chroot", [](Trial& t) { t.call(SYS_chroot, t.in(string("."))); }},
      {SYS_pivot_root, "pivot_root",
       [](Trial& t) {
         uint64_t a = t.in(string("."));
         t.call(SYS_pivot_root, a, t.in(string("none")));
       },
       -ENOENT},
      {SYS_swapon, "swapon of no file", [](Trial& t) { t.call(SYS_swapon, t.in(string("none")), 0); }, -ENOENT},
      {SYS_swapoff, "swapoff of no file", [](Trial& t) { t.call(SYS_swapoff, t.in(string("none"))); }, -ENOENT},
      {SYS_mount, "mount",
       [](Trial& t) {
         mkdir("d", 0700);
         uint64_t dev = t.in(string("none"));
         t.null_is_other();
         uint64_t dir = t.in(string("d")), type = t.in(string("tmpfs"));
         t.null_is_other();
         uint64_t data = t.in(string("size=1m"));
         t.is_not_missed();
         t.call(SYS_mount, dev, dir, type, 0, data);
       }},
      {SYS_umount2, "umount2",
       [](Trial& t) {
         mkdir("d", 0700);
         mount("none", "d", "tmpfs", 0, nullptr);
         t.call(SYS_umount2, t.in(string("d")), 0);
       }},
      {SYS_fsopen, "fsopen", [](Trial& t) { t.call(SYS_fsopen, t.in(string("tmpfs")), 0); }},
      {SYS_fsconfig, "fsconfig of a string",
       [](Trial& t) {
         auto fd = uint64_t(syscall(SYS_fsopen, "tmpfs", 0));
         uint64_t key = t.in(string("size"));
         t.null_is_other();
         uint64_t value = t.in(string("1m"));
         t.null_is_other();
         t.call(SYS_fsconfig, fd, 1, key, value, 0);
       }},
      {SYS_fspick, "fspick", [](Trial& t) { t.call(SYS_fspick, at_cwd(), t.in(string(".")), 0); }},
      {SYS_open_tree, "open_tree", [](Trial& t) { t.call(SYS_open_tree, at_cwd(), t.in(string(".")), 0); }},
      {467, "open_tree_attr",
       [](Trial& t) {
         uint64_t p = t.in(string("."));
         t.call(467, at_cwd(), p, 1, t.in(std::vector<uint64_t>{2, 0, 0, 0}), 32);
       }},
      {SYS_move_mount, "move_mount",
       [](Trial& t) {
         mkdir("d", 0700);
         mkdir("e", 0700);
         mount("none", "d", "tmpfs", 0, nullptr);
         uint64_t p = t.in(string("d"));
         t.call(SYS_move_mount, at_cwd(), p, at_cwd(), t.in(string("e")), 0);
       }},
      {SYS_mount_setattr, "mount_setattr",
       [](Trial& t) {
         uint64_t p = t.in(string("."));
         t.call(SYS_mount_setattr, at_cwd(), p, 0, t.in(std::vector<uint64_t>{2, 0, 0, 0}), 32);
       }},
      {457, "statmount",
       [](Trial& t) {
         struct statx s;
         statx(AT_FDCWD, ".", 0, 0x4000, &s);
         uint64_t request = t.in(std::vector<uint64_t>{24, s.stx_mnt_id, 3});
         uint64_t p = t.out(560);
         t.is_not_missed();
         t.call(457, request, p, 560, 0);
       }},
      {458, "listmount",
       [](Trial& t) {
         uint64_t request = t.in(std::vector<uint64_t>{24, ~uint64_t{0}, 0});
         t.call(458, request, t.out(8), 1, 0);
       }},
      {SYS_quotactl, "quotactl",
       [](Trial& t) {
         uint64_t p = t.in(string("none"));
         t.null_is_other();
         t.call(SYS_quotactl, 0x80000100, p, 0, 0);
       },
       -ENOENT},
      {SYS_sysfs, "sysfs of a name", [](Trial& t) { t.call(SYS_sysfs, 1, t.in(string("tmpfs"))); }},
      {SYS_sysfs, "sysfs of a number",
       [](Trial& t) {
         uint64_t p = t.out(64);
         t.is_not_missed();
         t.call(SYS_sysfs, 2, 1, p);
       }},
      {SYS_name_to_handle_at, "name_to_handle_at",
       [](Trial& t) {
         file_with("", "a");
         Handle h = handle_of("a");
         uint64_t a = t.in(string("a")), p = t.bytes(&h, 8 + h.size), m = t.out(4);
         t.call(SYS_name_to_handle_at, at_cwd(), a, p, m, 0);
       }},
      {SYS_name_to_handle_at, "name_to_handle_at without room",
       [](Trial& t) {
         file_with("", "a");
         uint64_t a = t.in(string("a")), p = t.in(std::vector<uint32_t>{0, 0x5a5a5a5a}), m = t.out(4);
         t.call(SYS_name_to_handle_at, at_cwd(), a, p, m, 0);
       },
       -EOVERFLOW},
      {SYS_open_by_handle_at, "open_by_handle_at",
       [](Trial& t) {
         file_with("", "a");
         Handle h = handle_of("a");
         t.call(SYS_open_by_handle_at, at_cwd(), t.bytes(&h, 8 + h.size), O_RDONLY);
       }},
  };
}

}  // namespace weir::rt
