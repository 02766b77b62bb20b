"""Are Weir's figures true? Ten programs of others, each figure beside an independent measurement of it.

  ./dev truth [--only NAMES] [--figures NAMES] [--turns N] [--write]

  processor   `weir sample`: seconds of processor time               perf stat of the same run: task-clock
  disturbed   perf stat of the program, under `weir sample`          perf stat, natively: task-clock
  OS work     `weir profile`: OS time                                perf stat and perf record, natively: task-clock, and what of it is in the kernel
  waiting     `weir profile`: waiting                                perf record of the same run: the scheduler's switches
  sampled     `weir sample`: shares of functions                     perf record, natively
  exact       `weir profile`: shares of functions, by the model      perf record, natively
  calls       `weir profile`: calls of each function                 callgrind
  lines       `weir profile`: how often each line of a program ran   gcov
              that was built with -O3, and with -O0

Times are medians of some turns, taken in turn. A deviation of more than 5 % (of shares: of the whole) must have a sentence in REASONS that
says why; the command ends with status 1 where there is none. A whole run with --write replaces the table of docs/truth.md."""

import argparse
import bisect
import collections
import dataclasses
import os
import pathlib
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

import oracles
import programs
from reasons import REASONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "truth.md"
BEGIN, END = "<!-- truth: begin -->", "<!-- truth: end -->"
ALLOWED = 0.05
RATE = 4000  # samples a second, for shares
LOW_RATE = 500  # … and where what an interruption takes would be seen
HIGH_RATE = 10000  # … and where nothing but a part is wanted
LARGEST = 10  # functions whose shares are compared
LEAST = 0.02  # seconds: less is not measured well enough to be compared
# Valgrind shows a program another processor, for which the C library chooses other functions: these are switched off for both.
PLAIN_PROCESSOR = {"GLIBC_TUNABLES": (ROOT / "tests" / "plain_processor").read_text().strip()}


def say(text):
    print(f"truth: {text}", file=sys.stderr)


class Bench:
    """Runs a program, natively or under something, in its directory."""

    def __init__(self, directory, weir):
        self.directory, self.weir = directory, weir

    def run(self, program, *prefix, environment=None):
        with open(self.directory / program.stdin, "rb") as stdin:
            process = subprocess.Popen([*map(str, prefix), *program.command], cwd=self.directory, stdin=stdin, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONHASHSEED": "0", "HOME": str(self.directory), **(environment or {})})  # fmt: skip
            try:
                if program.drive:
                    program.drive(self.directory, process)
                status = process.wait(timeout=900)
            except BaseException:
                process.kill()
                process.wait()
                raise
        if status:
            raise RuntimeError(f"{program.name} ended with {status} under {' '.join(map(str, prefix[:2])) or 'nothing'}")

    def perf_stat(self, program):
        said = self.directory / "perf.stat"
        self.run(program, "perf", "stat", "-x,", "-e", "task-clock,user_time,system_time", "-o", said, "--")
        return oracles.processor_time(said.read_text())

    def perf_record(self, program):
        data = self.directory / "perf.data"
        self.run(program, "perf", "record", "-q", "-e", "cpu-clock", "-F", RATE, "-g", "-o", data, "--")
        return self.perf_script(data, "pid,ip,sym,dso", oracles.samples)

    def part_in_kernel(self, program):
        data = self.directory / "perf.data"
        self.run(program, "perf", "record", "-q", "-e", "cpu-clock", "-F", HIGH_RATE, "-o", data, "--")
        return self.perf_script(data, "ip", oracles.part_in_kernel)

    def profile_and_sleep(self, program):
        """A profile, and for how long its threads slept in the same run: how long others take decides how long a program waits."""
        data, path = self.directory / "perf.data", self.directory / "truth.weir"
        switches = ["perf", "record", "-q", "-a", "-g", "-m", "4096", "-e", "sched:sched_switch", "-o", data, "--"]
        self.run(program, *switches, self.weir, "profile", "-q", "-o", path, "--")
        store = Store(path)
        threads = store.threads()
        return store, self.perf_script(data, "tid,time,event,trace,ip,sym,dso", lambda lines: oracles.time_asleep(lines, threads))

    def perf_script(self, data, fields, read):
        """What read() makes of the lines (there may be millions)."""
        script = ["perf", "script", "-i", data, "-F", fields]
        with subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as process:
            return read(process.stdout)

    def sample_and_time(self, program):
        """The seconds that `weir sample` tells, and those that perf stat has counted of the same run: Weir's are without perf's own."""
        said, path = self.directory / "perf.stat", self.directory / "truth.weir"
        stat = ["perf", "stat", "-x,", "-e", "task-clock,user_time,system_time", "-o", said, "--"]
        self.run(program, self.weir, "sample", "-F", LOW_RATE, "-q", "-o", path, "--", *stat)
        return Store(path).sampled_seconds(without="perf"), oracles.processor_time(said.read_text())["task-clock"]

    def callgrind(self, program):
        said = self.directory / "callgrind"
        self.run(program, "valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
                 f"--callgrind-out-file={said}", environment=PLAIN_PROCESSOR)  # fmt: skip
        with open(said) as lines:
            return oracles.calls_by_callgrind(lines)

    def profile(self, program, environment=None):
        return self.weir_run(program, ["profile"], environment)

    def sample(self, program, rate=RATE):
        return self.weir_run(program, ["sample", "-F", rate], None)

    def weir_run(self, program, verb, environment):
        store = self.directory / "truth.weir"
        self.run(program, self.weir, *verb, "-q", "-o", store, "--", environment=environment)
        return Store(store)


class Store:
    """What a profile says."""

    def __init__(self, path):
        self.data = sqlite3.connect(path)
        self.ticks, = self.ask("SELECT cycles_per_second FROM run")[0]

    def ask(self, query):
        return self.data.execute(query).fetchall()

    def sampled_seconds(self, without):
        return self.ask(f"SELECT sum(cycles) FROM thread WHERE name != '{without}'")[0][0] / self.ticks

    def threads(self):
        return {tid for tid, in self.ask("SELECT tid FROM thread")}

    def waited_seconds(self):
        return self.ask("SELECT sum(waited) FROM thread")[0][0] / self.ticks

    def os_seconds(self):
        return self.ask("SELECT sum(os_time) FROM thread")[0][0] / self.ticks

    def functions(self):
        return Functions(self.ask("SELECT i.path, f.offset, f.size, n.text, f.id FROM function f JOIN image i ON i.id = f.image "
                                  "JOIN string n ON n.id = f.name WHERE f.has_code"))  # fmt: skip

    def own_times(self):
        """Function -> its own time, with what was inlined into it."""
        table = self.folded("function_count")
        return dict(self.ask(f"SELECT function, sum(self + os_time) FROM {table} GROUP BY function"))

    def calls(self):
        """Function -> calls of it, and how many of them are jumps at the end of another function."""
        rows = self.ask(f"SELECT c.callee, sum(c.calls), sum(c.calls) FILTER (WHERE s.kind = 'tail call') FROM {self.folded('call_count')} c "
                        "JOIN site s ON s.id = c.site WHERE s.kind IN ('call', 'indirect call', 'tail call') GROUP BY c.callee")  # fmt: skip
        return {callee: (calls, tails or 0) for callee, calls, tails in rows}

    def folded(self, table):
        return f"folded_{table}" if self.ask("SELECT count(*) FROM scope")[0][0] else table

    def lines(self):
        rows = self.ask("SELECT f.text, l.line, sum(c.count * l.is_counted) FROM block_line l JOIN block_count c ON c.block = l.block "
                        "JOIN string f ON f.id = l.file WHERE l.line > 0 GROUP BY l.file, l.line")  # fmt: skip
        return {(file, line): count for file, line, count in rows}


class Functions:
    """Which function an address of an image belongs to, whatever it is called."""

    def __init__(self, rows):
        self.by_image, self.names = collections.defaultdict(list), {}
        for image, offset, size, name, id in rows:
            self.by_image[os.path.realpath(image)].append((offset, size, id))
            self.names[id] = name
        for functions in self.by_image.values():
            functions.sort()

    def at(self, image, address, is_entry=False):
        functions = self.by_image.get(os.path.realpath(image)) if address is not None and image.startswith("/") else None
        if not functions:
            return None
        i = bisect.bisect_right(functions, (address, 1 << 62)) - 1
        offset, size, id = functions[i]
        return id if i >= 0 and (address == offset if is_entry else address < offset + size) else None


# --- figures: each is (what Weir says, what the other says, the deviation), or None where there is nothing to compare


def seconds(value):
    return f"{value:.3f} s"


def percent(value):
    return f"{100 * value:.1f} %"


def compare_times(ours, theirs):
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    return None if max(ours, theirs) < LEAST else (seconds(ours), seconds(theirs), (ours - theirs) / theirs)


def compare_processor(bench, program, turns):
    return compare_times(*zip(*(bench.sample_and_time(program) for _ in range(turns))))


def compare_disturbed(bench, program, turns):
    return compare_times(*zip(*((bench.sample_and_time(program)[1], bench.perf_stat(program)["task-clock"]) for _ in range(turns))))


def compare_os_work(bench, program, turns):
    """(The system time of perf stat is the kernel's count of ticks: of 0.1 s there are 25.)"""
    turns = [(bench.profile(program).os_seconds(), bench.perf_stat(program)["task-clock"] * bench.part_in_kernel(program)) for _ in range(turns)]
    return compare_times(*zip(*turns))


def compare_waiting(bench, program, turns):
    ours, theirs = [], []
    for _ in range(turns):
        store, asleep = bench.profile_and_sleep(program)
        ours.append(store.waited_seconds())
        theirs.append(asleep)
    return compare_times(ours, theirs) if max(theirs) > LEAST * 5 else None


def compare_shares(store, samples):
    """The largest difference among the functions that take most by either."""
    functions, own = store.functions(), store.own_times()
    total = sum(own.values())
    ours = {id: time / total for id, time in own.items()}
    theirs = collections.Counter()
    for (image, address), n in samples.items():
        theirs[functions.at(image, address)] += n / samples.total()
    known = functions.names.keys()
    top = {id for shares in (ours, theirs) for id in sorted(shares.keys() & known, key=shares.get, reverse=True)[:LARGEST]}
    if not top:
        return None
    worst = max(top, key=lambda id: abs(ours.get(id, 0) - theirs[id]))
    difference = ours.get(worst, 0) - theirs[worst]
    name = functions.names[worst]
    return f"{name}: {percent(ours.get(worst, 0))}", percent(theirs[worst]), difference


def compare_sampled(bench, program, turns):
    return compare_shares(bench.sample(program), bench.perf_record(program))


def compare_exact(bench, program, turns):
    return compare_shares(bench.profile(program), bench.perf_record(program))


def compare_calls(bench, program, turns):
    """Without symbols callgrind sees a jump to another function as a call only where it goes through the linkage table: tail calls may be in
    its count, or not."""
    if not program.has_one_thread:
        return None
    store = bench.profile(program, PLAIN_PROCESSOR)
    functions, ours = store.functions(), store.calls()
    theirs = collections.Counter()
    for (image, address), calls in bench.callgrind(program).items():
        if (id := functions.at(image, address, is_entry=True)) is not None:
            theirs[id] += calls
    wrong = {}
    for id, calls in theirs.items():
        all_calls, tails = ours.get(id, (0, 0))
        wrong[id] = min(abs(calls - all_calls), abs(calls - all_calls + tails))
    if os.environ.get("TRUTH_VERBOSE"):
        for id in sorted(wrong, key=wrong.get, reverse=True)[:15]:
            say(f"{functions.names[id]}: {ours.get(id)} {theirs[id]}")
    off = sum(wrong.values())
    exact = sum(not w for w in wrong.values())
    return f"{exact} of {len(theirs)} functions the same", f"{theirs.total():,} calls", off / theirs.total()


def compare_lines(bench, program, turns):
    """Of the program as it is: an optimizer leaves some lines without code."""
    return compare_with_gcov(bench, program, program.command, must_have_all=False) if program.source else None


def compare_plain_lines(bench, program, turns):
    """Of the program built without optimization: each line that ran has code."""
    if not program.source:
        return None
    subprocess.run(["g++", *oracles.PLAIN, "-g", program.source, "-o", "plain"], cwd=bench.directory, check=True)
    return compare_with_gcov(bench, program, ["./plain"], must_have_all=True)


def compare_with_gcov(bench, program, command, must_have_all):
    """How many lines differ by more than a twentieth?"""
    def absolute(lines):
        return {(os.path.join(bench.directory, file), line): count for (file, line), count in lines.items() if count}

    theirs = absolute(oracles.lines_by_gcov(bench.directory, program.source))
    ours = absolute(bench.profile(dataclasses.replace(program, command=command)).lines())
    lines = theirs.keys() if must_have_all else theirs.keys() & ours.keys()
    off = [place for place in lines if abs(ours.get(place, 0) - theirs[place]) > ALLOWED * theirs[place]]
    if os.environ.get("TRUTH_VERBOSE"):
        for place in sorted(off):
            say(f"{place}: {ours.get(place)} {theirs[place]}")
    return f"{len(lines) - len(off)} lines the same", f"{len(lines)} lines", len(off) / len(lines)


FIGURES = {
    "processor": compare_processor, "disturbed": compare_disturbed, "OS work": compare_os_work, "waiting": compare_waiting, "sampled": compare_sampled, "exact": compare_exact,
    "calls": compare_calls, "lines of -O3": compare_lines, "lines of -O0": compare_plain_lines,
}  # fmt: skip


# --- the table


def table_of(rows):
    head = ["program", "figure", "Weir", "independent", "deviation", "why"]
    lines = [head, ["---"] * len(head)]
    lines += [[r["program"], r["figure"], r["weir"], r["other"], f"{100 * r['deviation']:+.1f} %", r["why"]] for r in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_page(rows, turns):
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    within = sum(abs(r["deviation"]) <= ALLOWED for r in rows)
    model = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    summary = f"{within} of {len(rows)} figures are within 5 %. Times are medians of {turns} turns; {model}, {os.cpu_count()} cores, Linux {platform.release()}."
    PAGE.write_text(f"{page[:begin]}\n{summary}\n\n{table_of(rows)}\n{page[end:]}")


def compare(bench, program, figure, turns):
    found = FIGURES[figure](bench, program, turns)
    if found is None:
        return None
    weir, other, deviation = found
    why = REASONS.get((program.name, figure), REASONS.get(figure, "")) if abs(deviation) > ALLOWED else ""
    return {"program": program.name, "figure": figure, "weir": weir, "other": other, "deviation": deviation, "why": why}


def main():
    parser = argparse.ArgumentParser(prog="./dev truth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", type=pathlib.Path, default=ROOT / "build" / "weir", help=argparse.SUPPRESS)
    parser.add_argument("--only", help="programs, with commas between them")
    parser.add_argument("--figures", help="figures, with commas between them")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the table into docs/truth.md")
    parser.add_argument("--packages", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weir-truth."))
    directory.chmod(0o755)  # (postgres runs as a user of its own)
    chosen = programs.programs(directory)
    if options.packages:
        print(*sorted({package for program in chosen for package in program.packages}))
        directory.rmdir()
        return 0
    if options.only:
        unknown = set(options.only.split(",")) - {p.name for p in chosen}
        if unknown:
            parser.error(f"no program {', '.join(sorted(unknown))}: there are {', '.join(p.name for p in chosen)}")
        chosen = [p for p in chosen if p.name in options.only.split(",")]
    figures = options.figures.split(",") if options.figures else list(FIGURES)
    try:
        programs.prepare(directory, [p.name for p in chosen])
        bench, rows = Bench(directory, options.weir.resolve()), []
        for program in chosen:
            bench.run(program)  # (once, so that files are in memory)
            for figure in figures:
                if row := compare(bench, program, figure, options.turns):
                    rows.append(row)
                    print(f"{row['program']:10} {row['figure']:10} {row['weir']:>40} {row['other']:>20} {100 * row['deviation']:+7.1f} %", flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if options.write:
        write_page(rows, options.turns)
    unexplained = [r for r in rows if abs(r["deviation"]) > ALLOWED and not r["why"]]
    for row in unexplained:
        say(f"nobody knows why {row['figure']} of {row['program']} deviates by {100 * row['deviation']:+.1f} %")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
