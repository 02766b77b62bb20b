"""What others say of a run: perf, callgrind and gcov. None of it asks Weir anything."""

import collections
import json
import re
import struct
import subprocess


# --- times


def processor_time(text):
    """Of `perf stat -x,` with task-clock, user_time and system_time: seconds."""
    found = {}
    for line in text.splitlines():
        value, unit, event, *_ = [*line.split(","), "", "", ""]
        if event.split(":")[0] in ("task-clock", "user_time", "system_time"):
            scale = 1e3 if unit == "msec" else 1e9
            found[event.split(":")[0]] = 0.0 if value.startswith("<") else float(value) / scale
    return found


def time_asleep(lines, threads):
    """Of `perf script -F tid,time,event,trace,ip,sym,dso` of the scheduler's switches on all processors, with stacks: seconds that these threads
    slept. Threads that wait for a processor do not sleep, and those that Weir's runtime lets wait do not wait for anything of the program's."""
    asleep, time, away = 0.0, 0.0, {}  # away: thread -> since when it sleeps, and whether that is known to be the program's doing
    wanted = None  # a thread whose stack is being read, up to the innermost place of the program
    for line in lines:
        if m := re.match(r"\s*\d+\s+([0-9.]+): sched:sched_switch: .*prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)", line):
            time, leaves, state, comes = float(m[1]), int(m[2]), m[3], int(m[4])
            if comes in away:
                asleep += time - away.pop(comes)
            wanted = leaves if leaves in threads and state[0] in "SDI" else None
            if wanted:
                away[wanted] = time
        elif wanted and line.strip() and int(line.split()[0], 16) < 1 << 47:
            if "/memfd:weir-runtime" in line:
                del away[wanted]
            wanted = None
    return asleep + sum(time - since for since in away.values())


def part_in_kernel(lines):
    """Of `perf script -F ip`, without stacks: how many of the samples were taken in the kernel."""
    places = [int(line, 16) for line in lines if line.strip()]
    return sum(place >> 47 != 0 for place in places) / len(places)


# --- places


class Segments:
    """From an offset in an ELF file to the address that the file has for it."""

    def __init__(self, path):
        self.loads = []
        try:
            with open(path, "rb") as file:
                head = file.read(64)
                if head[:5] != b"\x7fELF\x02":
                    return
                begin, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
                file.seek(begin)
                table = file.read(size * count)
        except OSError:
            return
        for i in range(count):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", table, i * size)
            if kind == 1:
                self.loads.append((offset, length, address))

    def address(self, offset):
        return next((offset - begin + address for begin, length, address in self.loads if begin <= offset < begin + length), None)


def samples(lines):
    """Of `perf script -F pid,ip,sym,dso`: (image, address) -> samples, by the innermost place of the program (what the kernel did then, it
    did for it). Perf tells a place by its offset in the file."""
    found, segments, image = collections.Counter(), {}, None
    for line in lines:
        if m := re.match(r"\s+([0-9a-f]+) .*\((.*)\)$", line):
            place = int(m[1], 16)
            if image or place >= 1 << 47:
                continue
            image = m[2]
            if image.startswith("/"):
                if image not in segments:
                    segments[image] = Segments(image)
                place = segments[image].address(place)
            found[image, place] += 1
        elif line.strip():
            image = None
        elif image is None:
            found["kernel", 0] += 1
    return found


# --- counts


def calls_by_callgrind(lines):
    """Of a callgrind file with --dump-instr=yes and without compression: (image, address of the callee) -> calls."""
    calls, image, callee = collections.Counter(), None, None
    for line in lines:
        if line.startswith("ob="):
            image = line[3:].strip()
        elif line.startswith("cob="):
            callee = line[4:].strip()
        elif m := re.match(r"calls=(\d+) (0x[0-9a-f]+)", line):
            calls[callee or image, int(m[2], 16)] += int(m[1])
            callee = None
    return calls


PLAIN = ["-std=c++20", "-O0", "-w"]


def lines_by_gcov(directory, source):
    """The program built without optimization and with counters: (file, line) -> count."""
    there = {"cwd": directory, "check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    stem = source.rpartition(".")[0]
    (directory / f"covered-{stem}.gcda").unlink(missing_ok=True)  # (a second run would be added to it)
    subprocess.run(["g++", *PLAIN, "--coverage", source, "-o", "covered"], **there)
    subprocess.run(["./covered"], **there)
    said = subprocess.run(["gcov", "--json-format", "--stdout", f"covered-{stem}.gcda"], cwd=directory, check=True, capture_output=True, text=True)
    counts = collections.Counter()
    for file in json.loads(said.stdout)["files"]:
        for line in file["lines"]:
            counts[file["file"], line["line_number"]] += line["count"]
    return counts
