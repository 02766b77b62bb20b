// Calls that are a family each, by their command: keys, programs that run in the kernel, counters.

#include "rt/call_functions.h"

namespace weir::rt::calls {

namespace {
// What does not fit into its buffer is not written at all.
void fills_if_it_fits(Teller& t, int i, uint64_t begin, uint64_t room) {
  t.fills(i, begin, room, t.result() <= room ? t.result() : 0);
}
void text_or_null(Teller& t, int i, uint64_t limit = 4096) {
  if (t.arg(i)) t.text(i, t.arg(i), limit);
}
constexpr uint64_t type_limit = 32;

// A name and other data, from which a key is derived.
void tell_derivation(Teller& t, uint64_t at) {
  t.reads(4, at, 56);
  if (uint64_t name = t.load64(at)) t.text(4, name, 128);
  if (uint64_t other = t.load64(at + 8)) t.reads(4, other, t.load32(at + 16));
}

// key 4, size of what goes in 4, of what comes out or goes in too 4, and 7 words that are not used
void tell_public_key(Teller& t, bool is_verification) {
  uint64_t at = t.arg(1);
  t.reads(1, at, 40);
  t.text(2, t.arg(2));
  t.reads(3, t.arg(3), t.load32(at + 4));
  uint64_t second = t.load32(at + 8);
  if (is_verification) t.reads(4, t.arg(4), second);
  else t.fills(4, t.arg(4), second, t.result());
}
}  // namespace

void keyctl(Teller& t) {
  enum : uint32_t {
    GetKeyringId,
    JoinSessionKeyring,
    Update,
    Revoke,
    Chown,
    SetPermissions,
    Describe,
    Clear,
    Link,
    Unlink,
    Search,
    Read,
    Instantiate,
    Negate,
    SetRequestKeyring,
    SetTimeout,
    AssumeAuthority,
    GetSecurity,
    SessionToParent,
    Reject,
    InstantiateVectors,
    Invalidate,
    GetPersistent,
    DhCompute,
    PublicQuery,
    PublicEncrypt,
    PublicDecrypt,
    PublicSign,
    PublicVerify,
    RestrictKeyring,
    Move,
    Capabilities,
    Watch
  };
  uint64_t third = t.arg(2), fourth = t.arg(3);
  switch (t.uint_arg(0)) {
    case SessionToParent: return t.takes(1);
    case JoinSessionKeyring: t.takes(2); return text_or_null(t, 1);
    case Revoke:
    case Clear:
    case SetRequestKeyring:
    case AssumeAuthority:
    case Invalidate: return t.takes(2);
    case GetKeyringId:
    case SetPermissions:
    case Link:
    case Unlink:
    case SetTimeout:
    case GetPersistent: return t.takes(3);
    case Chown:
    case Negate:
    case Watch: return t.takes(4);
    case Update: t.takes(4); return t.reads(2, third, fourth);
    case Describe:
    case Read: t.takes(4); return fills_if_it_fits(t, 2, third, third ? fourth : 0);
    case GetSecurity: t.takes(4); return t.fills(2, third, third ? fourth : 0, t.result());
    case Search: t.text(2, third, type_limit); return t.text(3, fourth);
    case Instantiate:
      if (third) t.reads(2, third, fourth);
      return;
    case InstantiateVectors:
      if (third) tell_vectors(t, 2, third, uint32_t(fourth), Direction::In, 0);
      return;
    case Reject:
    case Move: return;
    case DhCompute:
      t.reads(1, t.arg(1), 12);
      if (third) t.fills(2, third, fourth, t.result());
      if (t.arg(4)) tell_derivation(t, t.arg(4));
      return;
    case PublicQuery: t.text(3, fourth); return t.writes(4, t.arg(4), 48);
    case PublicEncrypt:
    case PublicDecrypt:
    case PublicSign: return tell_public_key(t, false);
    case PublicVerify: return tell_public_key(t, true);
    case RestrictKeyring:
      t.takes(4);
      if (third) t.text(2, third, type_limit);
      return text_or_null(t, 3);
    case Capabilities: t.takes(3); return t.writes(1, t.arg(1), third);
  }
  t.unknown(1, t.arg(1));
}

namespace {
uint64_t word(Teller& t, uint64_t offset) { return t.load64(t.arg(1) + offset); }
uint32_t half(Teller& t, uint64_t offset) { return t.load32(t.arg(1) + offset); }

// A log of text, of which it is not said how much there is.
void tell_log(Teller& t, uint64_t log, uint64_t room) {
  if (!log || !room) return;
  t.before(Use::MayWrite, 1, log, room);
  if (t.is_after()) t.unknown(1, log, room);
}
// How large keys and values of a map are, the kernel knows.
void unknown_of_map(Teller& t, uint64_t pointer) {
  if (pointer) t.unknown(1, pointer);
}
}  // namespace

void bpf(Teller& t) {
  enum : uint32_t {
    MapCreate,
    MapLookup,
    MapUpdate,
    MapDelete,
    MapNextKey,
    ProgramLoad,
    ObjectPin,
    ObjectGet,
    ProgramAttach,
    ProgramDetach,
    TestRun,
    ProgramNextId,
    MapNextId,
    ProgramById,
    MapById,
    ObjectInfo,
    ProgramQuery,
    RawTracepoint,
    BtfLoad,
    BtfById,
    TaskQuery,
    MapLookupDelete,
    MapFreeze,
    BtfNextId,
    LinkById = 30,
    LinkNextId = 31,
    EnableStats = 32,
    IteratorCreate = 33,
    LinkDetach = 34,
    BindMap = 35
  };
  t.reads(1, t.arg(1), t.uint_arg(2));
  switch (t.uint_arg(0)) {
    case MapLookup:
    case MapUpdate:
    case MapDelete:
    case MapNextKey:
    case MapLookupDelete: unknown_of_map(t, word(t, 8)); return unknown_of_map(t, word(t, 16));
    case ProgramLoad:
      t.reads(1, word(t, 8), uint64_t{half(t, 4)} * 8);
      t.text(1, word(t, 16), 128);
      if (half(t, 24)) tell_log(t, word(t, 32), half(t, 28));
      if (t.uint_arg(2) > 72) t.unknown(1, t.arg(1) + 72, t.uint_arg(2) - 72);  // types, of functions and lines
      return;
    case ObjectPin:
    case ObjectGet: return t.text(1, word(t, 0));
    case RawTracepoint: return word(t, 0) ? t.text(1, word(t, 0), 128) : void();
    case ProgramNextId:
    case MapNextId:
    case BtfNextId:
    case LinkNextId: return t.writes(1, t.arg(1) + 4, 4);
    case ObjectInfo: t.writes(1, t.arg(1) + 4, 4); return t.unknown(1, word(t, 8), half(t, 4));
    case BtfLoad: t.reads(1, word(t, 0), half(t, 16)); return half(t, 24) ? tell_log(t, word(t, 8), half(t, 20)) : void();
    case ProgramAttach:
    case ProgramDetach:
    case ProgramById:
    case MapById:
    case BtfById:
    case MapFreeze:
    case LinkById:
    case EnableStats:
    case IteratorCreate:
    case LinkDetach:
    case BindMap:
    case MapCreate: return;
  }
  t.unknown(1, t.arg(1), t.uint_arg(2));
}

// type 4, size 4, …; of a wrong size the kernel says which it wants.
void perf_event_open(Teller& t) {
  constexpr uint32_t first = 64, page = 4096;
  constexpr int64_t E2BIG = 7;
  uint64_t at = t.arg(0);
  uint32_t size = t.kept32(0, at + 4);
  bool is_wrong = size && (size < first || size > page);
  t.reads(0, at, is_wrong ? 8 : size ? size : first);
  t.before(Use::MayWrite, 0, at + 4, is_wrong ? 4 : 0);
  if (t.error() == E2BIG) t.after(Use::Written, 0, at + 4, 4, When::Always);
}

}  // namespace weir::rt::calls
