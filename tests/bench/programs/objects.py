"""Pure Python: method calls, dictionaries, strings, generators, sorting, exceptions and floats."""
import sys


class Body:
    __slots__ = ("x", "v", "mass")

    def __init__(self, x, v, mass):
        self.x, self.v, self.mass = x, v, mass

    def pull(self, other, dt):
        distance = other.x - self.x or 1e-9
        self.v += other.mass * dt / (distance * abs(distance) + 1.0)

    def step(self, dt):
        self.x += self.v * dt


def simulate(steps):
    bodies = [Body(i * 1.5, 0.01 * i, 1.0 + i % 3) for i in range(12)]
    for _ in range(steps):
        for a in bodies:
            for b in bodies:
                if a is not b:
                    a.pull(b, 0.01)
        for b in bodies:
            b.step(0.01)
    return round(sum(b.x for b in bodies), 6)


def words(count):
    state, seen = 1, {}
    for _ in range(count):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        word = "".join(chr(97 + (state >> s) % 26) for s in (3, 8, 13))
        seen[word] = seen.get(word, 0) + 1
    return sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:5]


def queens(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    total, free = 0, (1 << n) - 1 & ~(columns | left | right)
    while free:
        bit = free & -free
        free ^= bit
        total += queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return total


def refusals(count):
    refused = 0
    for i in range(count):
        try:
            int("12a" if i % 3 == 0 else "12")
        except ValueError:
            refused += 1
    return refused


scale = float(sys.argv[1])
print(simulate(int(12_000 * scale)), words(int(900_000 * scale)), queens(8), refusals(int(1_200_000 * scale)))
