"""Includes point downwards: the Layers table of docs/design.md, checked over every source file.

    layers_test.py REPOSITORY

A directory of src/ may include itself and directories of a lower level, written from src/ ("x86/cfg.h"). The runtime
(rt/) is compiled for another process: it sees itself and freestanding headers only, and others see of it what SHARED
names. A tool's part of the runtime (tools/NAME/runtime/) sees itself, rt/ and its own tool's constants; of it only memory.h is
for its tool. The engine, lowering and the runtime name no tool.
Each external library is known to one directory. The rules are first tried on planted includes, so this test can fail.
"""

import pathlib
import re
import sys

LEVELS = {
    0: "base rt",
    1: "x86 elf process profile",
    2: "instrument unwind symbols store cost",
    3: "engine rewrite sample report view tools",
    4: "cli",
}
LEVEL = {directory: level for level, names in LEVELS.items() for directory in names.split()}

# Headers of the runtime that say what both sides agree on: memory that they share.
SHARED = ("rt/abi.h", "rt/requests.h", "rt/clock.h", "rt/frames.h", "rt/hooks.h", "rt/unwind_table.h", "rt/records.h", "rt/walk.h", "rt/linkage.h", "rt/step.h", "rt/sample.h",
          "rt/own_memory.h", "rt/faults.h", "rt/buffer.h", "rt/told_calls.h")

FREESTANDING = re.compile(r"(stdint\.h|stddef\.h|cstdint|cstddef|(linux|asm|asm-generic)/.+)$")

# Library -> its headers. The owner is the directory that may include it; None: any, but only one.
LIBRARIES = {
    "Zydis": (r"Z(ydis|ycore)/", "x86"),
    "CLI11": (r"CLI/", "cli"),
    "fmt": (r"fmt/", "base"),
    "nlohmann-json": (r"nlohmann/", None),
    "simdjson": (r"simdjson", None),
    "LLVM": (r"llvm(-c)?/", None),
    "elfutils": (r"(elfutils/|libelf\.h|gelf\.h|dwarf\.h)", "symbols"),
    "libiberty": (r"libiberty/", "symbols"),
    "zlib": (r"zlib\.h", "base"),
    "RE2": (r"re2/", "base"),
    "SQLite": (r"sqlite3", None),
    "zstd": (r"zstd", None),
    "cpp-httplib": (r"httplib\.h", None),
    "protobuf": (r"google/protobuf/", None),
}

# What serves all tools says nothing of any.
NAMES_NO_TOOL = ("engine", "instrument", "rt")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def directory_of(path):
    """"x86/cfg.h" -> "x86"; "tools/count/tool.cc" -> "tools/count"; None where it is in no known directory."""
    parts = path.split("/")
    depth = 1
    if parts[0] == "tools":
        depth = 3 if parts[2:3] == ["runtime"] else 2
    if parts[0] not in LEVEL or len(parts) <= depth:
        return None
    return "/".join(parts[:depth])


def is_runtime_part(directory):
    return directory.startswith("tools/") and directory.endswith("/runtime")


def level_of(directory):
    return LEVEL[directory.split("/")[0]]


def wrong_own(here, target):
    """Why a file in the directory `here` may not include our file `target`, or None."""
    there = directory_of(target)
    if there is None:
        return 'is not written from src/, as "x86/cfg.h"'
    if there == here:
        return None
    if here == "rt":
        return "the runtime may include only rt/ and freestanding headers"
    if is_runtime_part(here):
        is_own_table = directory_of(target) == here.removesuffix("/runtime") and target.endswith(".inc")
        return None if there == "rt" or is_own_table else "a tool's part of the runtime may include only itself, rt/ and tables of its tool"
    if is_runtime_part(there):
        is_memory = there == f"{here}/runtime" and target == f"{there}/memory.h"
        return None if is_memory else "of a tool's part of the runtime only memory.h is for others, and only for its tool"
    if level_of(there) > level_of(here):
        return f"points upwards, from level {level_of(here)} to {level_of(there)}"
    if level_of(there) == level_of(here):
        return f"points sideways: {here} and {there} are both of level {level_of(here)}"
    if there == "rt" and target not in SHARED:
        return "of the runtime only what is in SHARED is for others"
    return None


def library_of(target):
    return next((name for name, (headers, _) in LIBRARIES.items() if re.match(headers, target)), None)


def check(sources):
    """The violations in `sources`, a dictionary from paths below src/ to their text."""
    found = []
    users = {}
    for path, text in sorted(sources.items()):
        here = directory_of(path)
        if here is None:
            found.append(f"src/{path}: is in no directory of the Layers table")
            continue
        for quote, target in INCLUDE.findall(text):
            why = None
            library = library_of(target)
            if library:
                users.setdefault(library, {}).setdefault(here, path)
            elif quote == '"':
                why = wrong_own(here, target)
            elif (here == "rt" or is_runtime_part(here)) and not FREESTANDING.match(target):
                why = "the runtime may include only rt/ and freestanding headers"
            elif target in sources:
                why = 'is ours: it is written with ""'
            if why:
                found.append(f"src/{path}: {target}: {why}")
        if here in NAMES_NO_TOOL:
            tools = {d.split("/")[1] for d in map(directory_of, sources) if d and d.startswith("tools/")}
            found += [f"src/{path}: names the tool {name}" for name in sorted(tools) if re.search(rf"\b{name}::|tools/{name}\b", text)]
    for library, directories in users.items():
        owner = LIBRARIES[library][1] or min(directories)
        for directory, path in directories.items():
            if directory != owner:
                found.append(f"src/{path}: {library} belongs to {owner}/ alone")
    return found


def self_check():
    """Every rule finds what was planted against it, and nothing else."""
    bad = {
        "upwards": {"x86/a.cc": '#include "engine/serve.h"'},
        "sideways": {"x86/a.cc": '#include "elf/image.h"'},
        "between tools": {"tools/count/a.cc": '#include "tools/paths/paths.h"'},
        "engine to tool": {"engine/a.cc": '#include "tools/count/count.h"'},
        "tool to engine": {"tools/count/a.cc": '#include "engine/serve.h"'},
        "relative": {"x86/a.cc": '  #  include "../base/fd.h"'},
        "bare": {"x86/a.cc": '#include "insn.h"'},
        "runtime's inside": {"engine/a.cc": '#include "rt/dispatch.h"'},
        "runtime to base": {"rt/a.cc": '#include "base/fd.h"'},
        "runtime to libc": {"rt/a.cc": "#include <string.h>"},
        "angle brackets": {"x86/a.cc": "#include <base/fd.h>", "base/fd.h": ""},
        "foreign library": {"engine/a.cc": "#include <Zydis/Zydis.h>"},
        "shared library": {"report/a.cc": "#include <nlohmann/json.hpp>", "view/a.cc": "#include <nlohmann/json.hpp>"},
        "runtime part to base": {"tools/count/runtime/a.cc": '#include "base/fd.h"'},
        "runtime part to its planner": {"tools/count/runtime/a.cc": '#include "tools/count/count.h"'},
        "runtime part to libc": {"tools/count/runtime/a.cc": "#include <string.h>"},
        "runtime part to another": {"tools/count/runtime/a.cc": '#include "tools/paths/runtime/memory.h"'},
        "runtime part's inside": {"tools/count/a.cc": '#include "tools/count/runtime/runtime.h"'},
        "another tool's memory": {"tools/paths/a.cc": '#include "tools/count/runtime/memory.h"'},
        "a tool's memory in the engine": {"engine/a.cc": '#include "tools/count/runtime/memory.h"'},
        "a tool's memory in the runtime": {"rt/a.cc": '#include "tools/count/runtime/memory.h"'},
        "engine names a tool": {"engine/a.cc": "auto* t = static_cast<count::Count*>(tool);", "tools/count/a.cc": ""},
        "runtime names a tool": {"rt/a.cc": "// As tools/count has it.", "tools/count/a.cc": ""},
        "unknown directory": {"helpers/a.cc": ""},
        "no directory": {"main.cc": ""},
        "tool without directory": {"tools/a.cc": ""},
    }
    good = {
        "x86/a.cc": '#include "x86/insn.h"\n#include "base/fd.h"\n#include <Zydis/Zydis.h>\n#include <vector>',
        "tools/count/a.cc": '#include "tools/count/count.h"\n#include "instrument/tool.h"\n#include "rt/abi.h"',
        "cli/a.cc": '#include "tools/count/count.h"\n#include "tools/paths/paths.h"\n#include "engine/serve.h"',
        "tools/count/runtime/a.cc": '#include "rt/parallel_stack.h"\n#include "tools/count/runtime/memory.h"\n#include "tools/count/calls.inc"',
        "tools/count/b.cc": '#include "tools/count/runtime/memory.h"',
        "rt/a.S": '#include "rt/abi.h"\n#include <asm/unistd.h>\n#include <stdint.h>',
        "report/a.cc": "#include <nlohmann/json.hpp>\n// #include \"cli/main.h\"",
    }
    wrong = [f"self-check: not found: {name}" for name, sources in bad.items() if len(check(sources)) != 1]
    return wrong + [f"self-check: found in good sources: {line}" for line in check(good)]


def main():
    src = pathlib.Path(sys.argv[1]) / "src"
    files = [f for f in src.rglob("*") if f.suffix in (".h", ".cc", ".c", ".S", ".inc")]
    sources = {str(f.relative_to(src)): f.read_text() for f in files}
    wrong = self_check() + check(sources)
    if not sources:
        wrong.append(f"{src}: no sources")
    for line in wrong:
        print(line)
    print(f"{len(sources)} files, {len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main())
