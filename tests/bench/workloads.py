"""The workloads: what is run, on inputs that are the same on every machine."""

import itertools
import pathlib
import random
import subprocess
from dataclasses import dataclass

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


@dataclass
class Workload:
    name: str
    what: str
    argv: list
    stdin: str = "/dev/null"


def text(words, seed=1):
    """Lines of invented words, frequent and rare as in a language: it compresses about as prose does."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er", "ing", "ol", "us")]
    vocabulary = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(8000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    stream = iter(rng.choices(vocabulary, weights, k=words))
    lines = []
    while line := list(itertools.islice(stream, 6 + rng.randrange(9))):
        lines.append(" ".join(line[:4]) + ", " + " ".join(line[4:]) + ".\n")
    return "".join(lines)


def c_source(functions):
    """A C file as a compiler meets it: structures, loops, switches, pointers, and calls of earlier functions."""
    rng = random.Random(2)
    out = ["typedef unsigned long u64;", "struct item { u64 key, value; struct item *next; int kind; char tag[12]; };"]
    for i in range(functions):
        callee = f"f{rng.randrange(i)}(p, n - 1)" if i else "n"
        constants = [rng.randrange(3, 999) for _ in range(4)]
        cases = "".join(
            f"      case {k}: sum {rng.choice(('+=', '^=', '-='))} p->value * {rng.randrange(2, 99)} + "
            f"(sum >> {k % 13 + 1});{rng.choice((' break;', ''))}\n"
            for k in range(rng.randrange(3, 12))
        )
        out.append(
            f"u64 f{i}(struct item *p, u64 n) {{\n"
            f"  u64 sum = {constants[0]}, a[8] = {{n, {constants[1]}}};\n"
            f"  for (u64 i = 0; p && i < n % {constants[2]}; i++, p = p->next) {{\n"
            f"    switch (p->kind) {{\n{cases}      default: a[i & 7] += p->key ^ p->tag[i % 12];\n    }}\n"
            f"    for (int j = 1; j < 8; j++) a[j] = a[j - 1] * {constants[3]} + a[j] / (p->key | 1);\n"
            f"    if (sum % {constants[1]} == 1) sum += {callee};\n"
            f"  }}\n  return sum + a[n & 7];\n}}\n"
        )
    return "\n".join(out)


def make(directory, scale):
    """Writes the inputs and compiles the programs into `directory`; returns the workloads. At scale 1 each takes a
    second or two."""

    def path(name):
        return str(directory / name)

    def write(name, content):
        (directory / name).write_text(content)
        return path(name)

    def build(source, *options):
        output = path(pathlib.Path(source).stem)
        compiler = "/usr/bin/g++" if source.endswith(".cc") else "/usr/bin/gcc"
        subprocess.run([compiler, "-O2", *options, str(PROGRAMS / source), "-o", output], check=True)
        return output

    def number(at_full_scale):
        return int(at_full_scale * scale)

    prose = write("prose.txt", text(number(2_600_000)))
    short = write("short.txt", text(number(320_000), seed=3))
    sql = write("orders.sql", (PROGRAMS / "orders.sql").read_text().replace("ROWS", str(number(260_000))))
    c_file = write("large.c", c_source(number(90)))
    cc1 = subprocess.run(["/usr/bin/gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True)
    (directory / "zeros").write_bytes(bytes(number(200_000_000)))
    openssl = (
        f"openssl dgst -sha3-256 {path('zeros')} && openssl prime {2 ** (2203 if scale >= 1 else 1279) - 1} && "
        f"openssl kdf -keylen 32 -kdfopt digest:SHA512 -kdfopt pass:weir -kdfopt salt:riverbed "
        f"-kdfopt iter:{number(800_000)} PBKDF2"
    )
    return [
        Workload("xz", "compresses prose", ["/usr/bin/xz", "-6", "-T1", "-c", short]),
        Workload("bzip2", "compresses prose", ["/usr/bin/bzip2", "-9", "-c", prose]),
        Workload("sqlite3", "inserts, indexes, joins", ["/usr/bin/sqlite3", ":memory:"], stdin=sql),
        Workload("python3", "pure Python", ["/usr/bin/python3", "-ISB", str(PROGRAMS / "objects.py"), str(scale)]),
        Workload("perl", "words of a text", ["/usr/bin/perl", str(PROGRAMS / "words.pl"), short, "5"]),
        Workload("cc1", "gcc's compiler at -O2", [cc1.stdout.strip(), "-quiet", "-O2", c_file, "-o", "-"]),
        Workload("openssl", "SHA-3, a large prime, PBKDF2", ["/bin/sh", "-c", openssl]),
        Workload("sort", "lines, as versions", ["/usr/bin/sort", "--parallel=1", "-S", "1G", "-V", prose]),
        Workload("fib", "recursive calls", [build("fib.c"), str(43 if scale >= 1 else 37)]),
        Workload("mix", "virtual calls, std::map, exceptions", [build("mix.cc", "-std=c++20"), str(number(150))]),
        Workload("threads", "a hash table, four threads", [build("threads.cc", "-std=c++20"), str(number(14_000_000))]),
    ]
