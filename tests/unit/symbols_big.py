"""Makes a C++ program of 100,000 functions with DWARF, for symbols_time: about ten minutes of one core.

    symbols_big.py DIRECTORY        then: build/tests/symbols_time DIRECTORY/big
"""

import pathlib
import subprocess
import sys

FILES, FUNCTIONS = 100, 1000

COMMON = """#pragma once
#include <vector>
#include <string>
#include <map>
namespace big {
template<class T> struct Box { T value; T get() const { return value; } void add(T n) { value += n; } };
template<class T> inline T twice(T v) { return v * 2; }
inline int clamp(int v, int lo, int hi) { if (v < lo) return lo; if (v > hi) return hi; return v; }
inline int mix(const std::vector<int>& v, int k) {
  int s = k;
  for (int x : v) s = clamp(s * 31 + x, -1000000, 1000000);
  return s;
}
}
"""

FUNCTION = """struct T{0} {{ int a, b; Box<long> c; }};
int f{0}(const std::vector<int>& v, T{0}& t, int k) {{
  t.a += mix(v, k); t.c.add(twice(t.b) + {0});
  if (k > {0}) return clamp(static_cast<int>(t.c.get()), k, t.a);
  return t.b + v.size();
}}
"""


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "common.h").write_text(COMMON)
    (directory / "main.cc").write_text("int main() { return 0; }\n")
    names = ["main"] + [f"u{n}" for n in range(FILES)]
    for n in range(FILES):
        functions = "".join(FUNCTION.format(i) for i in range(FUNCTIONS))
        (directory / f"u{n}.cc").write_text(f'#include "common.h"\nnamespace big::n{n} {{\n{functions}}}\n')
    for name in names:
        subprocess.run(["g++", "-O2", "-g", "-c", f"{name}.cc"], cwd=directory, check=True)
    subprocess.run(["g++", "-o", "big"] + [f"{name}.o" for name in names], cwd=directory, check=True)


main()
