"""Why a figure deviates by more than 5 %: of one program, or of all."""

MODEL = "cycles of a model with warm caches and right predictions: here memory, or what waits for a result, decides"
SWITCHES = ("at each switch of threads the kernel stops and starts the thread's events and sets a timer, which a virtual machine pays for: "
            "perf record adds 30 to 45 % to memcached at the same rate")  # fmt: skip

SHORT = "processes that run for some milliseconds: what they do before their first sample and behind their last, of 2 ms each, is in none; the profile says how much"

REASONS = {
    ("make", "processor"): SHORT,
    ("postgres", "processor"): "not looked into; a process for each connection, and some that end at once: perhaps as with make",
    ("memcached", "OS work"): "0.7 µs for each of 147,000 calls: perhaps the way into the kernel and out, and the look at the clocks; not taken apart",
    "exact": MODEL,
    "disturbed": SWITCHES,
    "OS work": "not looked into: hundredths of a second; Weir times a call from before it to behind it, perf counts samples in the kernel",
    "lines of -O3": "the optimizer's program beside one without: lines are merged, unrolled, made of vectors; which of these was not looked at, line by line",
    "lines of -O0": "gcov's program has a counter for each arm: without it a label, a jump or an empty constructor has no instruction (126 of the 159 "
                    "lines); and gcov counts a line twice on which a call goes on with its arguments (23)",  # fmt: skip
}
