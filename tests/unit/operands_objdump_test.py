"""Memory operands against objdump, a disassembler with tables of its own: addresses and sizes, over all opcode maps.

    operands_objdump_test.py OPERANDS_LIST

It also knows what the processor at hand does not (FP16, XOP, FMA4, AMX …), and what needs privileges.
"""

import os
import re
import subprocess
import sys
import tempfile

REGISTERS = "rax rcx rdx rbx rsp rbp rsi rdi".split() + [f"r{n}" for n in range(8, 16)] + ["rip"]
NARROW = "eax ecx edx ebx esp ebp esi edi".split() + [f"r{n}d" for n in range(8, 16)] + ["eip"]
NUMBER = {name: n for names in (REGISTERS, NARROW) for n, name in enumerate(names)}
SIZES = {"BYTE": 1, "WORD": 2, "DWORD": 4, "FWORD": 6, "QWORD": 8, "TBYTE": 10, "XMMWORD": 16, "OWORD": 16, "YMMWORD": 32,
         "ZMMWORD": 64}
SEGMENTS = {"fs": 1, "gs": 2}
STATE = 7

PREFIX = re.compile(r"rex|lock|rep|data16|addr32|[c-g]s$|notrack|bnd$|xacquire|xrelease")
LINE = re.compile(r"\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t(.*)")
OPERAND = re.compile(r"(?:(\w+) (?:PTR|BCST) )?(?:\b([c-g]s):)?(?:\[([^\]]*)\]|(?<=:)(0x[0-9a-f]+))")

# Far pointers of 64 bits, which objdump calls those of 32; near jumps and 3DNow! with a prefix 66 that they ignore.
SIZE_DIFFERS = {"lfs", "lgs", "lss", "jmp", "call", "pfnacc"}


def disassembly(path):
    output = subprocess.run(["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--insn-width=16", path],
                            capture_output=True, text=True, check=True).stdout
    lines = (LINE.match(line) for line in output.splitlines())
    return {int(m[1], 16): (len(m[2].split()), m[3].split("#")[0]) for m in lines if m and int(m[1], 16) % 32 == 0}


def address(text, offset_behind):
    """(base, index, scale, displacement) of what stands in brackets."""
    base, index, scale, displacement = -1, -1, 1, 0
    for term in re.findall(r"[+-]?[^+-]+", text):
        name = term.lstrip("+-")
        if name.startswith("0x"):
            displacement += -int(name, 16) if term[0] == "-" else int(name, 16)
        elif "*" in name:
            name, factor = name.split("*")
            if name in ("riz", "eiz"):
                continue
            vector = re.match(r"[xyz]mm(\d+)", name)
            index, scale = int(vector[1]) if vector else NUMBER[name], int(factor)
        else:
            base = NUMBER[name]
    if base == 16:
        displacement += offset_behind
    return base, index, scale, displacement


def wrapped(value, bits):
    return value & (2**bits - 1)


def main(operands_list):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "code")
        told = subprocess.run([operands_list, path], capture_output=True, text=True, check=True).stdout
        lines = disassembly(path)
    compared, names, wrong = 0, set(), []
    for line in told.splitlines():
        offset, length, size, extent, base, index, scale, displacement, segment = map(int, line.split())
        objdump_length, text = lines.get(offset, (0, ""))
        found = OPERAND.search(text)
        if objdump_length != length or "(bad)" in text or not found:
            continue
        name = next(word for word in text.split() if not PREFIX.match(word))
        behind = offset + length
        expected = address(found[3], behind) if found[3] else (-1, -1, 1, int(found[4], 16))
        if name == "pop" and expected[0] == 4:  # it addresses behind its increment
            expected = (*expected[:3], expected[3] + size)
        bits = 32 if re.search(r"\b(e[a-z]{2}|r\d+d)\b", found[3] or "") or "addr32" in text else 64
        same = (base, index, scale, wrapped(displacement, bits)) == (*expected[:3], wrapped(expected[3], bits))
        same &= SEGMENTS.get(found[2], 0) == segment
        if found[1] and name not in SIZE_DIFFERS and extent != STATE:
            same &= SIZES[found[1]] == size
        compared += 1
        names.add(name)
        if not same:
            wrong.append(f"{text}\n  told: {line}")
    print(f"{compared} operands of {len(names)} instructions compared")
    print("\n".join(wrong[:20]))
    return 0 if not wrong and compared > 40_000 and len(names) > 1_000 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
