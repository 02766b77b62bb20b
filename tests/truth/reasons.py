"""Why a figure deviates by more than 5 %: of one program, or of all."""

MODEL = "cycles of a model with warm caches and right predictions: here memory, or what waits for a result, decides"
SWITCHES = ("at each switch of threads the kernel stops and starts the thread's events and sets a timer, which a virtual machine pays for: "
            "perf record adds 30 to 45 % to memcached at the same rate")  # fmt: skip

SHORT = "processes that run for some milliseconds: what they do before their first sample and behind their last, of 2 ms each, is in none; the profile says how much"

REASONS = {
    ("make", "processor"): SHORT,
    ("postgres", "processor"): SHORT,
    ("memcached", "OS work"): "147,000 calls: of each the way into the kernel and out, and the look at the clocks, is in Weir's figure: 0.7 µs a call",
    "exact": MODEL,
    "disturbed": SWITCHES,
    "OS work": "a tenth of a second or so: natively, too, runs differ by as much; the way into the kernel and back is in Weir's figure, and not in perf's",
    "lines of -O3": "vector instructions, conditional moves, hoisted and unrolled code: what the optimizer has left of a line runs as often",
    "lines of -O0": "gcov's program has a counter for each arm: without it a label, a jump or an empty constructor has no instruction (126 of the 159 "
                    "lines); and gcov counts a line twice on which a call goes on with its arguments (23)",  # fmt: skip
}
