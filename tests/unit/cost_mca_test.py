"""The cost model against llvm-mca, on blocks of real programs.

    cost_mca_test.py COST_BLOCKS [CPU…]

llvm-mca simulates a CPU cycle by cycle, from the same scheduling models: queues, ports that are really taken, register
files. Weir computes three bounds. Both are asked for one run of a block; llvm-mca's answer is

    max(cycles from the first dispatch to the last issue, reciprocal throughput of the block)

which is what bounds.h says in words: what is felt inside the block, and what it takes away from its neighbours. (Its "total
cycles" also has the pipeline's length, and the latency of the last instruction, that nothing in the block waits for.)

Blocks are told apart: in some Weir differs on purpose. push, pop, call and ret move the stack pointer at no cost (to
llvm-mca each waits for the one before), locked instructions hold back what is behind them, and string instructions are not
taken from LLVM. The test fails if the others deviate by more than LIMITS; the figures are printed.
"""

import json
import re
import statistics
import subprocess
import sys

PROGRAMS = ["/bin/bash", "/usr/bin/perl", "/usr/bin/python3", "liblzma.so.5", "libstdc++.so.6", "libsqlite3.so.0"]
CPUS = ["skylake-avx512", "icelake-server", "alderlake", "znver3", "znver4"]
BLOCKS_EACH = 800
BATCH = 500  # blocks that llvm-mca is given at once
TEXT = 400_000  # bytes of a program's code to look at

# Mean and largest relative deviation of plain blocks, and the share of those that are equal.
LIMITS = {"mean": 0.02, "worst": 1.0, "equal": 0.95}

LINE = re.compile(r"\s*([0-9a-f]+):((?: [0-9a-f]{2})+)\s+(.*)")
BRANCH = re.compile(r"(j[a-z]+|call[a-z]*|loop[a-z]*)\s+(0x[0-9a-f]+)")
END = re.compile(r"(notrack\s+|bnd\s+|rep\w*\s+)?(j|call|ret|loop|syscall|ud2|int3|hlt)")
STACK = re.compile(r"push|pop|call|ret|leave|enter")
OTHER = re.compile(r"lock|xchg\w*\s.*\(|rep|(movs|stos|lods|scas|cmps)[bwlq]\s.*%[er][sd]i\)|pause|[lm]fence|cpuid")


def library(name):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in listed.splitlines() if f"{name} (libc6,x86-64" in line)


def instructions(path):
    """(address, hex, text) of the first TEXT bytes of the program's code."""
    headers = subprocess.run(["llvm-readelf-19", "-SW", path], capture_output=True, text=True, check=True).stdout
    start = int(re.search(r"\.text\s+PROGBITS\s+([0-9a-f]+)", headers)[1], 16)
    command = ["llvm-objdump-19", "-d", "-j", ".text", f"--start-address={start}", f"--stop-address={start + TEXT}", path]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if match := LINE.fullmatch(line):
            text = re.sub(r"<.*|#.*", "", match[3]).strip()
            yield int(match[1], 16), match[2].replace(" ", ""), text


def blocks_of(path):
    """[(hex, text)…] of BLOCKS_EACH different basic blocks, spread over the code."""
    code = list(instructions(path))
    targets = {int(match[2], 16) for _, _, text in code if (match := BRANCH.match(text))}
    found, block = {}, []
    for address, code_bytes, text in code:
        if address in targets and block:
            found.setdefault("".join(b for b, _ in block), block)
            block = []
        block.append((code_bytes, text))
        if END.match(text):
            found.setdefault("".join(b for b, _ in block), block)
            block = []
    usable = [b for b in found.values() if len(b) <= 100 and not any("unknown" in t for _, t in b)]
    return usable[:: max(1, len(usable) // BLOCKS_EACH)][:BLOCKS_EACH]


def kind_of(block):
    text = "\n".join(t for _, t in block)
    return "locked, string" if OTHER.search(text) else "stack" if STACK.search(text) else "plain"


def simulated(cpu, blocks):
    """llvm-mca's answer to each block; None where it has none (an instruction that this CPU's model lacks)."""
    answers = []
    for begin in range(0, len(blocks), BATCH):
        answers += simulated_batch(cpu, blocks[begin : begin + BATCH])
    return answers


def simulated_batch(cpu, blocks):
    source = []
    for number, block in enumerate(blocks):
        source += [f"# LLVM-MCA-BEGIN {number}", *(text for _, text in block), "# LLVM-MCA-END"]
    command = ["llvm-mca-19", "-mtriple=x86_64", f"-mcpu={cpu}", "-iterations=1", "-json", "-timeline", "-timeline-max-cycles=0",
               "-resource-pressure=false", "-instruction-info=false", "-skip-unsupported-instructions=any"]
    answers = [None] * len(blocks)
    try:
        run = subprocess.run(command, input="\n".join(source) + "\n", capture_output=True, text=True, check=True, timeout=300)
    except subprocess.TimeoutExpired:  # (it does not come back from some vector code, for alderlake)
        print(f"{cpu}: llvm-mca hangs; {len(blocks)} blocks are left out")
        return answers
    for region in json.loads(run.stdout)["CodeRegions"]:
        number = int(region["Name"])
        timeline = region["TimelineView"]["TimelineInfo"]
        if len(timeline) != len(blocks[number]):
            continue
        last = max(row["CycleIssued"] for row in timeline)  # what is dispatched in cycle 0 is issued in cycle 1
        throughput = region["SummaryView"]["BlockRThroughput"]
        answers[number] = max(1, last, int(throughput + 0.5))
    return answers


def computed(program, cpu, blocks):
    hexes = "\n".join("".join(b for b, _ in block) for block in blocks) + "\n"
    run = subprocess.run([program, cpu], input=hexes, capture_output=True, text=True, check=True)
    print(run.stderr.strip())
    names = ("cycles", "dispatch", "ports", "chain", "unknown")
    return [dict(zip(names, map(int, line.split()))) for line in run.stdout.splitlines()]


def compare(cpu, blocks, ours, theirs):
    """Prints a row a kind of blocks; the reasons why this CPU fails."""
    wrong = []
    for kind in ("plain", "stack", "locked, string"):
        rows = []
        for block, own, other in zip(blocks, ours, theirs):
            if other and not own["unknown"] and kind_of(block) == kind:
                rows.append((abs(own["cycles"] - other) / other, own, other, block))
        deviations = [row[0] for row in rows]
        mean, worst = statistics.mean(deviations), max(deviations)
        equal = sum(d == 0 for d in deviations) / len(rows)
        total = sum(own["cycles"] for _, own, _, _ in rows) / sum(other for _, _, other, _ in rows)
        print(f"| {cpu} | {kind} | {len(rows)} | {equal:.1%} | {mean:.2%} | {worst:.0%} | {total:.3f} |")
        if "-v" in sys.argv:
            for row in sorted(rows, key=lambda r: -r[0])[:4]:
                print(row[0], row[1], row[2], *[t for _, t in row[3]], sep="\n    ")
        if kind == "plain":
            measured = {"mean": mean, "worst": worst}
            wrong += [f"{cpu}: {n} deviation {v:.3f} > {LIMITS[n]}" for n, v in measured.items() if v > LIMITS[n]]
            if equal < LIMITS["equal"]:
                wrong.append(f"{cpu}: only {equal:.1%} of the blocks are equal")
            if len(rows) < 1000:
                wrong.append(f"{cpu}: only {len(rows)} blocks to compare")
    return wrong


def main():
    words = [w for w in sys.argv[1:] if w != "-v"]
    blocks = []
    for program in PROGRAMS:
        found = blocks_of(program if program[0] == "/" else library(program))
        print(f"{len(found)} blocks of {program}")
        blocks += found
    print("| CPU | blocks | number | equal | mean deviation | worst | sum of cycles to llvm-mca's |")
    wrong = []
    for cpu in words[1:] or CPUS:
        wrong += compare(cpu, blocks, computed(words[0], cpu, blocks), simulated(cpu, blocks))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
