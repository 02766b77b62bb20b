// The table of system calls: that it is whole, what it tells where the kernel cannot be asked, and that nothing in memory can mislead it.

#include "rt/call_effects.h"

#include <asm/ioctls.h>
#include <asm/sockios.h>
#include <asm/unistd_64.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/hdreg.h>
#include <linux/i2c-dev.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <linux/input.h>
#include <linux/kd.h>
#include <linux/loop.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/serial.h>
#include <linux/sockios.h>
#include <linux/vt.h>
#include <netinet/in.h>
#include <scsi/scsi.h>
#include <scsi/scsi_ioctl.h>
#include <scsi/sg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <random>

namespace weir::rt {
namespace {

using Told = std::vector<Effect>;

bool read_own(const void* from, void* to, uint64_t size) {
  iovec here{to, size}, there{const_cast<void*>(from), size};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == ssize_t(size);
}
bool read_nothing(const void*, void*, uint64_t) { return false; }
std::mt19937_64 generator;
bool read_anything(const void*, void* to, uint64_t size) {
  for (uint64_t i = 0; i < size; i++) static_cast<uint8_t*>(to)[i] = uint8_t(generator() >> (generator() % 9 * 8));
  return generator() % 64;
}

Told before(SystemCall& call, ReadMemory* read = read_own) {
  Told told;
  for_each_effect(call, read, [&](const Effect& e) { told.push_back(e); });
  return told;
}
Told after(const SystemCall& call, int64_t result, ReadMemory* read = read_own) {
  Told told;
  for_each_effect(call, result, read, [&](const Effect& e) { told.push_back(e); });
  return told;
}
template <class T>
uint64_t at(T& object) {
  return reinterpret_cast<uint64_t>(&object);
}
// "R0-4 C4-8": what is read and only copied of [begin, …).
std::string looked(const Told& told, uint64_t begin, uint64_t size) {
  std::string text;
  for (const Effect& e : told)
    if (e.begin >= begin && e.begin < begin + size && (e.use == Use::Read || e.use == Use::Copied))
      text += fmt::format("{}{}-{} ", e.use == Use::Read ? 'R' : 'C', e.begin - begin, e.begin + e.size - begin);
  return text;
}

TEST(CallEffects, HasALineForEveryNumberOfTheKernelsHeader) {
  std::map<std::string, unsigned> lines;
#define CALL(number, name, ...) lines[#name] = number;
#include "rt/call_effects.inc"
#undef CALL
  FILE* macros = popen("echo '#include <asm/unistd_64.h>' | c++ -E -dM -", "r");
  ASSERT_TRUE(macros);
  char name[200];
  unsigned number = 0, count = 0;
  for (char line[300]; fgets(line, sizeof line, macros);)
    if (sscanf(line, "#define __NR_%199s %u", name, &number) == 2) {
      count++;
      EXPECT_TRUE(lines.contains(name) && lines[name] == number) << name << " " << number;
      EXPECT_TRUE(is_known_call(number)) << name;
    }
  pclose(macros);
  EXPECT_GT(count, 350u);
}

// The table of what calls take has the same names; (it knows fewer).
TEST(CallEffects, AgreesWithTheTableOfTimes) {
  std::map<unsigned, std::string> names;
#define CALL(number, name, ...) names[number] = #name;
#include "rt/call_effects.inc"
#undef CALL
  auto agree = [&](unsigned number, const std::string& name) {
    if (name == "unassigned") return;
    EXPECT_EQ(names[number], name);
  };
#define OS_CALL(number, name, ...) agree(number, #name);
#include "tools/count/os_calls.inc"
#undef OS_CALL
}

TEST(CallEffects, HasTheKernelsNumbersOfRequests) {
#define IOCTL(number, name, ...) EXPECT_EQ(uint64_t{number}, uint64_t(name)) << #name;
#include "rt/call_ioctls.inc"
#undef IOCTL
}

TEST(CallEffects, TellsAnUnknownNumber) {
  SystemCall call{5000, {1, 2, 3, 4, 5, 6}};
  Told told = before(call);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].use, Use::Unknown);
  EXPECT_EQ(after(call, 0).size(), 1u);
  EXPECT_FALSE(is_known_call(400));
}

TEST(CallEffects, TellsAnUnknownRequest) {
  SystemCall call{__NR_ioctl, {1, 0x7777, 0x1000}};
  Told told = before(call);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].use, Use::Unknown);
  EXPECT_EQ(told[0].begin, 0x1000u);
  SystemCall graphics{__NR_ioctl, {1, 0xc0106400, 0x1000}};  // DRM_IOCTL_VERSION has pointers inside
  told = before(graphics);
  EXPECT_EQ(told.back().use, Use::Unknown);
}

TEST(CallEffects, KnowsWhichArgumentsAreLookedAt) {
  auto used = [](uint64_t number, uint64_t a, uint64_t b, uint64_t c = 0) {
    SystemCall call{number, {a, b, c}};
    before(call);
    return call.used;
  };
  EXPECT_EQ(used(__NR_open, 0, O_RDONLY), 0b11);
  EXPECT_EQ(used(__NR_open, 0, O_CREAT), 0b111);
  EXPECT_EQ(used(__NR_openat, 0, 0, O_TMPFILE), 0b1111);
  EXPECT_EQ(used(__NR_fcntl, 1, F_GETFD), 0b11);
  EXPECT_EQ(used(__NR_fcntl, 1, F_SETFD), 0b111);
  EXPECT_EQ(used(__NR_futex, 0, 1), 0b111);
  EXPECT_EQ(used(__NR_ioctl, 0, TCFLSH), 0b111);
  EXPECT_EQ(used(__NR_getpid, 0, 0), 0);
  SystemCall call{__NR_read, {}};
  before(call);
  EXPECT_EQ(call.narrow, 0b1);
}

// Padding is not looked at: what leaves it uninitialized is right.
TEST(CallEffects, ToldFieldsLeavePaddingOut) {
  sockaddr_in internet{};
  internet.sin_family = AF_INET;
  SystemCall call{__NR_bind, {3, at(internet), sizeof internet}};
  EXPECT_EQ(looked(before(call), at(internet), sizeof internet), "R0-2 R2-8 C8-16 ");

  sockaddr_in6 newer{};
  newer.sin6_family = AF_INET6;
  call = {__NR_bind, {3, at(newer), sizeof newer}};
  EXPECT_EQ(looked(before(call), at(newer), sizeof newer), "R0-2 R2-24 C24-28 ");
  newer.sin6_addr.s6_addr[0] = 0xfe, newer.sin6_addr.s6_addr[1] = 0x80;
  call = {__NR_bind, {3, at(newer), sizeof newer}};
  EXPECT_EQ(looked(before(call), at(newer), sizeof newer), "R0-2 R2-28 ");

  struct {
    uint16_t family;
    char path[108];
  } local{AF_UNIX, "name"};
  call = {__NR_connect, {3, at(local), sizeof local}};
  EXPECT_EQ(looked(before(call), at(local), sizeof local), "R0-2 R2-7 C7-110 ");

  msghdr message{};
  call = {__NR_sendmsg, {3, at(message), 0}};
  EXPECT_EQ(looked(before(call), at(message), sizeof message), "R0-12 C12-16 R16-48 C48-56 ");

  uint64_t control[6] = {20, 0, 0, 20, 0, 0};  // two descriptors, each in a record of 20 bytes
  message.msg_control = control, message.msg_controllen = 44;
  call = {__NR_sendmsg, {3, at(message), 0}};
  EXPECT_EQ(looked(before(call), at(control), sizeof control), "R0-20 C20-24 R24-44 ");

  struct flock lock{};
  call = {__NR_fcntl, {3, F_SETLK, at(lock)}};
  EXPECT_EQ(looked(before(call), at(lock), sizeof lock), "R0-4 C4-8 R8-24 C24-28 C28-32 ");

  timex clock{};
  clock.modes = ADJ_STATUS;
  call = {__NR_adjtimex, {at(clock)}};
  EXPECT_EQ(looked(before(call), at(clock), sizeof clock), "R0-4 C4-40 R40-44 C44-208 ");

  uint64_t set[2] = {};  // of 100 descriptors
  call = {__NR_select, {100, at(set)}};
  EXPECT_EQ(looked(before(call), at(set), sizeof set), "R0-13 C13-16 ");

  timespec times[2] = {{0, UTIME_NOW}, {5, 5}};
  call = {__NR_utimensat, {uint64_t(AT_FDCWD), 0, at(times), 0}};
  EXPECT_EQ(looked(before(call), at(times), sizeof times), "C0-8 R8-16 R16-24 R24-32 ");
}

// What is told of mappings is there, and then is not.
TEST(CallEffects, TellsMappings) {
  auto is_mapped = [](const Effect& e) {
    std::vector<unsigned char> pages(e.size / 4096);
    return mincore(reinterpret_cast<void*>(e.begin), e.size, pages.data()) == 0;
  };
  auto make = [](SystemCall call) {
    before(call);
    int64_t result = syscall(long(call.number), call.arguments[0], call.arguments[1], call.arguments[2], call.arguments[3],
                             call.arguments[4], call.arguments[5]);
    return after(call, result);
  };
  Told told = make({__NR_mmap, {0, 10000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, uint64_t(-1), 0}});
  ASSERT_EQ(told.size(), 1u);
  Effect first = told[0];
  EXPECT_EQ(first.use, Use::Remapped);
  EXPECT_EQ(first.size, 12288u);
  EXPECT_TRUE(is_mapped(first));

  told = make({__NR_mremap, {first.begin, first.size, 1 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, first.begin + (1 << 24)}});
  ASSERT_EQ(told.size(), 2u);
  EXPECT_FALSE(is_mapped(told[0]));
  EXPECT_TRUE(is_mapped(told[1]));
  Effect moved = told[1];

  told = make({__NR_mremap, {moved.begin, moved.size, 4096, 0}});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].begin, moved.begin + 4096);
  EXPECT_EQ(told[0].size, moved.size - 4096);
  EXPECT_FALSE(is_mapped(told[0]));

  told = make({__NR_munmap, {moved.begin, 4096}});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(is_mapped(told[0]));
}

void check(const Told& told, uint64_t number) {
  for (const Effect& e : told) {
    EXPECT_TRUE(e.argument <= 5 || e.argument == 7) << number;
    EXPECT_TRUE(!e.begin || e.begin + e.size == 0 || e.begin + e.size >= e.begin) << number << ": it goes on at address 0";
    EXPECT_TRUE(e.size || e.use == Use::Unknown || e.use == Use::Remapped) << number;
  }
}

// Whatever the arguments are and memory holds, it comes to an end, and no stretch wraps around.
TEST(CallEffects, IsNotMisled) {
  const uint64_t values[] = {
      0, 1, 8, 4096, 0x7fff'ffff, 0xffff'ffff, 0x7fff'ffff'f000, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 20};
  for (uint64_t number = 0; number < 480; number++)
    for (int round = 0; round < 40; round++) {
      SystemCall call{number, {}};
      for (uint64_t& a : call.arguments) a = generator() % 2 ? values[generator() % std::size(values)] : generator() % 64;
      if (number == __NR_poll || number == __NR_ppoll) call.arguments[1] %= 4096;
      for (ReadMemory* read : {read_nothing, read_anything, read_own}) {
        check(before(call, read), number);
        for (int64_t result : {int64_t(0), int64_t(-14), int64_t(7), int64_t(generator() % 4096)})
          check(after(call, result, read), number);
      }
      if (HasFailure()) return;
    }
}

// Commands of the calls that have many.
TEST(CallEffects, IsNotMisledByCommands) {
  for (uint64_t number :
       {__NR_ioctl, __NR_fcntl, __NR_prctl, __NR_keyctl, __NR_ptrace, __NR_futex, __NR_bpf, __NR_quotactl, __NR_arch_prctl})
    for (uint64_t command = 0; command < 0x9000; command++) {
      SystemCall call{number, {command, command, generator() % 99, generator(), generator(), generator()}};
      check(before(call, read_anything), number);
      check(after(call, 5, read_anything), number);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace weir::rt
