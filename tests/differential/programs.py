#!/usr/bin/env python3
"""Whole C programs, of csmith and of program.py, built by gcc and clang at four levels: their output and status under Weir are the native ones."""
import argparse, itertools, os, shutil, subprocess, sys, tempfile

from program import Program


def execute(command, directory, seconds=300):
    try:
        done = subprocess.run(command, capture_output=True, cwd=directory, timeout=seconds)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return "it stands still", b""


def modes(weir, directory):
    return {"run": [weir, "run", "-q", "--no-archive", "--"], "icount": [weir, "run", "-q", "--tool=icount", "--"],
            "profile": [weir, "profile", "-q", "-o", f"{directory}/run.weir", "--"]}


def write_program(seed, path):
    if seed % 2 and shutil.which("csmith") and os.path.exists("/usr/include/csmith/csmith.h"):
        subprocess.run(["csmith", "--seed", str(seed), "-o", path, "--max-funcs", "8", "--no-packed-struct"], check=True, capture_output=True,
                       cwd=os.path.dirname(path))
        return "csmith"
    with open(path, "w") as out:
        out.write(Program(seed).write())
    return "program.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; odd ones are csmith's")
    options = parser.parse_args()
    options.weir = os.path.abspath(options.weir)
    compilers = [c for c in ("gcc", "clang-19", "clang") if shutil.which(c)][:2]
    compared = skipped = wrong = 0
    with tempfile.TemporaryDirectory(prefix="weir-programs.") as directory:
        source, program = f"{directory}/p.c", f"{directory}/p"
        for seed in range(options.seed, options.seed + options.count):
            writer = write_program(seed, source)
            for compiler, level in itertools.product(compilers, ("-O0", "-O1", "-O2", "-O3")):
                name = f"--seed {seed} ({writer}, {compiler} {level})"
                if execute([compiler, level, "-w", "-I/usr/include/csmith", source, "-o", program], directory, 120)[0]:
                    sys.exit(f"{name}: not compiled")
                native = execute([program], directory, 5)
                # csmith's programs need not end, and some compilers make others depend on what was in memory before.
                if isinstance(native[0], str) or any(execute([program], directory, 5) != native for _ in range(2)):
                    skipped += 1
                    continue
                for mode, prefix in modes(options.weir, directory).items():
                    status, output = execute([*prefix, program], directory)
                    compared += 1
                    expected = native[0] if native[0] >= 0 else 128 - native[0]
                    if (status, output) != (expected, native[1]):
                        wrong += 1
                        print(f"{name}: {mode}: status {status}, natively {expected}; output {'the same' if output == native[1] else 'differs'}")
            print(f"{seed - options.seed + 1} programs, {compared} runs, {skipped} builds left out, {wrong} runs differ", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
