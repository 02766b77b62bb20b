#!/usr/bin/env python3
"""Random programs under `weir profile`, compared with an interpreter that knows what each of their calls takes: by instructions and by
cycles, with the clock in a register and in memory, and with call paths. Everything is compared: calls, self times with their extremes and
totals of functions and of call sites, and the counts of blocks; and `weir report --check` agrees."""
import argparse, bisect, os, sqlite3, subprocess, sys, tempfile

from control_flow import START, Program, Run

MODES = [("register", "instructions", []), ("memory", "instructions", []), ("register", "cycles", []), ("memory", "cycles", []),
         ("register", "instructions", ["--paths=full"])]


def build(program, directory):
    """Returns the addresses of labels; of the pieces' labels the file knows nothing."""
    source, path = f"{directory}/p.S", f"{directory}/p"
    with open(source, "w") as out:
        out.write(program.assembly())
    subprocess.run(["gcc", "-nostdlib", "-static", "-no-pie", "-o", path, source], check=True)
    lines = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout.split("\n")
    addresses = {fields[2]: int(fields[0], 16) for fields in map(str.split, lines) if len(fields) == 3}
    subprocess.run(["objcopy", "-w", "-N", "p_*", "-N", "c_*", "-N", "t_*", path], check=True)
    return addresses


class Profile:
    def __init__(self, path, addresses):
        db = sqlite3.connect(path)
        ask = lambda sql: db.execute(sql).fetchall()
        self.functions = {row[0]: row[1:] for row in ask("SELECT name, calls, self, total, self_min, self_max FROM function_total WHERE calls OR self")}
        name = {address: label for label, address in addresses.items() if label.startswith("c_")}
        self.calls = {(START if kind == "start" else name.get(offset, hex(offset)), callee): row for kind, offset, callee, *row in ask(
            "SELECT s.kind, s.offset, n.text, c.calls, c.total, c.self_min, c.self_max FROM call_count c JOIN site s ON s.id = c.site "
            "JOIN function f ON f.id = c.callee JOIN string n ON n.id = f.name WHERE c.calls OR c.total")}
        self.blocks = ask("SELECT b.offset, b.offset + length(b.bytes), b.cycles, coalesce(c.count, 0), coalesce(c.extra, 0) FROM block b "
                          "LEFT JOIN block_count c ON c.block = b.id ORDER BY b.offset")
        self.instructions, self.cycles = ask("SELECT sum(instructions), sum(cycles) FROM thread")[0]
        self.is_plain = not any(extra for *_, extra in self.blocks)  # no block was also entered in its middle, where it costs more


def compare(program, addresses, profile, clock):
    """Yields what is wrong."""
    begins = [b[0] for b in profile.blocks]
    cost = {label: len(p.lines) for label, p in program.pieces.items()}
    if clock == "cycles":
        # A block is costed as a whole, where it begins; the next piece may be a part of it.
        order = sorted(addresses[label] for label in program.pieces)
        end = dict(zip(order, [*order[1:], 1 << 64]))
        for label in cost:
            at = addresses[label]
            cost[label] = sum(cycles for begin, _, cycles, _, _ in profile.blocks[bisect.bisect_left(begins, at):] if begin < end[at])
    run = Run(program, cost)
    for label, count in run.counts.items():
        at = addresses[label]
        seen = sum(n for begin, behind, _, n, _ in profile.blocks[:bisect.bisect_right(begins, at)] if at < behind)
        if seen != count:
            yield f"block {label}: {seen} times, not {count}"
    for key in sorted({*run.calls, *profile.calls}):
        expected, seen = tuple(run.calls[key]), tuple(profile.calls.get(key, (0, 0, None, None)))
        if seen != expected:
            yield f"calls of {key[1]} from {key[0]}: (calls, total, least, most) {seen}, not {expected}"
    for name in sorted({*run.self, *profile.functions}):
        of_calls = [c for (_, callee), c in run.calls.items() if callee == name and c.calls]
        expected = (sum(c.calls for c in of_calls), run.self[name], sum(c.total for c in of_calls),
                    min((c.least for c in of_calls), default=None), max((c.most for c in of_calls), default=None))
        if profile.functions.get(name) != expected:
            yield f"{name}: (calls, self, total, least, most) {profile.functions.get(name)}, not {expected}"
    if profile.cycles != run.clock:
        yield f"the thread: {profile.cycles}, not {run.clock}"


def check(weir, program, addresses, directory, mode):
    where, clock, options = mode
    environment = {**os.environ, **({"WEIR_CLOCK": "memory"} if where == "memory" else {})}
    path = f"{directory}/run.weir"
    command = [weir, "profile", "-q", f"--clock={clock}", *options, "-o", path, "--", f"{directory}/p"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if done.returncode:
        return [f"status {done.returncode}: {done.stderr[:500]}"]
    profile = Profile(path, addresses)
    wrong = list(compare(program, addresses, profile, clock)) if clock == "instructions" or profile.is_plain else []
    done = subprocess.run([weir, "report", "--check", path], capture_output=True, text=True, timeout=60)
    return wrong + ([] if done.returncode == 0 else [f"weir report --check: {done.stdout}{done.stderr}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--keep", help="a directory where the last program stays")
    options = parser.parse_args()
    weir, faults = os.path.abspath(options.weir), 0
    with tempfile.TemporaryDirectory(prefix="weir-profiles.") as directory:
        directory = options.keep or directory
        for seed in range(options.seed, options.seed + options.count):
            program = Program(seed)
            addresses = build(program, directory)
            for mode in MODES:
                wrong = check(weir, program, addresses, directory, mode)
                faults += bool(wrong)
                if wrong:
                    print(f"--seed {seed} {' '.join(mode[:2] + tuple(mode[2]))}:", *wrong[:12], sep="\n  ", flush=True)
    print(f"{options.count} programs in {len(MODES)} ways: {faults} profiles are wrong")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
