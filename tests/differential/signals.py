#!/usr/bin/env python3
"""Programs with random signals (signals.c, by a seed): what holds natively holds under Weir. A seed whose native run does not end, on a busy machine, is left out."""
import argparse, os, subprocess, sys, tempfile


def execute(command, directory, seconds):
    try:
        done = subprocess.run(["timeout", "-k", "5", str(seconds), *command], capture_output=True, cwd=directory, text=True)
        return "it stands still" if done.returncode in (124, 137) else f"status {done.returncode}, {(done.stdout + done.stderr).strip()[-300:]}"
    except OSError as e:
        return str(e)


def modes(weir, directory):
    return {"run": [weir, "run", "-q", "--"], "icount": [weir, "run", "-q", "--tool=icount", "--"],
            "profile": [weir, "profile", "-q", "-o", f"{directory}/run.weir", "--"],
            "sample": [weir, "sample", "-q", "-F", "5000", "-o", f"{directory}/run.weir", "--"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--modes", default="run,icount,profile,sample")
    parser.add_argument("--seconds", type=int, default=60, help="that a run may take")
    options = parser.parse_args()
    weir = os.path.abspath(options.weir)
    runs = left_out = wrong = 0
    with tempfile.TemporaryDirectory(prefix="weir-signals.") as directory:
        program = f"{directory}/signals"
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "signals.c")
        subprocess.run(["gcc", "-O1", "-pthread", source, "-o", program], check=True)
        for seed in range(options.seed, options.seed + options.count):
            native = execute([program, str(seed)], directory, options.seconds // 3)
            if native != "status 0, ok":
                left_out += 1
                print(f"--seed {seed}: natively: {native}", flush=True)
                continue
            for mode in options.modes.split(","):
                known_limits = ["20", "ends"] if mode == "sample" else []
                result = execute([*modes(weir, directory)[mode], program, str(seed), *known_limits], directory, options.seconds)
                runs += 1
                if result != native:
                    wrong += 1
                    print(f"--seed {seed}: {mode}: {result}", flush=True)
        print(f"{runs} runs, {left_out} seeds left out, {wrong} runs differ")
    sys.exit(1 if wrong or not runs else 0)


if __name__ == "__main__":
    main()
