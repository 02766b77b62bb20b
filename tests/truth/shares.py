"""Do two profiles of known_shares agree within sampling error?

  shares.py SAMPLED.weir EXACT.weir|PERF_SCRIPT.txt

Cells are the self and the inclusive shares of the twenty functions that take most, and those of the ten call paths that take most.
Each has a z-test: against the exact share (one sample), or against perf's (two samples, pooled); the self shares of all
functions together have a chi-square test. Level: all tests together reject a sampler that is right once in a million runs
(Bonferroni). That is for independent samples; those of a period vary less, as long as the program has none (known_shares.c).

The test can fail, and shows it: with the same samples, expectations that are somewhat wrong must be rejected, each of them.
"""

import collections
import math
import re
import sqlite3
import statistics
import sys

LEVEL = 1e-6
FUNCTIONS, PATHS = 20, 10
TOP = "rounds"  # paths begin there: what is around it has no time, and differs from thread to thread


def chi_square_tail(x, freedom):
    """The probability of x or more."""
    q, term, k = (0, math.exp(-x / 2), 2) if freedom % 2 == 0 else (math.erfc(math.sqrt(x / 2)), math.sqrt(2 * x / math.pi) * math.exp(-x / 2), 3)
    while k <= freedom:
        q, term, k = q + term, term * x / k, k + 2
    return q


def paths_of_store(name):
    """Call path, from TOP inward -> its own cycles, or samples."""
    rows = sqlite3.connect(name).execute("SELECT c.id, c.parent, n.text, c.self FROM context c JOIN function f ON f.id = c.function "
                                         "JOIN string n ON n.id = f.name ORDER BY c.id")  # fmt: skip
    names, paths = {}, collections.Counter()
    for context, parent, function, own in rows:
        names[context] = (*names.get(parent, ()), function)
        paths[names[context]] += own
    return paths


def paths_of_perf(name):
    """From `perf script -F ip,sym`: samples, the innermost frame first, with an empty line behind each. What the kernel does meanwhile
    (interrupts) is time of the function that it interrupts, as it is for a signal handler."""
    paths = collections.Counter()
    for sample in open(name).read().split("\n\n"):
        frames = [m[2] for m in re.finditer(r"^\s*([0-9a-f]+) (\S+)", sample, re.MULTILINE) if int(m[1], 16) < 1 << 47]
        if frames:
            paths[tuple(reversed(frames))] += 1
    return paths


def inside(paths):
    """Only what happens in TOP; the share of the rest is the second result."""
    found = collections.Counter()
    for path, n in paths.items():
        if TOP in path:
            found[path[path.index(TOP):]] += n
    return found, 1 - found.total() / paths.total()


class Cells:
    """What is compared: name -> cycles or samples."""

    def __init__(self, paths):
        self.total = paths.total()
        self.own, self.inclusive, self.path, self.below = (collections.Counter() for _ in range(4))
        for path, n in paths.items():
            self.own[path[-1]] += n
            self.path[path] += n
            for function in set(path):
                self.inclusive[function] += n
            for i in range(1, len(path) + 1):
                self.below[path[:i]] += n

    def of(self, cell):
        kind, name = cell
        return getattr(self, kind)[name]


def chosen(truth):
    """By the reference alone."""
    def top(kind, n):
        return [(kind, name) for name, _ in getattr(truth, kind).most_common(n)]
    inclusive = [c for c in top("inclusive", FUNCTIONS + 1) if c[1] != TOP]  # (that is all of it)
    return top("own", FUNCTIONS) + inclusive + top("path", PATHS) + [c for c in top("below", PATHS + 1) if c[1] != (TOP,)]


def critical_z(cells):
    return statistics.NormalDist().inv_cdf(1 - LEVEL / 2 / (len(cells) + 1))


def z_of(share, n, expected, other_n):
    """other_n: of how many samples `expected` is a share; None: it is exact."""
    p = expected if other_n is None else (share * n + expected * other_n) / (n + other_n)
    variance = p * (1 - p) * (1 / n + (1 / other_n if other_n else 0))
    return (share - expected) / math.sqrt(variance) if variance > 0 else (0 if share == expected else math.inf)


def chi_square(samples, truth, is_exact):
    """Over the self shares of all functions, the small ones together: p, the statistic, its degrees of freedom."""
    n, m, rest, cells = samples.total, truth.total, [0, 0.0], []
    for function in truth.own.keys() | samples.own.keys():
        seen, expected = samples.own[function], truth.own[function] / m * n
        if expected >= 10:
            cells.append((seen, expected))
        else:
            rest = [rest[0] + seen, rest[1] + expected]
    if rest[1] >= 10:
        cells.append(rest)
    # Exact: Pearson's. Two samples: the test of homogeneity; seen - expected has the variance of both, of shares that are estimated from both.
    variance = (lambda seen, expected: expected) if is_exact else (lambda seen, expected: (seen + expected * m / n) / (n + m) * n * (1 + n / m))
    x = sum((seen - expected) ** 2 / variance(seen, expected) for seen, expected in cells)
    return chi_square_tail(x, len(cells) - 1), x, len(cells) - 1


def judge(samples, truth, cells, is_exact, title, is_shown=False):
    """Whether the samples may come from `truth`."""
    critical, worst = critical_z(cells), 0
    for cell in cells:
        kind, name = cell
        expected, share = truth.of(cell) / truth.total, samples.of(cell) / samples.total
        z = z_of(share, samples.total, expected, None if is_exact else truth.total)
        worst = max(worst, abs(z))
        if is_shown:
            path = name if isinstance(name, str) else ";".join(name)
            print(f"{kind:9} {100 * expected:6.2f} % expected, {100 * share:6.2f} % sampled, z {z:+5.2f}  {path}")
    p, x, freedom = chi_square(samples, truth, is_exact)
    agree = worst < critical and p > LEVEL / (len(cells) + 1)
    print(f"{title}: largest |z| {worst:.2f} (allowed {critical:.2f}); chi-square {x:.1f}, {freedom} degrees of freedom, p {p:.2g}: "
          + ("agree" if agree else "rejected"))  # fmt: skip
    return agree


# ---- Controls: expectations that are wrong -------------------------------------------------------------------------------
def swapped(paths, a, b):
    other = {a: b, b: a}
    return collections.Counter({tuple(other.get(f, f) for f in path): n for path, n in paths.items()})


def scaled(paths, function, factor):
    return collections.Counter({path: n * (factor if path[-1] == function else 1) for path, n in paths.items()})


def another_caller(paths, function, caller, wrong):
    """All of `function` that `caller` has called is said to be of `wrong`: an error of callers alone."""
    moved = collections.Counter()
    for path, n in paths.items():
        i = next((i for i in range(1, len(path)) if path[i - 1 : i + 1] == (caller, function)), None)
        moved[path if i is None else (*path[: i - 1], wrong, *path[i:])] += n
    return moved


def smallest_error(samples, truth, cells, is_exact, function):
    """A factor that must be found out, unless chance is 5 standard deviations against it."""
    share, factor = truth.own[function] / truth.total, 1.0
    while True:
        factor += 0.05
        wrong = share * factor / (1 + share * (factor - 1))
        if abs(z_of(share, samples.total, wrong, None if is_exact else truth.total)) > critical_z(cells) + 5:
            return factor


def main():
    sampled, reference = sys.argv[1:]
    is_exact = reference.endswith(".weir")
    ours, outside = inside(paths_of_store(sampled))
    theirs, others = inside((paths_of_store if is_exact else paths_of_perf)(reference))
    samples, truth = Cells(ours), Cells(theirs)
    cells = chosen(truth)
    print(f"{samples.total} samples, {len(cells)} cells; outside of {TOP}: {100 * outside:.2f} %, of the reference {100 * others:.2f} %")
    is_good = outside < 0.02 and judge(samples, truth, cells, is_exact, "sampled and reference", is_shown=True)
    factor = smallest_error(samples, truth, cells, is_exact, "leaf_l")
    controls = {
        "wrong: leaf_l and leaf_f change places": swapped(theirs, "leaf_l", "leaf_f"),
        f"wrong: leaf_l takes {factor:.2f} times as long": scaled(theirs, "leaf_l", factor),
        "wrong: middle_c, not middle_a, calls inner_a": another_caller(theirs, "inner_a", "middle_a", "middle_c"),
    }
    for title, paths in controls.items():
        is_good &= not judge(samples, Cells(paths), cells, is_exact, title)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
