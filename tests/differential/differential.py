#!/usr/bin/env python3
"""Random sequences of instructions, natively and under Weir: everything that they leave must be the same.

Each batch is a program with thousands of sequences (sequences.cc, runner.c). It runs natively, and under `weir run`, icount and the
profile with both of its clocks; what differs is shown with its code, and its bytes can be kept in found.txt.
"""
import argparse, os, struct, subprocess, sys, tempfile

from pathlib import Path

HERE = Path(__file__).resolve().parent
BASES = {"low": 0x1b340000, "high": 0x051058000000}  # as layout.h has them
LINK = {"low": [], "high": ["-Wl,-Ttext-segment=0x051068000000", "-Wl,--no-relax"]}
DIGESTS = struct.Struct("<QQ")  # of everything; without what is dead at a fault


def modes(weir, directory):
    """Name, command, environment, and whether dead registers are looked at as well."""
    profile = [weir, "profile", "-q", "-o", f"{directory}/run.weir", "--"]
    return [("run", [weir, "run", "-q", "--no-archive", "--"], {}, True),
            ("icount", [weir, "run", "-q", "--tool=icount", "--"], {}, False),
            ("profile", profile, {}, False),
            ("profile, clock in memory", profile, {"WEIR_PROCESSOR": "v2"}, False)]


def execute(command, environment, directory):
    try:
        return subprocess.run(["timeout", "-k", "5", "600", "setarch", "-R", *command], env=os.environ | environment | {"XDG_CACHE_HOME": f"{directory}/cache"},
                              cwd=directory, capture_output=True, text=True, errors="replace", timeout=660)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "it stands still")


class Batch:
    def __init__(self, options, directory, seed, count, where, listed=None):
        self.options, self.directory, self.where, self.count = options, directory, where, count
        self.program = f"{directory}/batch"
        subprocess.run([options.sequences, str(seed), str(count), where, self.program], check=True, input=listed, text=True)
        subprocess.run(["gcc", "-O2", "-w", "-fPIE", "-no-pie", "-nostartfiles", *LINK[where], f"-Wl,--section-start=.sequences={BASES[where]:#x}",
                        HERE / "runner.c", HERE / "enter.S", f"{self.program}.S", "-o", self.program], check=True)
        self.offsets = [x[0] for x in struct.iter_unpack("<I", Path(f"{self.program}.sequences").read_bytes())]
        self.name = f"--seed {seed} --where {where} --batch {count}"

    def digests(self, prefix, environment, expected=()):
        out = f"{self.directory}/{'weir' if expected else 'native'}"
        done = execute([*prefix, self.program, out, *expected], environment, self.directory)
        if done.returncode:
            return None, f"exit status {done.returncode}: {done.stdout[-2000:]}{done.stderr}"
        return list(DIGESTS.iter_unpack(Path(out).read_bytes())), done.stdout

    def code(self, sequence):
        base = BASES[self.where] + self.offsets[sequence]
        lines = subprocess.run(["objdump", "-d", "-w", f"--start-address={base:#x}", f"--stop-address={base + 256:#x}", self.program],
                               capture_output=True, text=True).stdout.split(">:\n", 1)[1].splitlines()
        return [l for l in lines[:lines.index("") if "" in lines else None] if not l.endswith("int3")]

    def show(self, mode, said, differing):
        """What the runner said of the first sequences that differ, beside what they leave natively."""
        for part in said.split("round ")[1:]:
            number, _, sequence = part.splitlines()[0].split()
            if int(number) * len(self.offsets) + int(sequence) not in differing:
                continue
            print(f"{self.name}: sequence {sequence}, round {number} differs under {mode}")
            print("\n".join(self.code(int(sequence))))
            native = execute([self.program, f"{self.directory}/one", number, sequence], {}, self.directory).stdout.splitlines()
            weir = part.splitlines()[1:]
            lines = [f"  native {l}" for l in native if l not in weir] + [f"  weir   {l}" for l in weir if l not in native]
            print("\n".join(lines[:40]), flush=True)

    def compare(self):
        """How many sequences differ, and how many runs faulted."""
        native, said = self.digests([], {})
        if native is None:  # a sequence wrote where the runner keeps its own things
            print(f"{self.name}: left out, as the native run failed: {said}", flush=True)
            return None
        wrong = {}
        for mode, prefix, environment, with_dead in modes(self.options.weir, self.directory):
            if self.options.modes and not mode.startswith(tuple(self.options.modes.split(","))):
                continue
            part = 0 if with_dead else 1
            weir, said_there = self.digests(prefix, environment, [f"{self.directory}/native", str(part)])
            if weir is None:
                print(f"{self.name}: {mode}: {said_there}", flush=True)
                wrong[None] = True
                continue
            if any(a[part] != b[part] for a, b in zip(native, weir)):  # some sequence may not be the same natively either
                again, _ = self.digests([], {})
                native = [a if a == b else (0, 0) for a, b in zip(native, again)]
            differing = [i for i, (a, b) in enumerate(zip(native, weir)) if a[part] != b[part] and a[0]]
            if len(weir) != len(native):
                wrong[None] = True
            self.show(mode, said_there, set(differing))
            if differing:
                print(f"{self.name}: {mode}: {len(differing)} of {len(native)} runs differ", flush=True)
            wrong |= {at % len(self.offsets): True for at in differing}
        return len(wrong), int(said.split()[4])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--sequences-program", dest="sequences", required=True)
    parser.add_argument("--sequences", dest="count", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=10_000, help="sequences in one program")
    parser.add_argument("--seed", type=int, default=1, help="of the first batch")
    parser.add_argument("--where", choices=BASES, help="only at low or high addresses")
    parser.add_argument("--found", action="store_true", help="what was found before, instead of random sequences")
    parser.add_argument("--modes", help="only those that begin so, with commas between them")
    options = parser.parse_args()
    options.weir = os.path.abspath(options.weir)
    if not {"avx512vl", "avx512bw", "fsgsbase"} <= set(Path("/proc/cpuinfo").read_text().split()):
        print("skip: the sequences need AVX-512 and fsgsbase")
        sys.exit(77)
    wrong = done = faults = 0
    with tempfile.TemporaryDirectory(prefix="weir-differential.") as directory:
        if options.found:
            listed = (HERE / "found.txt").read_text()
            batches = [(("-", 64, where), listed) for where in BASES]
        else:
            whole = [options.batch] * (options.count // options.batch)
            counts = whole + ([options.count % options.batch] if options.count % options.batch else [])
            batches = [((options.seed + i, n, options.where or list(BASES)[(options.seed + i) % 2]), None) for i, n in enumerate(counts)]
        for (seed, count, where), listed in batches:
            batch = Batch(options, directory, seed, count, where, listed)
            result = batch.compare()
            if not result:
                continue
            different, faulted = result
            wrong, faults, done = wrong + different, faults + faulted, done + len(batch.offsets)
            print(f"{done} sequences, {faults} of {2 * done} runs faulted, {wrong} sequences differ", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
