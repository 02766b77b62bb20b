#!/usr/bin/env python3
"""A server under load, for as long as one likes: threads, processes, libraries and written code come and go. Is Weir's memory flat, and is
an answer as quick in the end as in the beginning?

Three servers (tests/programs/server.c) get the same requests: one runs natively, one under `weir run --tool=icount`, one under `weir profile`. Every answer is checked."""
import argparse, os, pathlib, signal, socket, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
REQUESTS = ("work", "threads", "fork", "spawn", "load", "jit")


class Server:
    """A server and, unless it is native, the Weir that runs it."""

    def __init__(self, name, prefix, directory):
        self.name, self.samples, self.times = name, [], []
        self.errors = open(f"{directory}/{name}.err", "w+")
        self.process = subprocess.Popen([*prefix, f"{directory}/server", f"{directory}/libanswer.so"], stdout=subprocess.PIPE, text=True,
                                        stderr=self.errors, cwd=directory)
        self.port = int(self.process.stdout.readline() or sys.exit(f"{name} does not start: {self.said()}"))

    def ask(self, what):
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as s:
            s.sendall(what.encode())
            answer = s.makefile().readline().strip()
        if what == "work":
            self.times.append(time.monotonic() - begin)
        return answer

    def look(self):
        """KiB of memory, of shared memory files, descriptors; and of how many processes."""
        while True:
            tree = [p for p in descendants(self.process.pid) if is_weir(p)]
            try:
                memory = sum(private_memory(p) for p in tree)
                files = dict(f for p in tree for f in memory_files(p))
                descriptors = sum(len(os.listdir(f"/proc/{p}/fd")) for p in tree)
            except (OSError, StopIteration):  # one of them has ended meanwhile
                continue
            time.sleep(0.01)
            return memory, sum(files.values()), descriptors, len(tree)

    def sample(self):
        """What Weir's own processes have: KiB of memory, KiB of shared memory files, descriptors; milliseconds of a request; how many processes."""
        memory, files, descriptors, processes = min((self.look() for _ in range(20)), key=lambda look: look[3])  # (those that are about to end are not meant)
        times, self.times = self.times, []
        self.samples.append((memory, files, descriptors, 1000 * statistics.median(times), processes))

    def said(self):
        self.errors.seek(0)
        return self.errors.read()


def children(pid):
    try:
        return [int(c) for t in os.listdir(f"/proc/{pid}/task") for c in open(f"/proc/{pid}/task/{t}/children").read().split()]
    except OSError:
        return []


def descendants(pid):
    return [pid] + [d for c in children(pid) for d in descendants(c)]


def is_weir(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "weir"
    except OSError:
        return False


def private_memory(pid):
    return next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss_Anon:"))


def memory_files(pid):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if os.readlink(path).startswith("/memfd:weir"):
                st = os.stat(path)
                yield st.st_ino, st.st_blocks // 2
        except OSError:
            pass


def growth(values):
    """How much they grow all the time: a table that doubles once is no leak, nor is a process that has just begun or is about to end."""
    lag = max(1, len(values) // 6)
    values = [min(values[i : i + lag + 1]) for i in range(len(values) - lag)]
    return statistics.median(b - a for a, b in zip(values, values[lag:])) / lag * (len(values) - 1)


def round_of(servers, expected, options):
    """All requests once, to all servers, whose answers must agree."""
    for what in REQUESTS:
        for server in servers:
            answer = server.ask(what)
            if answer != expected.setdefault(what, answer):
                sys.exit(f"{server.name}: {what}: {answer}, not {expected[what]}: {server.said()}")
    time.sleep(options.pause)


def show(server, minutes, rounds):
    memory, files, descriptors, ms, _ = server.samples[-1]
    print(f"{minutes:7.1f} {rounds:8} {server.name:8} {memory:10} {files:10} {descriptors:6} {ms:8.2f}", flush=True)


def verdict(servers, options):
    """Growth over the second half of the samples (the first thousand threads are kept apart); and how much slower requests became, beside what the native server's did meanwhile."""
    bad = False
    by_name = {s.name: s.samples[len(s.samples) // 2:] for s in servers}
    halves = lambda rows: (statistics.median(r[3] for r in rows[: len(rows) // 2]), statistics.median(r[3] for r in rows[len(rows) // 2:]))
    native = halves(by_name.pop("native"))
    for name, rows in by_name.items():
        fewest = min(r[4] for r in rows)  # (where all twenty looks met a process that was about to end, what is private is another thing)
        alone = [r for r in rows if r[4] == fewest]
        if 2 * len(alone) < len(rows):
            sys.exit(f"{name}: processes come and stay: {[r[4] for r in rows]}")
        for what, column in (("memory", 0), ("shared memory", 1), ("descriptors", 2)):
            first, grown = alone[0][column], growth([r[column] for r in alone])
            is_flat = grown <= (2 if column == 2 else max(1024, first * options.tolerance))
            bad |= not is_flat
            print(f"{name}: {what}: {first}{' KiB' if column < 2 else ''}, grown by {grown:.0f}: {'flat' if is_flat else 'NOT FLAT'}")
        before, after = halves(rows)
        slower = (after / before) / (native[1] / native[0])
        is_slower = options.rounds is None and slower > 1.25
        bad |= is_slower
        print(f"{name}: a request took {before:.2f} ms, then {after:.2f} (natively {native[0]:.2f}, then {native[1]:.2f}): {'SLOWER' if is_slower else 'no slower'}")
    return bad


def build(directory):
    source = HERE.parent / "programs" / "server.c"
    subprocess.run(["gcc", "-O2", "-w", source, "-o", f"{directory}/server", "-pthread", "-ldl"], check=True)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{directory}/libanswer.so"], check=True, text=True,
                   input="unsigned answer(unsigned n) { for (int i = 0; i < 100; i++) n = n * 7 + i; return n; }")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, help="so many rounds instead, with a sample every hundredth part of them; times are not judged")
    parser.add_argument("--pause", type=float, default=0.3, help="seconds between rounds")
    parser.add_argument("--tolerance", type=float, default=0.03, help="growth that is still flat, as a part of what there is")
    options = parser.parse_args()
    weir = os.path.abspath(options.weir)
    with tempfile.TemporaryDirectory(prefix="weir-long.") as directory:
        build(directory)
        servers = [Server("native", [], directory), Server("icount", [weir, "run", "-q", "--tool=icount", "--"], directory),
                   Server("profile", [weir, "profile", "-q", "-o", f"{directory}/server.weir", "--"], directory)]
        print(f"{'minutes':>7} {'rounds':>8} {'server':8} {'memory KiB':>10} {'shared KiB':>10} {'fds':>6} {'ms':>8}")
        try:
            begin, sampled, rounds, expected = time.monotonic(), 0, 0, {}
            is_over = lambda: rounds >= options.rounds if options.rounds else time.monotonic() - begin > 60 * options.minutes
            is_due = lambda: rounds % max(1, options.rounds // 40) == 0 if options.rounds else time.monotonic() - sampled > min(30, options.minutes * 1.5)
            while not is_over():
                round_of(servers, expected, options)
                rounds += 1
                if is_due():
                    sampled = time.monotonic()
                    for server in servers:
                        server.sample()
                        show(server, (sampled - begin) / 60, rounds)
            bad = verdict(servers, options)
        finally:
            for server in servers:
                server.process.send_signal(signal.SIGTERM)
            for server in servers:
                server.process.wait(120)
    sys.exit(bad)


if __name__ == "__main__":
    main()
