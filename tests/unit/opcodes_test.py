"""Opcode bytes stand in the emitter alone, and each of its methods is tested.

    opcodes_test.py REPOSITORY

What writes instructions (lowering, the driver, the tools) calls methods of instrument/emitter.h that are named as x86 names instructions.
tests/unit/emitter_test.cc disassembles what each of them writes. The rules are first tried on planted sources, so this test can fail.
"""

import pathlib
import re
import sys

WRITERS = re.compile(r"(engine|instrument|rewrite|tools/\w+)/[^/]+\.(cc|h)$")
EMITTER = re.compile(r"instrument/emitter\.(cc|h)$")

# Bytes that are handed to something that writes; those that are compared with what a program has are none.
WRITTEN = re.compile(
    r"\b(?:bytes|byte|u8|u16|u32|put|push_back|copy|copy_with|patch_u8|patch_u32)\(\s*\{?\s*(?:std::byte\s*\{\s*)?0x[0-9a-fA-F]{1,2}\b"
    r"|\[\] *= *\{\s*0x[0-9a-fA-F]{1,2}\b"
    r"|(?<![=!]= )\bstd::byte *\{ *0x"
    r"|uint8_t\w* \w*(?:opcode|instruction)\w* *= *0x")
COMMENT = re.compile(r"//.*")

# In the class, what is called from outside.
METHOD = re.compile(r"^  (?:template <[^>]*>\s*)?(?:static )?(?:void|uint32_t|bool|CachePc|Memory) (\w+)\(", re.MULTILINE)


def check(sources, tests):
    """The violations in `sources`, a dictionary from paths below src/ to their text, with the text of the emitter's test."""
    found = []
    for path, text in sorted(sources.items()):
        if WRITERS.match(path) and not EMITTER.match(path):
            for number, line in enumerate(text.splitlines(), 1):
                if WRITTEN.search(COMMENT.sub("", line)):
                    found.append(f"src/{path}:{number}: bytes of an instruction: the emitter has, or gets, a method for it: {line.strip()}")
        elif path == "instrument/emitter.h":
            public = text.split("class Emitter", 1)[1].split(" private:", 1)[0]
            found += [f"src/{path}: {name}() is not tested in emitter_test.cc" for name in sorted(set(METHOD.findall(public)))
                      if not re.search(rf"(\be\.|Emitter::){name}\(", tests)]
    return found


def self_check():
    bad = {
        "bytes": {"instrument/a.cc": "  e_.bytes(0x48, 0x8d, 0x0d);"},
        "an immediate and an opcode": {"tools/count/a.cc": "e.u8(0x90);"},
        "a list": {"engine/a.cc": "constexpr uint8_t nop[] = {0x90, 0x90};"},
        "a std::byte": {"instrument/a.cc": "out[0] = std::byte{0xe9};"},
        "a vector": {"instrument/a.h": "before.push_back(0xf3);"},
        "a method without a test": {"instrument/emitter.h": "class Emitter {\n public:\n  void hlt() { bytes(0xf4); }\n private:\n};"},
    }
    good = {
        "instrument/a.cc": "bool is_far = bytes[n] == std::byte{0xcf};\ne_.mov(gs(0x10), x86::RCX);  // bytes(0x48)",
        "instrument/emitter.h": "class Emitter {\n public:\n  void nop() { bytes(0x90); }\n private:\n  void secret(int);\n};",
        "instrument/emitter.cc": "bytes(0x62, 0x61);",
        "x86/a.cc": "constexpr uint8_t known[] = {0x90};",
        "tools/count/runtime/a.cc": "constexpr uint8_t known[] = {0x90};",
    }
    wrong = [f"self-check: not found: {name}" for name, sources in bad.items() if len(check(sources, "e.nop()")) != 1]
    return wrong + [f"self-check: found in good sources: {line}" for line in check(good, "e.nop();")]


def main():
    repository = pathlib.Path(sys.argv[1])
    src = repository / "src"
    sources = {str(f.relative_to(src)): f.read_text() for f in src.rglob("*") if f.suffix in (".h", ".cc")}
    wrong = self_check() + check(sources, (repository / "tests/unit/emitter_test.cc").read_text())
    if not any(EMITTER.match(path) for path in sources):
        wrong.append(f"{src}: no emitter")
    for line in wrong:
        print(line)
    print(f"{len(sources)} files, {len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main())
