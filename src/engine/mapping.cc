#include "engine/mapping.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

namespace weir::engine {

namespace {
bool is_lent(std::span<const process::Keeper::Loan> loans, int file) {
  return std::ranges::find(loans, file, &process::Keeper::Loan::file) != loans.end();
}
}  // namespace

std::shared_ptr<Memory> Memory::copy() const {
  auto child = std::make_shared<Memory>();
  child->mapped = mapped;
  child->kernels_choice = kernels_choice;
  child->region_files = region_files;
  return child;
}

Result<> Memory::copy_regions(const Space& space) {
  auto regions = space.tool().services().regions;
  for (size_t i = 0; i < region_files.size(); i++) {
    if (!is_copied_by_weir(regions[i])) continue;
    TRY(region_files[i], copy_file(regions[i], region_files[i]->get()));
    AppRange range = space.tool_regions()[i];
    own_pieces_.push_back({.file = region_files[i]->get(),
                           .offset = 0,
                           .address = range.begin.value,
                           .size = range.size(),
                           .protection = PROT_READ | PROT_WRITE});
  }
  return {};
}

bool Memory::admits(uint32_t slot) {
  if (!caller_ || caller_ == slot) return true;
  if (std::ranges::find(waiting_, slot) == waiting_.end()) waiting_.push_back(slot);
  return false;
}

bool Memory::send(const Caller& c) {
  std::span<rt::Call> out(c.block.calls);
  size_t n = std::min(c.calls.size(), out.size());
  std::copy_n(c.calls.begin(), n, out.begin());
  c.calls.erase(c.calls.begin(), c.calls.begin() + static_cast<ptrdiff_t>(n));
  std::span<const Piece> pieces = c.space.pieces();
  std::vector<Piece> own = std::exchange(own_pieces_, {});  // (few, if any)
  bool has_any = !own.empty() || mapped < pieces.size();
  bool is_other = has_any && process::Keeper::is_needed(c.pid);
  bool is_ours = is_other && process::Keeper::is_our_user(c.pid);  // … who may read archives
  auto file_of = [&](const Piece& piece) {
    return is_other && !is_ours && piece.is_archive ? c.space.file_for_others(piece) : piece.file;
  };
  std::vector<process::Keeper::Loan> loans;
  auto lend = [&](const Piece& piece) {
    int file = file_of(piece);
    if ((!piece.is_archive || is_ours || file != piece.file) && !is_lent(loans, file))
      loans.push_back({file, (piece.protection & PROT_WRITE) != 0});
  };
  if (is_other) {
    for (const Piece& piece : own) lend(piece);
    for (const Piece& piece : pieces.subspan(mapped)) lend(piece);
  }
  // A keeper stays, and holds what the process will map again as it changes. (Of archives there are copies, which take a while.)
  bool is_served = is_other && keeper_.serves(c.pid, loans);
  if (is_other && !is_served)
    for (const Piece& piece : pieces.first(mapped))
      if (!piece.is_archive || is_ours) lend(piece);
  if (is_served) keeper_.open_files();
  else if (has_any) keeper_ = process::Keeper(c.pid, loans);
  int file = -1;
  auto map = [&](const Piece& piece) {
    uint64_t flags =
        piece.is_change ? uint64_t{rt::Optional} : 0;  // what could not be mapped is asked for when it is missed
    if (file_of(piece) != file) {
      if (file >= 0) out[n++] = {SYS_close, {}, {}, rt::UsesDescriptor | rt::Optional};
      constexpr auto here = static_cast<uint64_t>(AT_FDCWD);  // (filters know openat rather than open)
      uint64_t way = (piece.protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC;
      rt::Call& open = out[n++] = {SYS_openat, {here, 0, way}, {}, flags | rt::UsesText | rt::Opens};
      fmt::format_to_n(open.text, sizeof open.text - 1, "/proc/{}/fd/{}", keeper_.pid(), file = file_of(piece));
    }
    uint64_t fixed = piece.is_new ? MAP_FIXED_NOREPLACE : MAP_FIXED;
    out[n++] = {SYS_mmap,
                {piece.address, piece.size, static_cast<uint64_t>(piece.protection), MAP_SHARED | MAP_NORESERVE | fixed, 0,
                 piece.offset},
                {},
                flags | rt::UsesDescriptor};
    // (Of shared memory core dumps would have all.)
    if (!piece.is_archive) out[n++] = {SYS_madvise, {piece.address, piece.size, MADV_DONTDUMP}, {}, rt::Optional};
  };
  constexpr size_t most = 4;  // that a piece needs, with the close() of the file before it
  size_t done = 0;
  for (; done < own.size() && n + most < out.size(); done++) map(own[done]);
  own_pieces_.assign(own.begin() + static_cast<ptrdiff_t>(done), own.end());
  for (; own_pieces_.empty() && mapped < pieces.size() && n + most < out.size(); mapped++)
    // Under a filter any call may be the last one: changes are done without, and asked for again and again.
    if (!c.is_quiet || !pieces[mapped].is_change) map(pieces[mapped]);
  if (file >= 0) out[n++] = {SYS_close, {}, {}, rt::UsesDescriptor | rt::Optional};
  c.block.request.calls = sent_ = n;
  if (n) caller_ = c.slot;
  return n;
}

std::optional<rlimit> lend_descriptors(pid_t pid) {
  rlimit limit;
  if (prlimit(pid, RLIMIT_NOFILE, nullptr, &limit)) return {};
  rlim_t more = std::max(limit.rlim_max, limit.rlim_cur + 64);
  rlimit lent{more, more};
  if (prlimit(pid, RLIMIT_NOFILE, &lent, nullptr)) return {};
  return limit;
}

namespace {
bool has_mapped(pid_t pid, const Piece& piece) {
  struct stat st;
  auto regions = process::regions(pid);
  return regions && !fstat(piece.file, &st) && std::ranges::any_of(*regions, [&](const process::Region& r) {
           return r.range.contains({piece.address}) && r.inode == st.st_ino;
         });
}
}  // namespace

// There was something where a new arena was to be mapped: the arena, as the process was forked just when its parent had mapped it, or
// memory of the program. The calls behind it are to be made.
bool Memory::map_without(const Caller& c, CachePc base, const std::function<bool()>& is_shared) {
  auto pieces = c.space.pieces().first(mapped);
  auto piece = std::ranges::find_if(pieces, [&](const Piece& x) { return x.is_new && x.address == base.value; });
  if (piece == pieces.end()) return false;
  auto index = static_cast<size_t>(piece - pieces.begin());
  bool is_there = has_mapped(c.pid, *piece);
  if (!is_there && (is_shared() || !c.space.give_up(base))) return false;
  mapped = index + is_there;
  return true;
}

Result<bool> Memory::called(const Caller& c, const rt::CalledRequest& r, const std::function<bool()>& is_shared) {
  auto [failed, result] = r;
  auto lent = std::exchange(limit_, {});
  if (lent) prlimit(c.pid, RLIMIT_NOFILE, &*lent, nullptr);
  size_t sent = sent_;
  if (!failed || failed > sent) return false;
  rt::Call* calls = c.block.calls;
  int error = result < 0 && result > -4096 ? static_cast<int>(-result) : EINVAL;
  if (result == -EMFILE && !lent) limit_ = lend_descriptors(c.pid);
  if (limit_) {
    std::copy(calls + failed - 1, calls + sent, calls);
    c.block.request.calls = sent_ = sent - (failed - 1);
    return true;
  }
  if (result == -EEXIST && map_without(c, {calls[failed - 1].args[0]}, is_shared)) return false;
  return fail("system call {}: {}", calls[failed - 1].nr, strerror(error));
}

std::optional<Posted> Memory::finish() {
  caller_ = 0;
  keeper_.close_files();
  return std::exchange(put_off_, {});
}

bool Memory::leave(std::span<const uint32_t> slots) {
  if (!caller_ || std::ranges::find(slots, caller_) == slots.end()) return false;
  caller_ = 0;
  put_off_.reset();
  limit_.reset();
  return true;
}

}  // namespace weir::engine
