// Calls on memory, on what processes share, and on keys, counters and modules, for call_kernel_test.cc.

#include <linux/perf_event.h>
#include <mqueue.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "call_trial.h"

namespace weir::rt {
namespace {

using std::string;

const timespec moment{0, 1000}, second{1, 0};
int queue_with(const string& text) {
  mq_attr attributes{};
  attributes.mq_maxmsg = 4, attributes.mq_msgsize = 64;
  auto fd = int(syscall(SYS_mq_open, "q", O_RDWR | O_CREAT, 0600, &attributes));
  if (!text.empty()) syscall(SYS_mq_timedsend, fd, text.data(), text.size(), 3, nullptr);
  return fd;
}
struct Message {
  long type;
  char text[16];
};
int messages_with(const char* text) {
  int id = msgget(IPC_PRIVATE, 0600);
  Message m{3, ""};
  strncpy(m.text, text, sizeof m.text - 1);
  if (*text) msgsnd(id, &m, strlen(text), 0);
  return id;
}
uint64_t mapped(uint64_t size) {
  return reinterpret_cast<uint64_t>(mmap(nullptr, size, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
uint64_t keyring() { return uint64_t(-2); }  // of the process
uint64_t key_with(const char* payload) {
  return uint64_t(syscall(SYS_add_key, "user", "weir", payload, strlen(payload), -2));
}

}  // namespace

std::vector<Case> shared_cases() {
  return {
      {SYS_mincore, "mincore", [](Trial& t) { t.call(SYS_mincore, mapped(12288), 8193, t.out(3)); }},
      {SYS_get_mempolicy, "get_mempolicy",
       [](Trial& t) {
         uint64_t a = t.out(4), b = t.out(128);
         t.call(SYS_get_mempolicy, a, b, 1024, 0, 0);
       }},
      {SYS_set_mempolicy, "set_mempolicy",
       [](Trial& t) {
         uint64_t mask = 1;
         uint64_t p = t.in(mask);
         t.null_is_other();
         t.call(SYS_set_mempolicy, 2, p, 64);
       }},
      {SYS_mbind, "mbind",
       [](Trial& t) {
         uint64_t mask = 1;
         uint64_t p = t.in(mask);
         t.null_is_other();
         t.call(SYS_mbind, mapped(4096), 4096, 2, p, 64, 0);
       }},
      {SYS_migrate_pages, "migrate_pages",
       [](Trial& t) {
         uint64_t mask = 1, a = t.in(mask);
         t.null_is_other();
         uint64_t b = t.in(mask);
         t.null_is_other();
         t.call(SYS_migrate_pages, 0, 64, a, b);
       }},
      {SYS_move_pages, "move_pages",
       [](Trial& t) {
         uint64_t p = mapped(4096), a = t.in(std::vector<uint64_t>{p, p});
         t.call(SYS_move_pages, 0, 2, a, 0, t.out(8), 2);
       }},
      {SYS_futex, "futex(FUTEX_WAIT)",
       [](Trial& t) {
         uint64_t a = t.in(1, 4);
         t.call(SYS_futex, a, 128, 1, t.in(moment));
       },
       -ETIMEDOUT},
      {SYS_futex, "futex(FUTEX_WAIT_BITSET)",
       [](Trial& t) {
         uint64_t a = t.in(1, 4);
         t.call(SYS_futex, a, 128 + 9, 1, t.in(moment), 0, 1);
       },
       -ETIMEDOUT},
      {SYS_futex, "futex(FUTEX_WAKE)", [](Trial& t) { t.call(SYS_futex, t.in(1, 4), 128 + 1, 1); }},
      {SYS_futex, "futex(FUTEX_CMP_REQUEUE)",
       [](Trial& t) {
         uint64_t a = t.in(1, 4);
         t.call(SYS_futex, a, 128 + 4, 1, 1, mapped(4096), 1);
       }},
      {SYS_futex, "futex(FUTEX_WAKE_OP)",
       [](Trial& t) { t.call(SYS_futex, mapped(4096), 128 + 5, 1, 1, t.in(1, 4), 1 << 12); }},
      {SYS_futex, "futex(FUTEX_LOCK_PI)",
       [](Trial& t) {
         uint64_t a = t.in(0, 4);
         t.call(SYS_futex, a, 128 + 6, 0, t.in(second));
       }},
      {SYS_futex, "futex(FUTEX_TRYLOCK_PI)", [](Trial& t) { t.call(SYS_futex, t.in(0, 4), 128 + 8); }},
      {SYS_futex, "futex(FUTEX_UNLOCK_PI)", [](Trial& t) { t.call(SYS_futex, t.in(uint32_t(getpid()), 4), 128 + 7); }},
      {SYS_futex_waitv, "futex_waitv",
       [](Trial& t) {
         struct {
           uint64_t value, address;
           uint32_t flags, reserved;
         } waiter{1, t.in(1, 4), 128 + 2, 0};
         uint64_t w = t.in(waiter);
         t.null_is_other();
         t.call(SYS_futex_waitv, w, 1, 0, t.in(moment), CLOCK_MONOTONIC);
       },
       -ETIMEDOUT},
      {454, "futex_wake", [](Trial& t) { t.call(454, t.in(1, 4), ~0u, 1, 128 + 2); }},
      {455, "futex_wait",
       [](Trial& t) {
         uint64_t a = t.in(1, 4);
         t.call(455, a, 1, ~0u, 128 + 2, t.in(moment), CLOCK_MONOTONIC);
       },
       -ETIMEDOUT},
      {456, "futex_requeue",
       [](Trial& t) {
         struct {
           uint64_t value, address;
           uint32_t flags, reserved;
         } waiters[2] = {{1, t.in(1, 4), 128 + 2, 0}, {1, mapped(4096), 128 + 2, 0}};
         uint64_t w = t.in(waiters);
         t.null_is_other();
         t.call(456, w, 0, 1, 1);
       }},
      {SYS_get_robust_list, "get_robust_list",
       [](Trial& t) {
         uint64_t a = t.out(8);
         t.call(SYS_get_robust_list, 0, a, t.out(8));
       }},
      {SYS_set_tid_address, "set_tid_address", [](Trial& t) { t.call(SYS_set_tid_address, t.out(4)); }},
      {SYS_set_robust_list, "set_robust_list", [](Trial& t) { t.call(SYS_set_robust_list, mapped(4096), 24); }},
      {SYS_semop, "semop",
       [](Trial& t) {
         auto id = uint64_t(semget(IPC_PRIVATE, 2, 0600));
         t.call(SYS_semop, id, t.in(std::vector<sembuf>{{0, 1, 0}, {1, 1, 0}}), 2);
       }},
      {SYS_semtimedop, "semtimedop",
       [](Trial& t) {
         auto id = uint64_t(semget(IPC_PRIVATE, 2, 0600));
         uint64_t p = t.in(std::vector<sembuf>{{0, 1, 0}});
         t.call(SYS_semtimedop, id, p, 1, t.in(second));
       }},
      {SYS_semctl, "semctl(IPC_STAT)",
       [](Trial& t) { t.call(SYS_semctl, uint64_t(semget(IPC_PRIVATE, 2, 0600)), 0, IPC_STAT, t.out(104)); }},
      {SYS_semctl, "semctl(IPC_SET)",
       [](Trial& t) {
         semid_ds ds{};
         t.call(SYS_semctl, uint64_t(semget(IPC_PRIVATE, 2, 0600)), 0, IPC_SET, t.in(ds));
       }},
      {SYS_semctl, "semctl(GETALL)",
       [](Trial& t) {
         uint64_t p = t.out(4);
         t.null_is_other();
         t.call(SYS_semctl, uint64_t(semget(IPC_PRIVATE, 2, 0600)), 0, GETALL, p);
       }},
      {SYS_semctl, "semctl(IPC_INFO)", [](Trial& t) { t.call(SYS_semctl, 0, 0, IPC_INFO, t.out(40)); }},
      {SYS_shmctl, "shmctl(IPC_STAT)",
       [](Trial& t) { t.call(SYS_shmctl, uint64_t(shmget(IPC_PRIVATE, 9, 0600)), IPC_STAT, t.out(112)); }},
      {SYS_shmctl, "shmctl(IPC_SET)",
       [](Trial& t) {
         shmid_ds ds{};
         t.call(SYS_shmctl, uint64_t(shmget(IPC_PRIVATE, 9, 0600)), IPC_SET, t.in(ds));
       }},
      {SYS_shmctl, "shmctl(IPC_INFO)", [](Trial& t) { t.call(SYS_shmctl, 0, IPC_INFO, t.out(72)); }},
      {SYS_shmctl, "shmctl(SHM_INFO)", [](Trial& t) { t.call(SYS_shmctl, 0, SHM_INFO, t.out(48)); }},
      {SYS_msgsnd, "msgsnd",
       [](Trial& t) {
         auto id = uint64_t(messages_with(""));
         t.call(SYS_msgsnd, id, t.bytes("\1\0\0\0\0\0\0\0hello", 13), 5, 0);
       }},
      {SYS_msgrcv, "msgrcv",
       [](Trial& t) {
         auto id = uint64_t(messages_with("hello"));
         t.call(SYS_msgrcv, id, t.out(13), 5, 0, 0);
       }},
      {SYS_msgrcv, "msgrcv into more",
       [](Trial& t) {
         auto id = uint64_t(messages_with("hello"));
         uint64_t p = t.out(28);
         t.is_not_missed();
         t.call(SYS_msgrcv, id, p, 20, 0, 0);
       }},
      {SYS_msgctl, "msgctl(IPC_STAT)",
       [](Trial& t) { t.call(SYS_msgctl, uint64_t(messages_with("")), IPC_STAT, t.out(120)); }},
      {SYS_msgctl, "msgctl(IPC_SET)",
       [](Trial& t) {
         msqid_ds ds{};
         t.call(SYS_msgctl, uint64_t(messages_with("")), IPC_SET, t.in(ds));
       }},
      {SYS_msgctl, "msgctl(IPC_INFO)", [](Trial& t) { t.call(SYS_msgctl, 0, IPC_INFO, t.out(32)); }},
      {SYS_mq_open, "mq_open",
       [](Trial& t) {
         uint64_t name = t.in(string("q"));
         t.call(SYS_mq_open, name, O_RDWR | O_CREAT, 0600, t.bytes(std::vector<long>{0, 2, 8, 0, 0, 0, 0, 0}.data(), 64));
       }},
      {SYS_mq_unlink, "mq_unlink",
       [](Trial& t) {
         queue_with("");
         t.call(SYS_mq_unlink, t.in(string("q")));
       }},
      {SYS_mq_timedsend, "mq_timedsend",
       [](Trial& t) {
         auto q = uint64_t(queue_with(""));
         uint64_t p = t.in(string("hello"));
         t.call(SYS_mq_timedsend, q, p, 6, 1, t.in(second));
       }},
      {SYS_mq_timedreceive, "mq_timedreceive",
       [](Trial& t) {
         auto q = uint64_t(queue_with(string(64, 'h')));
         uint64_t p = t.out(64), priority = t.out(4);
         t.call(SYS_mq_timedreceive, q, p, 64, priority, t.in(second));
       }},
      {SYS_mq_notify, "mq_notify",
       [](Trial& t) {
         struct sigevent event{};
         event.sigev_notify = SIGEV_NONE;
         auto q = uint64_t(queue_with(""));
         t.call(SYS_mq_notify, q, t.in(event));
       }},
      {SYS_mq_getsetattr, "mq_getsetattr",
       [](Trial& t) {
         auto q = uint64_t(queue_with(""));
         uint64_t a = t.in(std::vector<long>(8));
         t.call(SYS_mq_getsetattr, q, a, t.out(64));
       }},
      {SYS_getrandom, "getrandom", [](Trial& t) { t.call(SYS_getrandom, t.out(100), 100, 0); }},
      {SYS_add_key, "add_key",
       [](Trial& t) {
         uint64_t type = t.in(string("user")), name = t.in(string("weir"));
         t.null_is_other();
         uint64_t p = t.in(string("secret"));
         t.null_is_other();
         t.call(SYS_add_key, type, name, p, 6, keyring());
       }},
      {SYS_request_key, "request_key",
       [](Trial& t) {
         key_with("secret");
         uint64_t type = t.in(string("user"));
         t.call(SYS_request_key, type, t.in(string("weir")), 0, 0);
       }},
      {SYS_keyctl, "keyctl(KEYCTL_DESCRIBE)",
       [](Trial& t) {
         uint64_t k = key_with("secret");
         char b[99];
         auto n = syscall(SYS_keyctl, 6, k, b, sizeof b);
         uint64_t p = t.out(uint64_t(n));
         t.null_is_other();
         t.call(SYS_keyctl, 6, k, p, uint64_t(n));
       }},
      {SYS_keyctl, "keyctl(KEYCTL_DESCRIBE) without room",
       [](Trial& t) {
         uint64_t k = key_with("secret"), p = t.out(8);
         t.is_not_missed();
         t.call(SYS_keyctl, 6, k, p, 8);
       }},
      {SYS_keyctl, "keyctl(KEYCTL_READ)",
       [](Trial& t) {
         uint64_t k = key_with("secret"), p = t.out(6);
         t.null_is_other();
         t.call(SYS_keyctl, 11, k, p, 6);
       }},
      {SYS_keyctl, "keyctl(KEYCTL_UPDATE)",
       [](Trial& t) {
         uint64_t k = key_with("secret"), p = t.in(string("other"));
         t.null_is_other();
         t.call(SYS_keyctl, 2, k, p, 5);
       }},
      {SYS_keyctl, "keyctl(KEYCTL_SEARCH)",
       [](Trial& t) {
         key_with("secret");
         uint64_t type = t.in(string("user"));
         t.call(SYS_keyctl, 10, keyring(), type, t.in(string("weir")), 0);
       }},
      {SYS_keyctl, "keyctl(KEYCTL_GET_SECURITY)",
       [](Trial& t) {
         uint64_t k = key_with("secret"), p = t.out(1);
         t.null_is_other();
         t.call(SYS_keyctl, 17, k, p, 1);
       }},
      {SYS_keyctl, "keyctl(KEYCTL_CAPABILITIES)", [](Trial& t) { t.call(SYS_keyctl, 31, t.out(6), 6); }},
      {SYS_perf_event_open, "perf_event_open",
       [](Trial& t) {
         perf_event_attr a{};
         a.type = PERF_TYPE_SOFTWARE, a.size = sizeof a, a.config = PERF_COUNT_SW_TASK_CLOCK;
         t.call(SYS_perf_event_open, t.in(a), 0, uint64_t(-1), uint64_t(-1), 0);
       }},
      {SYS_perf_event_open, "perf_event_open of a wrong size",
       [](Trial& t) { t.call(SYS_perf_event_open, t.in(std::vector<uint32_t>{1, 5}), 0, uint64_t(-1), uint64_t(-1), 0); },
       -E2BIG},
      {SYS_bpf, "bpf(BPF_MAP_CREATE)",
       [](Trial& t) { t.call(SYS_bpf, 0, t.in(std::vector<uint32_t>{2, 4, 4, 1, 0}), 20); }},
      {SYS_bpf, "bpf(BPF_PROG_LOAD)",
       [](Trial& t) {
         struct {
           uint32_t type, count;
           uint64_t code, license;
           uint32_t level, size;
           uint64_t log;
           uint32_t version, flags;
         } attr{};
         std::vector<uint64_t> code{0xb7, 0x95};
         attr.type = 1, attr.count = 2, attr.code = t.in(code), attr.license = t.in(string("GPL"));
         t.call(SYS_bpf, 5, t.in(attr), sizeof attr);
       }},
      {SYS_syslog, "syslog",
       [](Trial& t) {
         uint64_t p = t.out(40);
         t.is_not_missed();
         t.call(SYS_syslog, 3, p, 40);
       }},
      {SYS_init_module, "init_module",
       [](Trial& t) {
         uint64_t p = t.in(string(100, 'x'));
         t.null_is_other();
         uint64_t args = t.in(string("a"));
         t.is_not_missed();
         t.call(SYS_init_module, p, 100, args);
       },
       -ENOEXEC},
      {SYS_finit_module, "finit_module",
       [](Trial& t) {
         uint64_t p = t.in(string("a"));
         t.is_not_missed();
         t.call(SYS_finit_module, uint64_t(open("none", O_RDWR | O_CREAT, 0600)), p, 0);
       },
       -ENOEXEC},
      {SYS_kexec_load, "kexec_load",
       [](Trial& t) {
         uint64_t p = t.in(std::vector<uint64_t>{0, 0, 1, 1});
         t.call(SYS_kexec_load, 0, 1, p, 0);
       },
       -EADDRNOTAVAIL},
      {SYS_kexec_file_load, "kexec_file_load",
       [](Trial& t) {
         uint64_t p = t.in(string("a"));
         t.is_not_missed();
         t.call(SYS_kexec_file_load, 999, 999, 2, p, 0);
       },
       -EBADF},
      {SYS_reboot, "reboot with a wrong number",
       [](Trial& t) {
         uint64_t p = t.in(string("a"));
         t.is_not_missed();
         t.call(SYS_reboot, 1, 2, 0xa1b2c3d4, p);
       },
       -EINVAL},
      {SYS_membarrier, "membarrier", [](Trial& t) { t.call(SYS_membarrier, 0, 0, 0); }},
      {SYS_delete_module, "delete_module", [](Trial& t) { t.call(SYS_delete_module, t.in(string("none")), 0); }, -ENOENT},
      {460, "lsm_set_self_attr", [](Trial& t) { t.call(460, 100, t.in(std::vector<uint64_t>(4)), 32, 0); }, 0, true},
      {459, "lsm_get_self_attr",
       [](Trial& t) {
         uint64_t p = t.out(64);
         t.is_not_missed();
         t.call(459, 100, p, t.in(64), 0);
       }},
  };
}

}  // namespace weir::rt
