"""A random C program: calls of every kind, loops, switches, floating point, setjmp, signals. Its output is a sum of all it computed."""
import random

HEAD = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef uint64_t u; typedef struct { u a; double d; uint32_t b[3]; } S; typedef struct { uint16_t a; float f; } T;
static u sum; static long fuel = 30000; static volatile sig_atomic_t signals; static sigjmp_buf jump; static volatile u zero;
static void add(u x) { sum = (sum ^ x) * 0x9e3779b97f4a7c15u; sum ^= sum >> 29; }
static void count(int n) { signals += n; }
static void leave(int n) { signals += n; siglongjmp(jump, n); }
static u various(int n, ...) { va_list l; va_start(l, n); u r = n; for (int i = 0; i < n; i++) r = r * 31 + (i % 3 == 1 ? (u)(long)(va_arg(l, double) * 8) : va_arg(l, u)); va_end(l); return r; }
static S turn(S s, u k) { s.a += k; s.d = s.d * 0.5 + (double)(k & 1023); s.b[k % 3] ^= (uint32_t)s.a; return s; }
static T swap(T t, u k) { T r = {(uint16_t)(t.a + k), t.f * 0.25f + (float)(k & 255)}; return r; }
static u thrower(jmp_buf *to, u depth, u v) { if (!depth) longjmp(*to, (int)(v & 7) + 1); return thrower(to, depth - 1, v * 3 + 1) + v; }
static u room(u n, u v) { unsigned char *p = alloca(n % 700 + 16); memset(p, (int)v, n % 700 + 16); p[n % 16] ^= 5; u r = 0; for (u i = 0; i < n % 700 + 16; i++) r = r * 33 + p[i]; return r; }
static int by_low(const void *a, const void *b) { return (*(const u *)a & 255) - (*(const u *)b & 255); }
extern void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
"""


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.text = HEAD

    def value(self, depth=0):
        r = self.random
        if depth > 2 or r.random() < 0.4:
            return r.choice(["x", "y", "z", "a", "b", str(r.randrange(1 << r.choice([3, 8, 31]))) + "u", f"{r.randrange(1 << 60):#x}u"])
        p, q = self.value(depth + 1), self.value(depth + 1)
        return r.choice([f"({p} + {q})", f"({p} - {q})", f"({p} * {q})", f"({p} ^ {q})", f"({p} | {q})", f"({p} << ({q} & 63))",
                         f"({p} >> ({q} & 31))", f"({p} / ({q} | 1))", f"({p} % ({q} | 1))", f"(u)((int64_t){p} >> 3)", f"({p} < {q})",
                         f"({p} > 99 ? {q} : {p})", f"(u)(uint32_t){p}", f"(u)__builtin_popcountll({p})", f"(u)(long)((double)({p} & 0xffff) / 3.0)"])

    def call(self, number):
        """Of a function before `number`, in one of several ways."""
        r, v = self.random, self.value
        if number == 0:
            return v()
        f = r.randrange(number)
        return r.choice([f"f{f}({v()}, {v()})", f"table[({v()}) % {number}]({v()}, {v()})", f"r{f}({v()} % 9, {v()})",
                         f"various({3}, {v()}, (double)({v()} & 255), {v()})", f"various(7, {v()}, 1.5, {v()}, {v()}, 2.25, {v()}, {v()})",
                         f"room({v()}, {v()})", f"f{f}({v()}, f{r.randrange(number)}({v()}, {v()}))"])

    def statement(self, number, depth):
        r, v = self.random, self.value
        inner = lambda: self.block(number, depth + 1)
        local = r.choice("xyz")
        kinds = ["set"] * 4 + ["call"] * 3
        if depth < 3:
            kinds += ["if", "loop", "switch", "struct", "jump", "signal", "fault", "sort", "goto"]
        kind = r.choice(kinds)
        if kind == "set":
            return f"{local} {r.choice(['=', '+=', '^=', '*=', '-='])} {v()};"
        if kind == "call":
            return f"{local} ^= {self.call(number)};"
        if kind == "if":
            return f"if ({v()} & {1 << r.randrange(4)}) {inner()} else {inner()}"
        if kind == "loop":
            return f"for (volatile int i{depth} = 0; i{depth} < {r.randrange(1, 7)}; i{depth}++) {inner()}"
        if kind == "switch":
            cases = "".join(f"case {c}: {inner()} {r.choice(['break;', 'break;', ''])}\n" for c in range(r.randrange(3, 9)))
            return f"switch (({v()}) & 7) {{ {cases} default: add({local}); }}"
        if kind == "struct":
            return (f"{{ S s = {{{v()}, (double)({v()} & 4095), {{1, 2, 3}}}}; s = turn(turn(s, {v()}), {v()}); T t = swap((T){{7, 0.5f}}, {v()}); "
                    f"{local} += s.a + (u)(long)s.d + s.b[1] + t.a + (u)(long)t.f; }}")
        if kind == "jump":
            return f"{{ jmp_buf here; int how = setjmp(here); if (!how) add(thrower(&here, {r.randrange(6)}, {v()})); else add(how); }}"
        if kind == "signal":
            return f"raise({r.choice(['SIGUSR1', 'SIGALRM'])}); add(signals);"
        if kind == "fault":
            how = r.choice(["*(volatile int *)(zero + 8) = 1;", "add(7 / zero);", "raise(SIGUSR2);", "__builtin_trap();"])
            return f"if (!sigsetjmp(jump, 1)) {{ {how} }} else add({v()});"
        if kind == "sort":
            return f"{{ u l[9]; for (int i = 0; i < 9; i++) l[i] = {v()} * (i + 3); qsort(l, 9, 8, by_low); {local} ^= l[0] & 255; add(l[8] & 255); }}"
        label = f"l{r.randrange(1 << 40)}"
        return f"if ({v()} & 1) goto {label}; {local} += {v()}; {label}: add({local});"

    def block(self, number, depth):
        return "{ " + "\n".join(self.statement(number, depth) for _ in range(self.random.randrange(1, 4))) + " }"

    def write(self):
        r = self.random
        count = r.randrange(5, 12)
        self.text += "".join(f"static u f{i}(u, u); static u r{i}(u, u);\n" for i in range(count))
        self.text += f"static u (*const table[])(u, u) = {{{', '.join(f'f{i}' for i in range(count))}}};\n"
        for i in range(count):
            keep = r.choice(["", "", "__attribute__((noinline))"])
            body = "\n".join(self.statement(i, 0) for _ in range(r.randrange(3, 8)))
            tail = f"return f{r.randrange(i)}(x ^ z, y);" if i and r.random() < 0.4 else "return x + y * 3 + z;"
            self.text += (f"{keep} static u f{i}(u a, u b) {{ if (--fuel < 0) return a ^ b; volatile u x = a, y = b; u volatile z = a + b;\n{body}\n"
                          f"add(x ^ y); {tail} }}\n"
                          f"static u r{i}(u a, u b) {{ u x = a, y = b, z = 7; if (--fuel < 0 || !a) return b; x = {self.value()}; z ^= r{i}(a - 1, {self.value()}); "
                          f"return {r.choice(['x + z', f'r{i}(a / 2, z)'])}; }}\n")
        self.text += ("int main(void) { signal(SIGUSR1, count), signal(SIGALRM, count);\n"
                      "for (int i = 0; i < 4; i++) signal((int[]){SIGUSR2, SIGSEGV, SIGFPE, SIGILL}[i], leave);\n"
                      f"for (u i = 0; i < {r.randrange(2, 9)}; i++) {{ fuel = 3000; add(table[i % {count}](i, i * 7)); add(f{count - 1}(i, 5)); printf(\"%lu %016lx %d\\n\", i, sum, (int)signals); }}\n"
                      f"return sum & 63; }}\n")
        return self.text
