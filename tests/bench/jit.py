#!/usr/bin/env python3
"""Programs that write code while they run, or run it from an image of their heap, and first runs: times under `weir run` as multiples of
native. Warm: archives are there, from a run before; cold: there are none. What the programs print must be the same.

Each figure is the best of its runs, which alternate: wall time, and processor time of the program and of Weir together."""
import argparse, math, os, resource, shutil, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from jit_programs import COLD, WARM, programs


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, environment):
    """(wall, processor) seconds, and what came of it."""
    wall, processor = time.monotonic(), processor_seconds()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900, env=environment)
    return (time.monotonic() - wall, processor_seconds() - processor), (done.returncode, done.stdout), done.stderr


def measure(name, command, ways, runs):
    """way → best (wall, processor)."""
    best, outputs = {}, {}
    for turn in range(runs):
        for way, (prefix, cache) in ways.items():
            if way == "cold":
                shutil.rmtree(cache, ignore_errors=True)
            if way == "warm" and not turn:
                for _ in range(2):
                    run([*prefix, *command], {**os.environ, "XDG_CACHE_HOME": cache})
            times, output, errors = run([*prefix, *command], {**os.environ, "XDG_CACHE_HOME": cache})
            outputs.setdefault(output, (way, errors))
            best[way] = tuple(map(min, best.get(way, times), times))
    if len(outputs) != 1:
        for (status, text), (way, errors) in outputs.items():
            print(f"{name}, {way}: status {status}, {text[-300:]!r}, {errors[-300:]!r}", file=sys.stderr)
    return best, len(outputs) == 1


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--ways", default="warm,cold", help="warm, cold, icount, profile: with commas between")
    options = parser.parse_args()
    weir = os.path.abspath(options.weir)
    failed = []
    with tempfile.TemporaryDirectory(prefix="weir-jit.") as d:
        engine = [weir, "run", "-q"]
        known = {"warm": [*engine, "--"], "cold": [*engine, "--"], "icount": [*engine, "--tool=icount", "--"],
                 "profile": [weir, "profile", "-q", "-o", f"{d}/p.weir", "--"]}
        ways = {"native": ([], f"{d}/native")} | {w: (known[w], f"{d}/{w}") for w in options.ways.split(",")}
        named = ways.keys() - {"native"}
        order = [w for w in ways if w in named]
        print("| | native, s | " + " | ".join(f"{w} | processor" for w in order) + " |\n|---|" + "---|" * (1 + 2 * len(order)))
        table = {}
        for name, command in programs(d).items():
            if options.only and name not in options.only.split(","):
                continue
            best, same = measure(name, command, ways, options.runs)
            if not same:
                failed.append(name)
                continue
            table[name] = {w: tuple(a / b for a, b in zip(best[w], best["native"])) for w in order}
            cells = " | ".join(f"{wall:.1f} | {processor:.1f}" for wall, processor in table[name].values())
            print(f"| {name} | {best['native'][0]:.2f} | {cells} |", flush=True)
        for title, way, names in (("warm", "warm", WARM), ("cold", "cold", COLD)):
            rows = [table[n][way] for n in names if way in table.get(n, {})]
            if rows:
                print(f"\nGeometric mean, {title} ({', '.join(n for n in names if n in table)}): wall {mean([w for w, _ in rows]):.1f}, "
                      f"processor {mean([p for _, p in rows]):.1f}, largest {max(w for w, _ in rows):.1f}")
    if failed:
        sys.exit(f"the outputs differ: {', '.join(failed)}")


if __name__ == "__main__":
    main()
