"""How fast programs run under Weir, next to native and to Valgrind.

Every workload is run natively and under each engine, in turns, so that a disturbance of the machine meets them all; the
minimum over the turns counts, of wall time and of processor time (user + system, of all processes together). Output and
exit status must be those of the native run. A whole run writes its tables into docs/benchmarks.md.
"""

import argparse
import hashlib
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import workloads

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
TIME_LIMIT = 300  # seconds a run; beyond it the engine counts as failed on that workload
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/dev/null"}  # nothing can be kept there
STARTS = 20


def engines(weir, peers):
    """Name -> what stands in front of the program. The first one is the yardstick."""
    valgrind = ["/usr/bin/valgrind", "-q", "--trace-children=yes"]
    all_engines = {
        "native": [],
        "weir": [weir, "run", "--"],
        "weir icount": [weir, "run", "--tool=icount", "--"],
        "weir profile": [weir, "profile", "-q", "-o", "bench.weir", "--"],
    }
    if peers != "none":
        all_engines["valgrind"] = [*valgrind, "--tool=none"]
    if peers == "all":
        all_engines["callgrind"] = [*valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    return all_engines


def run(argv, directory, stdin="/dev/null", environment=ENVIRONMENT, before=None):
    """One run: its times, and what it said and how it ended as a fingerprint. Standard error is left in `stderr`. `before` is
    called in the new process."""
    output, errors = directory / "stdout", directory / "stderr"
    with open(stdin, "rb") as source, open(output, "wb") as out, open(errors, "wb") as err:
        start = time.monotonic()
        process = subprocess.Popen(argv, stdin=source, stdout=out, stderr=err, cwd=directory, env=environment,
                                   start_new_session=True, preexec_fn=before)  # fmt: skip
        limit = threading.Timer(TIME_LIMIT, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "said": [process.returncode, digest]}


def first_error(directory):
    lines = (directory / "stderr").read_text(errors="replace").splitlines()
    return lines[0][:200] if lines else "no message"


def measure(workload, all_engines, turns, directory):
    """Engine -> its best times, or {"wrong": why} where it did not do what the native run did."""
    best = {}
    for _ in range(turns):
        for engine, prefix in all_engines.items():
            if "wrong" in best.get(engine, {}):
                continue
            now = run(prefix + workload.argv, directory, workload.stdin)
            if engine == "native":
                said = now["said"]
            elif now["said"] != said:
                status = now["said"][0]
                why = "other output" if status == said[0] else f"exit status {status}: {first_error(directory)}"
                best[engine] = {"wrong": why}
                continue
            before = best.get(engine, now)
            best[engine] = {key: min(before[key], now[key]) for key in ("wall", "cpu")}
    return best


def startup(all_engines, turns, directory):
    """Engine -> milliseconds that `true` takes, as a mean, and `gcc hello.c` at best (four processes). Here there is a
    cache directory, and the programs have run before: "weir, first run" is without what that left."""
    environment = ENVIRONMENT | {"XDG_CACHE_HOME": str(directory)}
    weir = all_engines["weir"][0]
    all_engines = all_engines | {"weir, first run": [weir, "run", "--no-archive", "--"]}
    compile_hello = ["/usr/bin/gcc", str(workloads.PROGRAMS / "hello.c"), "-o", str(directory / "hello")]
    starts, compiles, wrong = {}, {}, {}
    for argv in 3 * [["/usr/bin/true"], compile_hello]:
        run(all_engines["weir"] + argv, directory, environment=environment)
    for times, argv, count in ((starts, ["/usr/bin/true"], STARTS), (compiles, compile_hello, max(7, turns))):
        for _ in range(count):
            for engine, prefix in all_engines.items():
                now = run(prefix + argv, directory, environment=environment)
                times.setdefault(engine, []).append(1000 * now["wall"])
                if now["said"][0] != 0:
                    wrong[engine] = {"wrong": f"exit status {now['said'][0]}: {first_error(directory)}"}
    return {
        engine: wrong.get(engine) or {"true_ms": sum(starts[engine]) / STARTS, "gcc_ms": min(compiles[engine])}
        for engine in all_engines
    }


def translation(weir, chosen, directory):
    """Workload -> the translator's own account of itself (`weir run --stats`), where it gives one: the best of three."""
    figures = {}
    for workload in chosen * 3:
        run([weir, "run", "--stats", "--", *workload.argv], directory, workload.stdin)
        text = (directory / "stderr").read_text(errors="replace")
        line = r"^weir: translator: ([\d,]+) functions, ([\d.]+) us each, .* instructions, ([\d,]+) -> "
        if found := re.search(line, text, re.MULTILINE):
            functions, app_bytes = (int(found[i].replace(",", "")) for i in (1, 3))
            best = figures.setdefault(workload.name, {"microseconds_each": math.inf})
            if float(found[2]) < best["microseconds_each"]:
                best.update(functions=functions, bytes=app_bytes, microseconds_each=float(found[2]))
    return figures


def signals(all_engines, turns, directory):
    """Engine -> microseconds that a signal takes: sent, raised, and of a timer (programs/signals.c)."""
    program = str(directory / "signals")
    subprocess.run(["/usr/bin/gcc", "-O2", str(workloads.PROGRAMS / "signals.c"), "-o", program], check=True)
    best = {}
    for _ in range(turns):
        for engine, prefix in all_engines.items():
            now = run([*prefix, program], directory)
            if now["said"][0] != 0:
                best[engine] = {"wrong": f"exit status {now['said'][0]}: {first_error(directory)}"}
                continue
            figures = [float(word) for word in (directory / "stdout").read_text().split()]
            best[engine] = {"us": [min(pair) for pair in zip(figures, best.get(engine, {"us": figures})["us"])]}
    return best


def ratio(result, engine, clock):
    if "wrong" in result.get(engine, {"wrong": ""}) or "wrong" in result["native"]:
        return None
    return result[engine][clock] / max(result["native"][clock], 1e-6)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def ratio_table(results, names, clock):
    """Rows of cells: a workload each, then the mean and the worst."""
    rows = [["", "native, s", *(f"{name}, ×" for name in names)]]
    columns = {name: [] for name in names}
    for workload, result in results.items():
        cells = []
        for name in names:
            value = ratio(result, name, clock)
            cells.append("fails" if value is None else f"{value:.2f}")
            if value is not None:
                columns[name].append(value)
        rows.append([workload, f"{result['native'][clock]:.2f}", *cells])
    for label, combine in (("geometric mean", geometric_mean), ("worst", max)):
        cells = [f"{combine(columns[name]):.2f}" if columns[name] else "–" for name in names]
        rows.append([label, "", *cells])
    return rows


def startup_table(figures):
    rows = [["", "`true`, ms", "over native, ms", "`gcc hello.c`, ms", "× native"]]
    native = figures["native"]
    for engine, figure in figures.items():
        if "wrong" in figure:
            rows.append([engine, "fails", "–", "fails", "–"])
            continue
        over, times = figure["true_ms"] - native["true_ms"], figure["gcc_ms"] / native["gcc_ms"]
        rows.append([engine, f"{figure['true_ms']:.1f}", f"{over:.1f}", f"{figure['gcc_ms']:.0f}", f"{times:.2f}"])
    return rows


def signals_table(figures):
    rows = [["", "sent, µs", "raised, µs", "of a timer, µs"]]
    for engine, figure in figures.items():
        rows.append([engine, *(f"{us:.1f}" for us in figure["us"])] if "us" in figure else [engine, "fails", "–", "–"])
    return rows


def translation_table(figures):
    """A workload each, and all of them: per function, and per 400 bytes of code, which is a function of average size."""
    rows = [["", "functions", "bytes each", "µs each", "µs per 400 bytes"]]

    def row(name, functions, size, microseconds):
        cells = (size / functions, microseconds / functions, 400 * microseconds / size)
        return [name, str(functions), f"{cells[0]:.0f}", *(f"{cell:.1f}" for cell in cells[1:])]

    each = [(name, f["functions"], f["bytes"], f["functions"] * f["microseconds_each"]) for name, f in figures.items()]
    return rows + [row(*e) for e in each + [("all", *(sum(e[i] for e in each) for i in (1, 2, 3)))]]


def markdown(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def report(data):
    """The same text for the terminal and for the page."""
    names = [name for name in data["engines"] if name != "native"]
    parts = []
    if data["workloads"]:
        parts += ["**Wall time**, as multiples of native:", markdown(ratio_table(data["workloads"], names, "wall"))]
        parts += ["**Processor time** of all processes, as multiples of native:"]
        parts += [markdown(ratio_table(data["workloads"], names, "cpu"))]
    if data["startup"]:
        parts += ["**Start-up**:", markdown(startup_table(data["startup"]))]
    if data["signals"]:
        parts += ["**A signal** that is handled, with an empty handler (processor time of the program):"]
        parts += [markdown(signals_table(data["signals"]))]
    if data["translation"]:
        parts += ["**Translation**, all steps of it:", markdown(translation_table(data["translation"]))]
    machine = f"{data['cpu']}, {data['cores']} cores, Linux {data['kernel']}"
    parts.append(f"`{data['command']}`, {machine}, best of {data['turns']}.")
    return "\n\n".join(parts)


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def write_page(text):
    page = PAGE.read_text()
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description="Weir's speed, next to native and Valgrind.")
    parser.add_argument("--quick", action="store_true", help="small inputs, one turn: a look, no measurement")
    parser.add_argument("--only", action="append", metavar="NAME", help="this workload, startup or signals; may be repeated")
    parser.add_argument("--peers", choices=("none", "valgrind", "all"), default="valgrind", help="all: callgrind too")
    parser.add_argument("--turns", type=int, metavar="N", help="runs of everything (3)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--weir", default=str(ROOT / "build" / "weir"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    weir = str(pathlib.Path(options.weir).resolve())
    if not os.access(weir, os.X_OK):
        sys.exit(f"bench: {weir} is not there; ./dev build makes it")
    turns = options.turns or (1 if options.quick else 3)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench."))
    try:
        print("preparing inputs …", file=sys.stderr)
        chosen = workloads.make(directory, 0.2 if options.quick else 1)
        known = [w.name for w in chosen] + ["startup", "signals"]
        if unknown := set(options.only or []) - set(known):
            sys.exit(f"bench: no workload {', '.join(unknown)}; there are {', '.join(known)}")
        chosen = [w for w in chosen if not options.only or w.name in options.only]
        all_engines = engines(weir, options.peers)
        data = {
            "command": "./dev bench" + "".join(f" {a}" for a in sys.argv[1:] if a not in ("--weir", options.weir)),
            "cpu": cpu_model(), "cores": os.cpu_count(), "kernel": platform.release().split("-")[0], "turns": turns,
            "engines": list(all_engines), "workloads": {}, "startup": {}, "signals": {}, "translation": {},
        }  # fmt: skip
        for workload in chosen:
            print(f"{workload.name}: {workload.what} …", file=sys.stderr)
            data["workloads"][workload.name] = measure(workload, all_engines, turns, directory)
        if not options.only or "startup" in options.only:
            print("startup …", file=sys.stderr)
            data["startup"] = startup(all_engines, turns, directory)
        if not options.only or "signals" in options.only:
            print("signals …", file=sys.stderr)
            data["signals"] = signals(all_engines, turns, directory)
        data["translation"] = translation(weir, chosen, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)

    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(data, indent=2) + "\n")
    text = report(data)
    print(text)
    wrong = [(name, engine, r["wrong"]) for name, result in [*data["workloads"].items(), ("startup", data["startup"]), ("signals", data["signals"])]
             for engine, r in result.items() if "wrong" in r]  # fmt: skip
    for name, engine, why in wrong:
        print(f"bench: {name} under {engine} fails: {why}", file=sys.stderr)
    if not (options.quick or options.only or wrong):
        write_page(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
