#!/usr/bin/env python3
"""Does `weir sample` stand in the way? `PROGRAM --version` of large programs, natively and sampled, in turns.

  tests/bench/start.py [--weir FILE] [--turns N] [--only NAMES] [--realtime]

native, warm, cold   wall time of the whole command; warm: caches are there, cold: they are not
before, after        of a warm run: until the program is executed, and from its end to that of Weir
delay                the program's own time from its execve to its exit, as perf's records tell, less that of a native run

--realtime: beside other work, as if there were none: all is run with a real-time priority (root).

Medians in milliseconds. Bars, on an idle machine: warm <= 1.2 native + 60, cold <= native + 500, delay <= 20."""
import argparse, os, re, resource, statistics, subprocess, tempfile, time

LIBRARIES = 400


def make_many(directory):
    """A program with hundreds of small libraries."""
    calls = []
    for i in range(1, LIBRARIES + 1):
        with open(f"{directory}/f{i}.c", "w") as f:
            f.write(f"int f{i}(int x) {{ return x + {i}; }}\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", f"{directory}/libf{i}.so", f"{directory}/f{i}.c"], check=True)
        calls.append(f"int f{i}(int);")
    calls += ["int main(void) { int s = 0;"] + [f"s = f{i}(s);" for i in range(1, LIBRARIES + 1)] + ["return s == 80200 ? 0 : 1; }"]
    with open(f"{directory}/main.c", "w") as f:
        f.write("\n".join(calls))
    libraries = [f"-lf{i}" for i in range(1, LIBRARIES + 1)]
    subprocess.run(["gcc", "-O1", "-o", f"{directory}/many", f"{directory}/main.c", f"-L{directory}", *libraries, f"-Wl,-rpath,{directory}"], check=True)
    return [f"{directory}/many"]


def run(command, cache):
    """Wall time and CPU time, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, XDG_CACHE_HOME=cache))
    wall = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * wall, 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def phases(command, name, cache, directory):
    """Until the program is executed, the program, and what comes after it, by the records that perf makes of these."""
    data = f"{directory}/perf.data"
    run(["perf", "record", "-q", "-e", "dummy:u", "-o", data, "--", *command], cache)
    text = subprocess.run(["perf", "script", "-i", data, "--show-task-events", "--ns"], check=True, capture_output=True, text=True).stdout
    first = last = begin = end = pid = None
    for line in text.splitlines():
        at = re.search(r"([0-9]+\.[0-9]+): PERF_RECORD_(COMM exec: (\S+):([0-9]+)|EXIT\(([0-9]+):([0-9]+)\))", line)
        if not at:
            continue
        now, executed, who, exiting, thread = float(at[1]), at[3], at[4], at[5], at[6]
        first = now if first is None else first
        if executed == name[:15] and pid is None:
            begin, pid = now, who
        if exiting and exiting == thread:
            last = now
            if exiting == pid:
                end = now
    return 1e3 * (begin - first), 1e3 * (end - begin), 1e3 * (last - end)


def measure(name, command, weir, turns, directory):
    warm_cache = f"{directory}/warm"
    sampled = [weir, "sample", "-o", f"{directory}/out.weir", "--", *command]
    run(command, warm_cache), run(sampled, warm_cache)
    native, warm, cold, alone, parts = [], [], [], [], []
    for _ in range(turns):
        native.append(run(command, warm_cache))
        warm.append(run(sampled, warm_cache))
        with tempfile.TemporaryDirectory(dir=directory) as fresh:
            cold.append(run(sampled, fresh))
        alone.append(phases(command, name, warm_cache, directory)[1])
        parts.append(phases(sampled, name, warm_cache, directory))
    middle = statistics.median
    result = {"native": middle(x[0] for x in native), "warm": middle(x[0] for x in warm), "cold": middle(x[0] for x in cold),
              "before": middle(p[0] for p in parts), "after": middle(p[2] for p in parts), "delay": middle(p[1] for p in parts) - middle(alone),
              "cpu": middle(x[1] for x in native), "cpu_warm": middle(x[1] for x in warm), "cpu_cold": middle(x[1] for x in cold)}
    result["missed"] = [what for what, is_met in [("warm", result["warm"] <= 1.2 * result["native"] + 60), ("cold", result["cold"] <= result["native"] + 500),
                                                  ("delay", result["delay"] <= 20)] if not is_met]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=os.path.join(os.path.dirname(__file__), "../../build/weir"))
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--only", default="")
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    weir = os.path.abspath(options.weir)
    with tempfile.TemporaryDirectory() as directory:
        programs = {p: [p, "--version"] for p in ("php", "doxygen", "ffmpeg", "blender")}
        programs["many"] = None
        only = options.only.split(",") if options.only else programs
        print("| program | native | warm | bar | cold | bar | delay | before, after | CPU native, warm, cold | bars |\n|---|---|---|---|---|---|---|---|---|---|")
        for name in programs:
            if name not in only:
                continue
            r = measure(name, programs[name] or make_many(directory), weir, options.turns, directory)
            met = "missed: " + ", ".join(r["missed"]) if r["missed"] else "met"
            print(f"| {name} | {r['native']:.0f} | {r['warm']:.0f} | {1.2 * r['native'] + 60:.0f} | {r['cold']:.0f} | {r['native'] + 500:.0f} | {r['delay']:.1f} "
                  f"| {r['before']:.0f}, {r['after']:.0f} | {r['cpu']:.0f}, {r['cpu_warm']:.0f}, {r['cpu_cold']:.0f} | {met} |", flush=True)
        print(f"\n{options.turns} turns each, load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors{', with real-time priority' if options.realtime else ''}")


main()
