#!/usr/bin/env python3
"""Kills Weir, its guardian, and what they run, at random instants, and looks at what is left.

  tests/stress/kills.py [--weir FILE] [--count N] [--seed S] [--only KIND]

tests/programs/turns.c computes, creates threads, forks, with and without a seccomp filter, and executes itself, under `weir run --tool=icount --json` and `weir profile`, started by
them or attached to. At a random instant, often at the very begin or the very end, one process is killed with SIGKILL: one of the program's
(KIND target), Weir (weir), or the process that watches over it (guardian). After each of N kills of a kind: all end in time; no process, no
zombie, no temporary file and no shared memory is left; if the program has begun, its counts can be read and hold every turn
that it took. Programs that were not killed end as they do natively. The first line of what is printed for a failure has the options that repeat it."""
import argparse, collections, ctypes, json, os, pathlib, random, shutil, signal, sqlite3, struct, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
STEPS, MODES, KINDS = 5000, ("alone", "threads", "forks", "execs", "quiet"), ("target", "weir", "guardian")
PATIENCE = 120  # seconds
RUN_MS = 120


class Wrong(Exception):
    pass


def marked(mark):
    """pid -> name of the processes that have the mark in their environment, and are alive."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if mark in pathlib.Path("/proc", entry, "environ").read_bytes():
                found[int(entry)] = pathlib.Path("/proc", entry, "comm").read_text().strip()
        except OSError:
            pass
    return found


def reap():
    """We are the parent of all that are left behind. (Popen looks after its own.)"""
    for child in pathlib.Path("/proc/self/task", str(os.getpid()), "children").read_text().split():
        if int(child) not in OWN:
            try:
                os.waitpid(int(child), os.WNOHANG)
            except ChildProcessError:
                pass


OWN = set()


def start(words, **more):
    process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)
    OWN.add(process.pid)
    return process


def zombies():
    """Children of processes that do not look after them, among ours."""
    result, parents = [], {os.getpid()}
    for entry in sorted((e for e in os.listdir("/proc") if e.isdigit()), key=int):
        try:
            stat = pathlib.Path("/proc", entry, "stat").read_text()
        except OSError:
            continue
        state, parent = stat.rpartition(")")[2].split()[:2]
        if int(parent) in parents:
            parents.add(int(entry))
            if state == "Z" and int(entry) not in OWN:
                result.append(entry)
    return result


class Trial:
    def __init__(self, options, program, directory, kind, number):
        self.rng = random.Random(f"{options.seed}-{kind}-{number}")
        self.kind, self.weir, self.directory = kind, options.weir, directory / f"{kind}-{number}"
        self.directory.mkdir()
        self.mode, self.tool = self.rng.choice(MODES), self.rng.choice(("icount", "profile"))
        self.attached = self.mode not in ("execs", "quiet") and self.rng.random() < 0.25
        # Early, late (translation and writing take their time, too), or anywhere.
        self.delay = {0: self.rng.uniform(0, 0.03), 1: self.rng.uniform(0.1, 0.35)}.get(self.rng.randrange(4), self.rng.uniform(0, 0.35))
        self.cells = self.directory / "cells"
        self.cells.write_bytes(bytes(512 * 8))
        self.result = self.directory / ("counts.json" if self.tool == "icount" else "run.weir")
        self.mark = f"WEIR_STRESS={self.directory}"
        (self.directory / "tmp").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": str(self.directory / "tmp"), "WEIR_STRESS": str(self.directory)}
        self.program = [program, self.mode, self.cells, 5 * RUN_MS if self.attached else RUN_MS]
        self.words = [self.weir, "run", "--tool=icount", "--json", self.result] if self.tool == "icount" else [self.weir, "profile", "-o", self.result]

    def __str__(self):
        return f"{self.tool}, {self.mode}{', attached' if self.attached else ''}, killed after {self.delay * 1000:.0f} ms"

    def victim(self, weir):
        if self.kind == "weir":
            return weir.pid
        alive = marked(self.mark.encode())
        names = {"guardian": lambda n: n == "weir-guardian", "target": lambda n: not n.startswith("weir")}[self.kind]
        chosen = [pid for pid, name in sorted(alive.items()) if pid != weir.pid and names(name)]
        return self.rng.choice(chosen) if chosen else None

    def run(self):
        native = start(self.program, env=self.environment, stderr=subprocess.DEVNULL) if self.attached else None
        if native:
            while not self.turns() and native.poll() is None:
                time.sleep(0.001)
        errors = open(self.directory / "errors", "wb")
        last = ["--pid", native.pid, "--seconds", RUN_MS / 2000] if native else ["--", *self.program]
        weir = start([*self.words, *last], env=self.environment, stderr=errors, cwd=self.directory)
        time.sleep(self.delay)
        victim = self.victim(weir)
        killed = False
        if victim and weir.poll() is None:
            try:
                os.kill(victim, signal.SIGKILL)
                killed = True
            except ProcessLookupError:
                pass
        for process in filter(None, (weir, native)):
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise Wrong(f"{' '.join(map(str, process.args))} hangs: {marked(self.mark.encode())}")
        ended = time.monotonic()
        while left := marked(self.mark.encode()):
            if time.monotonic() > ended + PATIENCE:
                raise Wrong(f"left running: {left}")
            reap()
            time.sleep(0.002)
        took = time.monotonic() - ended
        reap()
        self.look(weir, native, victim, killed)
        OWN.difference_update({weir.pid} | ({native.pid} if native else set()))
        return killed, took

    def turns(self):
        values = struct.unpack("512Q", self.cells.read_bytes())
        return sum(values[1:])

    def look(self, weir, native, victim, killed):
        given_up = time.monotonic() + PATIENCE
        while found := zombies():
            reap()
            if time.monotonic() > given_up:
                raise Wrong(f"zombies: {found}")
        words = (self.directory / "errors").read_text()
        unexpected = [p.name for p in self.directory.iterdir() if p.name not in ("cells", "errors", "tmp", self.result.name)]
        unexpected += [p.name for p in (self.directory / "tmp").iterdir()]
        if unexpected:
            raise Wrong(f"left behind: {unexpected}")
        came_late = self.attached and weir.returncode == 125 and words.startswith("weir: process") and words.count("\n") == 1
        if came_late:
            return
        if not killed or self.kind == "guardian":
            if weir.returncode != 0 or "weir was killed" in words:
                raise Wrong(f"status {weir.returncode}: {words}")
        if killed and self.kind == "weir" and weir.returncode not in (0, -9):  # (0: it had just ended)
            raise Wrong(f"status {weir.returncode}")
        if not self.attached and self.turns():
            self.look_at_counts(exact=True)
        elif self.attached and self.kind != "weir":
            self.look_at_counts(exact=False)
        # (What was written before Weir was killed needs no word.)
        if killed and self.kind == "weir" and self.turns() and not self.attached and not words and not self.is_complete():
            raise Wrong("no word of it")

    def is_complete(self):
        if self.tool == "icount":
            return True  # (the file does not tell)
        store = sqlite3.connect(f"file:{self.result}?mode=ro", uri=True)
        (complete,) = store.execute("SELECT complete FROM run").fetchone()
        store.close()
        return complete

    def look_at_counts(self, exact):
        turns = self.turns()
        most = turns + 8  # those that were under way
        if self.tool == "icount":
            try:
                counts = json.loads(self.result.read_text())
            except (OSError, ValueError) as e:
                raise Wrong(f"{self.result}: {e}")
            got = counts["instructions"]
            if sum(t["instructions"] for t in counts["threads"]) != got or sum(p["instructions"] for p in counts["processes"]) != got:
                raise Wrong("the counts do not add up")
            if exact and not turns * STEPS <= got <= most * (STEPS + 1000) + 20_000_000:
                raise Wrong(f"{got} instructions for {turns} turns")
            return
        report = subprocess.run([self.weir, "report", self.result, "summary", "--no-pager"], capture_output=True, text=True, env=self.environment)
        if report.returncode:
            raise Wrong(f"weir report: {report.stderr}")
        store = sqlite3.connect(f"file:{self.result}?mode=ro", uri=True)
        (got,) = store.execute("SELECT ifnull(sum(calls), 0) FROM function_total WHERE name = 'turn'").fetchone()
        (wrong,) = store.execute("SELECT count(*) FROM thread t WHERE cycles != (SELECT ifnull(sum(self), 0) FROM function_count WHERE thread = t.id)").fetchone()
        store.close()
        if wrong:
            raise Wrong(f"{wrong} threads whose functions do not add up")
        if exact and not turns <= got <= most:
            raise Wrong(f"{got} calls for {turns} turns")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=HERE.parent.parent / "build/weir", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200, help="kills of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--trial", type=int, help="only this one")
    options = parser.parse_args()
    options.weir = options.weir.resolve()
    # The children of processes that are killed become ours: what is left of them is seen.
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weir-stress."))
    failures = 0
    try:
        program = directory / "turns"
        subprocess.run(["gcc", "-O2", "-pthread", "-I", HERE.parent / "programs", HERE.parent / "programs/turns.c", "-o", program], check=True)
        shared_before = set(os.listdir("/dev/shm"))
        for kind in KINDS:
            if options.only not in (None, kind):
                continue
            seen = collections.Counter()
            slowest, number, kills = 0, -1, 0
            # (What has ended before it could be killed does not count.)
            while kills < options.count and number < 4 * options.count and failures < 10:
                number += 1
                if options.trial not in (None, number):
                    continue
                trial = Trial(options, program, directory, kind, number)
                try:
                    killed, took = trial.run()
                except Wrong as wrong:
                    failures += 1
                    print(f"FAIL: --seed {options.seed} --only {kind} --trial {number}: {trial}: {wrong}", flush=True)
                    for pid in marked(trial.mark.encode()):
                        os.kill(pid, signal.SIGKILL)
                    reap()
                    shutil.copytree(trial.directory, f"{trial.directory}.failed", dirs_exist_ok=True)
                else:
                    kills += killed
                    slowest = max(slowest, took)
                    seen[trial.tool] += killed
                    seen["attached" if trial.attached else trial.mode] += killed
                shutil.rmtree(trial.directory)
            print(f"{kind}: {kills} kills ({', '.join(f'{n} {what}' for what, n in sorted(seen.items()))}); all gone {slowest:.2f} s later at most", flush=True)
        if left := set(os.listdir("/dev/shm")) - shared_before:
            failures += 1
            print(f"FAIL: left in /dev/shm: {left}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("nothing hung, nothing was lost" if not failures else f"{failures} failures")
    return failures != 0


sys.exit(main())
