"""What sampling costs the program that is sampled: `weir sample`, the kernel's floor, perf and gperftools.

Every workload runs natively and under each sampler at each rate, in turns: a machine that others use, too, is fast or slow for some
seconds, and a turn is short, so that runs of the same turn can be compared. A figure is the median, over the turns, of such a ratio to
native, less 1.
What Weir takes over the floor is less than what such a machine lets see in that way. So for this the two run at the same time, on one
processor, which they share by milliseconds: what slows the one slows the other. Its mean has a 95 % interval (bootstrap).
The program's own time counts, as its parent sees it (programs/used.c): processor time (user + system) and wall time. What the samplers
do in processes of their own (perf copies stacks, which are unwound later; Weir follows and writes its result) is in the times of the
whole command only.
The floor is an empty handler at the same rate (programs/empty_handler.c). What Weir's handler takes beyond it, it measures itself, too
(`weir sample --cost`). A whole run writes its tables into docs/benchmarks.md.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import bench
import workloads

BEGIN, END = "<!-- sample: begin -->", "<!-- sample: end -->"
PROFILER = "/usr/lib/x86_64-linux-gnu/libprofiler.so.0"
RATES = (1000, 10000)
DEPTHS = (5, 50, 500)
FLOOR = "empty handler"
SAMPLERS = (FLOOR, "weir", "perf", "gperftools")
CLOCKS = {"wall": "Wall time of the program", "command": "Wall time of the whole command, until its result is written",
          "command cpu": "Processor time of the whole command"}  # fmt: skip
ALLOWED = {1000: 0.005, 10000: 0.02}  # over the floor


def commands(weir, directory, program, times="times", pin=()):
    """(sampler, rate) -> the whole command. The program runs under `used`, and everything else around or in it."""
    used = [*pin, str(directory / "used"), str(directory / times)]
    all_commands = {("native", 0): used + program}
    for rate in RATES:
        own = ["/usr/bin/env", f"LD_PRELOAD={directory / 'empty_handler.so'}", f"EMPTY_HANDLER_HZ={rate}"]
        google = ["/usr/bin/env", f"LD_PRELOAD={PROFILER}", f"CPUPROFILE={directory / 'google'}", f"CPUPROFILE_FREQUENCY={rate}"]
        perf = ["/usr/bin/perf", "record", "-q", "-e", "cpu-clock", "-F", str(rate), "--call-graph", "dwarf", "-o", str(directory / "perf.data"), "--"]
        all_commands |= {
            (FLOOR, rate): used + own + program,
            ("weir", rate): [weir, "sample", "-q", "--cost", "-F", str(rate), "-o", str(directory / "bench.weir"), "--", *used, *program],
            ("perf", rate): perf + used + program,
            ("gperftools", rate): used + google + program,
        }
    return all_commands


def come_first():
    """Before all others who use the machine, as far as we may: a session is scheduled as one."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        pathlib.Path("/proc/self/autogroup").write_text("-20")
    except OSError:
        pass


def is_there(sampler):
    return {"perf": os.path.exists("/usr/bin/perf"), "gperftools": os.path.exists(PROFILER)}.get(sampler, True)


def clean(directory):
    for left in [*directory.glob("google*"), *directory.glob("perf.data*"), *directory.glob("bench.weir*")]:
        left.unlink()


def samples_in(weir, directory):
    done = subprocess.run([weir, "report", str(directory / "bench.weir"), "summary", "--format", "json"], capture_output=True)
    return json.loads(done.stdout)["sampling"]["samples"] if done.returncode == 0 else None


def cost_in(directory):
    """What a sample took, in µs: Weir's own word."""
    return float(re.search(r"a sample took ([0-9.]+) µs", (directory / "stderr").read_text()).group(1))


def times_in(directory, name):
    """Wall and processor time of the program."""
    wall, user, system = map(float, (directory / name).read_text().split())
    return wall, user + system


def beside_floor(workload, weir, turns, directory):
    """Rate -> for each turn, how much longer the program takes with Weir than with the empty handler that runs beside it."""
    pin = ["/usr/bin/taskset", "-c", str(max(os.sched_getaffinity(0)))]
    ratios = {rate: [] for rate in RATES}
    for turn, rate in itertools.product(range(turns), RATES):
        running = []
        for sampler in random.Random(turn).sample((FLOOR, "weir"), 2):
            command = commands(weir, directory, workload.argv, f"times of {sampler}", pin)[sampler, rate]
            with open(workload.stdin, "rb") as source:
                running.append(subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory, env=bench.ENVIRONMENT))
        for process in running:
            process.wait()
        ratios[rate].append(times_in(directory, "times of weir")[1] / times_in(directory, f"times of {FLOOR}")[1] - 1)
        clean(directory)
    return ratios


def measure(workload, weir, turns, directory, samplers):
    """Sampler -> rate -> {"cpu", "wall", "command", "command cpu": one a turn; "wrong": why}; of Weir also "samples" and "cost", µs a sample."""
    results, said = {}, None
    for turn in range(turns):
        all_commands = commands(weir, directory, workload.argv)
        # In another order each turn: nobody always comes after the same one.
        for (sampler, rate), command in random.Random(turn).sample(list(all_commands.items()), len(all_commands)):
            result = results.setdefault(sampler, {}).setdefault(rate, {})
            if (sampler != "native" and sampler not in samplers) or "wrong" in result:
                continue
            (directory / "times").write_text("")
            now = bench.run(command, directory, workload.stdin, before=come_first)
            said = said or (now["said"] if sampler == "native" else None)
            if not (directory / "times").read_text() or (said and now["said"] != said):
                result["wrong"] = bench.first_error(directory)
                continue
            wall, cpu = times_in(directory, "times")
            for key, value in (("cpu", cpu), ("wall", wall), ("command", now["wall"]), ("command cpu", now["cpu"])):
                result.setdefault(key, []).append(value)
            if sampler == "weir":
                result.setdefault("samples", []).append(samples_in(weir, directory))
                result.setdefault("cost", []).append(cost_in(directory))
            clean(directory)
    return results


def interruptions(weir, turns, directory, samplers):
    """(sampler, depth) -> how long one takes, in µs, at the highest rate: one a turn, each of them a median (programs/gaps.c)."""
    rate, times = RATES[-1], {}
    for depth in DEPTHS:
        all_commands = commands(weir, directory, [str(directory / "gaps"), str(depth), "0.5"])
        for _ in range(turns):
            for sampler in samplers:
                bench.run(all_commands[sampler, rate], directory, before=come_first)
                said = (directory / "stdout").read_text().split()
                if said and sampler != "gperftools":  # (which interrupts so seldom that others prevail)
                    times.setdefault((sampler, depth), []).append(float(said[-1]))
                clean(directory)
    return times


def interruption_table(figures):
    samplers = list(dict.fromkeys(sampler for sampler, _ in figures))
    rows = [["depth", *(f"{s}, µs" for s in samplers), "weir over the floor, µs", f"at {RATES[-1]:,} Hz", f"at {RATES[0]:,} Hz"]]
    for depth in DEPTHS:
        more = statistics.median(a - b for a, b in zip(figures["weir", depth], figures[FLOOR, depth]))
        rows.append([str(depth), *(f"{statistics.median(figures[s, depth]):.1f}" for s in samplers), f"{more:.2f}", *(f"{more * rate / 1e4:.2f} %" for rate in RATES[::-1])])
    return bench.markdown(rows)


def longer(result, sampler, rate, clock):
    """For each turn, by how much the program takes longer than natively; empty: not measured."""
    now = result.get(sampler, {}).get(rate, {})
    return [] if "wrong" in now else [a / b - 1 for a, b in zip(now.get(clock, []), result["native"][0][clock])]


def over_floor(result, rate):
    """Of native, as the other figures are."""
    floor = 1 + statistics.median(longer(result, FLOOR, rate, "cpu"))
    return [floor * ratio for ratio in result["beside the floor"][rate]]


def interval(per_workload):
    """Of the mean of the workloads' medians: 95 % of those that other turns might have given."""
    chance = random.Random(1)
    means = sorted(statistics.mean(statistics.median(chance.choices(v, k=len(v))) for v in per_workload) for _ in range(2000))
    return means[50], means[-51]


def percent(value):
    return "–" if value is None else f"{100 * value:+.1f} %"


def cell(result, sampler, rate, values):
    return "fails" if "wrong" in result.get(sampler, {}).get(rate, {}) else percent(statistics.median(values) if values else None)


def table(results, rate, samplers):
    rows = [["", "native, s", *samplers, "weir over the floor", "µs a sample in the handler", "that is", "samples"]]
    for name, result in results.items():
        weir = result["weir"][rate]
        cost = statistics.median(weir["cost"])
        rows.append([name, f"{statistics.median(result['native'][0]['cpu']):.3f}",
                     *(cell(result, s, rate, longer(result, s, rate, "cpu")) for s in samplers),
                     percent(statistics.median(over_floor(result, rate))), f"{cost:.2f}", f"{cost * rate / 1e4:.2f} %",
                     str(round(statistics.median(weir["samples"])))])  # fmt: skip
    costs = [statistics.median(r["weir"][rate]["cost"]) for r in results.values()]
    rows.append(["mean", "", *(percent(mean_of(results, s, rate, "cpu")) for s in samplers),
                 percent(statistics.mean(statistics.median(over_floor(r, rate)) for r in results.values())),
                 f"{statistics.mean(costs):.2f}", f"{statistics.mean(costs) * rate / 1e4:.2f} %", ""])  # fmt: skip
    return bench.markdown(rows)


def mean_of(results, sampler, rate, clock):
    medians = [statistics.median(v) for r in results.values() if (v := longer(r, sampler, rate, clock))]
    return statistics.mean(medians) if medians else None


def report(data):
    parts, samplers, results = [], data["samplers"], data["workloads"]
    if data["interruptions"]:
        parts += ["**One sample**, the time for which the program stands still:", interruption_table(data["interruptions"])]
    for rate in RATES if results else ():
        low, high = interval([over_floor(r, rate) for r in results.values()])
        parts += [f"**{rate:,} Hz**, processor time of the program, over native:", table(results, rate, samplers),
                  f"Allowed over the floor: {100 * ALLOWED[rate]:.1f} %. The mean is between "
                  f"{100 * low:+.1f} and {100 * high:+.1f} %, with 95 % confidence."]  # fmt: skip
    for clock, what in CLOCKS.items() if results else ():
        rows = [["", *(f"{s}, {rate:,} Hz" for rate in RATES for s in samplers)],
                ["mean", *(percent(mean_of(results, s, rate, clock)) for rate in RATES for s in samplers)]]  # fmt: skip
        parts += [f"{what}, over native:", bench.markdown(rows)]
    machine = f"{data['cpu']}, {data['cores']} cores, Linux {data['kernel']}"
    parts.append(f"`{data['command']}`, {machine}, medians of {data['turns']} turns.")
    return "\n\n".join(parts)


def write_page(text):
    page = bench.PAGE.read_text()
    before, rest = page.split(BEGIN, 1)
    bench.PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench sample", description="What sampling costs, next to perf and gperftools.")
    parser.add_argument("--quick", action="store_true", help="small inputs, two turns: a look, no measurement")
    parser.add_argument("--only", action="append", metavar="NAME", help="this workload, or interruptions; may be repeated")
    parser.add_argument("--peers", choices=("none", "all"), default="all")
    parser.add_argument("--turns", type=int, metavar="N", help="runs of everything (9)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--weir", default=str(bench.ROOT / "build" / "weir"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    weir = str(pathlib.Path(options.weir).resolve())
    turns = options.turns or (2 if options.quick else 9)
    samplers = [s for s in SAMPLERS if (options.peers == "all" or s in (FLOOR, "weir")) and is_there(s)]
    # In memory: what perf writes is not still on its way to a disk when the next one runs.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    try:
        print("preparing inputs …", file=sys.stderr)
        for source, flags in (("used.c", ["-o", "used"]), ("gaps.c", ["-o", "gaps"]), ("empty_handler.c", ["-shared", "-fPIC", "-o", "empty_handler.so"])):
            subprocess.run(["/usr/bin/gcc", "-O2", "-w", str(workloads.PROGRAMS / source), *flags], cwd=directory, check=True)
        chosen = [w for w in workloads.make(directory, 0.1 if options.quick else 0.3) if not options.only or w.name in options.only]
        data = {
            "command": "./dev bench sample" + "".join(f" {a}" for a in sys.argv[1:] if a not in ("--weir", options.weir, "--json", options.json)),
            "cpu": bench.cpu_model(), "cores": os.cpu_count(), "kernel": os.uname().release.split("-")[0], "turns": turns,
            "samplers": samplers, "workloads": {}, "interruptions": {},
        }  # fmt: skip
        if not options.only or "interruptions" in options.only:
            print("interruptions …", file=sys.stderr)
            data["interruptions"] = interruptions(weir, max(turns, 5), directory, samplers)
        for workload in chosen:
            print(f"{workload.name}: {workload.what} …", file=sys.stderr)
            data["workloads"][workload.name] = result = measure(workload, weir, turns, directory, samplers)
            result["beside the floor"] = beside_floor(workload, weir, turns, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    wrong = [(name, s, rate, r["wrong"]) for name, result in data["workloads"].items() for s, rates in result.items()
             if s != "beside the floor" for rate, r in rates.items() if "wrong" in r]  # fmt: skip
    for name, sampler, rate, why in wrong:
        print(f"bench: {name} under {sampler}, {rate} Hz, fails: {why}", file=sys.stderr)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({**data, "interruptions": {f"{s}, {d}": t for (s, d), t in data["interruptions"].items()}, "workloads": {w: {f"{s} {rate}": r for s, rates in result.items() for rate, r in rates.items()} for w, result in data["workloads"].items()}}, indent=2) + "\n")
    text = report(data)
    print(text)
    own_failure = any(sampler in ("native", FLOOR, "weir") for _, sampler, _, _ in wrong)  # a peer's is a result, too
    if not (options.quick or options.only or own_failure):
        write_page(text)
    return 1 if own_failure else 0


if __name__ == "__main__":
    sys.exit(main())
