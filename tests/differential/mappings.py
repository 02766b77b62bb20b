#!/usr/bin/env python3
"""Random programs that map, protect, move, fill, call and unmap memory (mappings.c): all that they print under Weir is as natively."""
import argparse, os, subprocess, sys, tempfile

from programs import execute, modes


def first_difference(native, seen):
    pairs = zip(native.decode().split("\n") + ["(nothing)"], seen.decode().split("\n") + ["(nothing)"])
    return next((f"line {i + 1}: natively '{a}', here '{b}'" for i, (a, b) in enumerate(pairs) if a != b), "nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--alone", action="store_true", help="without other threads, which run code meanwhile")
    options = parser.parse_args()
    weir, source = os.path.abspath(options.weir), os.path.join(os.path.dirname(os.path.abspath(__file__)), "mappings.c")
    compared = skipped = wrong = 0
    with tempfile.TemporaryDirectory(prefix="weir-mappings.") as directory:
        program = f"{directory}/mappings"
        subprocess.run(["gcc", "-O1", "-w", source, "-o", program, "-lpthread"], check=True)
        for seed in range(options.seed, options.seed + options.count):
            command = [program, str(seed), str(options.steps), "0" if options.alone else "2"]
            native = execute(command, directory)
            if execute(command, directory) != native:
                skipped += 1
                continue
            for mode, prefix in modes(weir, directory).items():
                status, output = execute([*prefix, *command], directory)
                compared += 1
                if (status, output) == native:
                    continue
                wrong += 1
                print(f"--seed {seed} --steps {options.steps}: {mode}: status {status}, natively {native[0]}; {first_difference(native[1], output)}", flush=True)
    print(f"{options.count} programs, {compared} runs, {skipped} programs left out, {wrong} runs differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
