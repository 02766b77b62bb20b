// How a line of rt/call_effects.inc becomes the few bytes that are interpreted: at compile time. Arguments have names there, and a name
// that is wrong does not compile.
//
//     text("path")                       reads a string
//     reads("buf", bytes("count"))       reads as many bytes as the argument `count` says
//     writes("info", 112)                writes 112 bytes
//     updates("timex", 208)              reads and writes them
//     fills("buf", bytes("count"))       writes as many bytes as the result says, and `count` at most
//     fills("events", items("n", 12))    the same, in items of 12 bytes
//     told_by(poll)                      see the function `poll`
//     keeps("head", 24)                  reads and writes later
//     unknown()                          anything
//
//     .or_null()                         the pointer may be null: then nothing
//     .if_any()                          written if the result is more than zero
//     .on_interrupt(), .done()           written if the call is interrupted; if it is, or succeeds
//     .always()                          written whatever the result is
#pragma once

#include "rt/call_teller.h"

namespace weir::rt {

enum class Op : uint8_t { None, Text, Reads, Writes, Updates, Fills, Keeps, Unknown, ToldBy };

// The size of a stretch: `unit`, or `unit` times an argument.
struct Size {
  const char* count = nullptr;
  uint32_t unit = 0;
  consteval Size(int size) : unit(uint32_t(size)) {}
  consteval Size(const char* n, uint32_t u) : count(n), unit(u) {}
};
consteval Size bytes(const char* count) { return {count, 1}; }
consteval Size items(const char* count, uint32_t unit) { return {count, unit}; }

// As it is interpreted.
struct Term {
  Op op = Op::None;
  uint8_t argument : 3 = 0;
  uint8_t count : 3 = no_arg;
  bool or_null : 1 = false;
  When when = When::Success;
  uint32_t unit = 0;
  CallFunction* function = nullptr;
};

// As it is written.
struct Clause {
  Op op = Op::None;
  const char* pointer = nullptr;
  Size size = 0;
  CallFunction* function = nullptr;
  bool null_allowed = false;
  When when = When::Success;
  consteval Clause or_null() const {
    Clause c = *this;
    c.null_allowed = true;
    return c;
  }
  consteval Clause at(When w) const {
    Clause c = *this;
    c.when = w;
    return c;
  }
  consteval Clause if_any() const { return at(When::Positive); }
  consteval Clause on_interrupt() const { return at(When::Interrupt); }
  consteval Clause done() const { return at(When::Done); }
  consteval Clause always() const { return at(When::Always); }
};
consteval Clause text(const char* p, int limit = 4096) { return {Op::Text, p, limit}; }
consteval Clause reads(const char* p, Size size) { return {Op::Reads, p, size}; }
consteval Clause writes(const char* p, Size size) { return {Op::Writes, p, size}; }
consteval Clause updates(const char* p, Size size) { return {Op::Updates, p, size}; }
consteval Clause fills(const char* p, Size size) { return {Op::Fills, p, size}; }
consteval Clause keeps(const char* p, Size size) { return {Op::Keeps, p, size}; }
consteval Clause unknown(const char* p = nullptr) { return {Op::Unknown, p}; }
consteval Clause told_by(CallFunction* f) { return {Op::ToldBy, nullptr, 0, f}; }

// "int fd, buf, uint count": `int` and `uint` are arguments of which the kernel looks at 32 bits; a negative int counts nothing.
enum class Width : uint8_t { Whole, Int, Uint };
struct Parameter {
  const char* begin = nullptr;
  int size = 0;
  Width width = Width::Whole;
};
struct Parameters {
  Parameter all[6];
  int count = 0;
};
consteval bool starts(const char* s, const char* with) {
  while (*with)
    if (*s++ != *with++) return false;
  return true;
}
consteval Parameters parameters(const char* s) {
  Parameters p;
  while (*s) {
    Parameter& one = p.all[p.count++];
    if (starts(s, "int ")) one.width = Width::Int, s += 4;
    else if (starts(s, "uint ")) one.width = Width::Uint, s += 5;
    one.begin = s;
    while (*s && *s != ',') s++, one.size++;
    if (*s) s += 2;
  }
  return p;
}
consteval bool is_named(const Parameter& p, const char* name) {
  int n = 0;
  while (n < p.size && name[n] == p.begin[n]) n++;
  return n == p.size && !name[n];
}
void no_parameter_has_this_name();  // what does not compile
consteval uint8_t index(const Parameters& p, const char* name) {
  for (int i = 0; i < p.count; i++)
    if (is_named(p.all[i], name)) return uint8_t(i);
  no_parameter_has_this_name();
  return no_arg;
}

constexpr int max_terms = 5;
struct Line {
  uint16_t number = 0;
  uint8_t count = 0, used = 0, narrow = 0, is_signed = 0;  // of parameters: how many, and bit masks
  Term terms[max_terms];
};
template <class... Clauses>
consteval Line line(int number, const char* names, Clauses... clauses) {
  Parameters p = parameters(names);
  Line l;
  l.number = uint16_t(number);
  for (int i = 0; i < p.count; i++) {
    l.used |= uint8_t(1 << i);
    if (p.all[i].width != Width::Whole) l.narrow |= uint8_t(1 << i);
    if (p.all[i].width == Width::Int) l.is_signed |= uint8_t(1 << i);
  }
  const Clause all[] = {clauses..., Clause{}};
  for (const Clause& c : all) {
    if (c.op == Op::None) continue;
    Term& t = l.terms[l.count++];
    t.op = c.op;
    t.argument = c.pointer ? index(p, c.pointer) : no_arg;
    if (c.size.count) t.count = index(p, c.size.count);
    t.or_null = c.null_allowed, t.when = c.when, t.unit = c.size.unit, t.function = c.function;
  }
  return l;
}

}  // namespace weir::rt
