"""The ten programs of `./dev truth`, and what they work on: made here, the same everywhere.

Each runs for half a second to two natively. A server has a `drive`: who uses it, and ends it."""

import concurrent.futures
import dataclasses
import os
import pathlib
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable

SEED = 20


@dataclasses.dataclass
class Program:
    name: str
    what: str
    packages: list[str]
    command: list[str]
    stdin: str = "/dev/null"
    has_one_thread: bool = False  # and one process, and the same calls in every run: callgrind can be asked
    source: str = ""  # of lines that gcov counts
    drive: Callable[[pathlib.Path, subprocess.Popen], None] | None = None


def text_lines(number, words=12):
    chance = random.Random(SEED)
    vocabulary = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(20000)]
    for _ in range(number):
        yield " ".join(chance.choices(vocabulary, k=words))


def wait_until(is_ready, seconds=60):
    end = time.monotonic() + seconds
    while not is_ready():
        if time.monotonic() > end:
            raise TimeoutError("the server does not answer")
        time.sleep(0.02)


# --- a threaded server

CLIENTS, REQUESTS, IDLE = 4, 12000, 1.0


def ask_memcached(path, number):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        replies = connection.makefile("rb")
        for i in range(REQUESTS):
            key, value = f"k{number}.{i % 997}", b"v" * (10 + i % 500)
            connection.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key.encode(), len(value), value, key.encode()))
            for _ in range(4):  # STORED, VALUE, the value, END
                replies.readline()


def answers(path):
    """(The file of a server that has ended may still be there.)"""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


def drive_memcached(directory, process):
    """Requests of four clients, and a second without any."""
    wait_until(lambda: answers(directory / "memcached"))
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda n: ask_memcached(directory / "memcached", n), range(CLIENTS)))
    time.sleep(IDLE)
    os.kill(int((directory / "memcached.pid").read_text()), signal.SIGTERM)


# --- a database server, a process for each connection

TRANSACTIONS = 1500
POSTGRES_USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def postgres_directory():
    return max(pathlib.Path("/usr/lib/postgresql").glob("*"), key=lambda p: int(p.name)) / "bin"


def make_cluster(directory):
    data = directory / "data"
    if (data / "base").is_dir():
        return
    data.mkdir()
    subprocess.run(["chown", "postgres", str(data)], check=True)
    initdb = [*POSTGRES_USER, str(postgres_directory() / "initdb"), "-D", str(data), "-N", "--no-locale"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def drive_postgres(directory, process):
    """The tables of pgbench, and its transactions, with random numbers that are the same in each run."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    wait_until(lambda: subprocess.run(["pg_isready", "-q", "-h", str(directory / "data")]).returncode == 0)
    pgbench = [*POSTGRES_USER, "pgbench", "-h", str(directory / "data")]
    subprocess.run([*pgbench, "-i", "-q", "-s", "2", "postgres"], check=True, **quiet)
    subprocess.run([*pgbench, "-n", "-c", "1", "-t", str(TRANSACTIONS), "--random-seed=7", "postgres"], check=True, **quiet)
    os.kill(int((directory / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGINT)


# --- files

NODE = r"""
const people = [];
let seed = 1;
const next = () => (seed = (seed * 1664525 + 1013904223) >>> 0);
for (let i = 0; i < 40000; i++) people.push({ id: i, name: 'n' + (next() % 5000), tags: [next() % 7, next() % 11], score: next() / 2 ** 32 });
let total = 0;
for (let round = 0; round < 20; round++) {
  const copy = JSON.parse(JSON.stringify(people));
  const byName = new Map();
  for (const p of copy) byName.set(p.name, (byName.get(p.name) ?? 0) + p.score);
  total += [...byName].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0][1];
  total += copy.filter((p) => /^n1\d*7$/.test(p.name)).length;
}
console.log(total.toFixed(6));
"""

PYTHON = r"""
import collections, heapq, re
words = collections.Counter()
for line in open('text'):
    for word in re.findall(r'[a-z]+', line):
        words[word] += 1
graph = {w: sorted(words)[i % 97::97][:8] for i, w in enumerate(sorted(words)[:400])}
def shortest(start):
    seen, queue = {}, [(0, start)]
    while queue:
        cost, at = heapq.heappop(queue)
        if at in seen: continue
        seen[at] = cost
        for to in graph.get(at, ()): heapq.heappush(queue, (cost + words[to] % 13 + 1, to))
    return len(seen), sum(seen.values())
print(sum(shortest(w)[1] for w in sorted(graph)), words.most_common(3))
"""

SQL = """
create table words(id integer primary key, word text, n integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000)
  insert into words select i, hex(i * 7919 % 30011), i * 31 % 1009 from n;
create index by_word on words(word);
select count(*), sum(n) from words;
select count(*), sum(a.n * b.n) from words a join words b on a.word = b.word where a.id < 40000;
select word, count(*) c, avg(n) from words group by word order by c desc, word limit 5;
select count(*) from words where word like '%7A%' or n between 3 and 99;
"""

# (The code that is measured is that of nlohmann-json, in headers: 25,000 lines of templates.)
CPP = r"""
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
using nlohmann::json;
int main() {
  unsigned seed = 1;
  auto next = [&] { return seed = seed * 1664525u + 1013904223u; };
  json people = json::array();
  for (int i = 0; i < 6000; i++)
    people.push_back({{"id", i}, {"name", "n" + std::to_string(next() % 5000)}, {"tags", {next() % 7, next() % 11}}, {"score", (next() >> 8) / 1024.0}, {"none", nullptr}});
  double total = 0;
  for (int round = 0; round < 60; round++) {
    std::string text = people.dump(round % 8);
    json copy = json::parse(text);
    for (auto& p : copy) total += p["score"].get<double>() + p.at("tags")[1].get<int>() + (p == people[0]);
    for (auto& [key, value] : copy[round % 8].items()) total += key.size() + value.size();
    total += json::from_cbor(json::to_cbor(copy)).size();
  }
  std::printf("%.3f\n", total);
}
"""

MAKE = """objects = $(foreach n,1 2 3 4 5 6 7 8 9 10 11 12,work$(n).o)
work: $(objects)
\t@cc -o $@ $(objects)
%.o: %.c
\t@cc -O2 -c $<
"""

C_FILE = r"""
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node%(n)d { struct node%(n)d *left, *right; unsigned key; };
static struct node%(n)d *insert(struct node%(n)d *n, unsigned key) {
  if (!n) { n = calloc(1, sizeof *n); n->key = key; return n; }
  if (key < n->key) n->left = insert(n->left, key); else if (key > n->key) n->right = insert(n->right, key);
  return n;
}
static double area(int kind, double x) { switch (kind) { case 0: return x; case 1: return x * x; case 2: return 3 * x; default: return 0; } }
double work%(n)d(unsigned seed) {
  struct node%(n)d *root = NULL; double total = 0; char text[64];
  for (int i = 0; i < 2000; i++) seed = seed * 1664525u + 1013904223u, root = insert(root, seed >> 8), total += area(seed >> 30, i);
  snprintf(text, sizeof text, "%%.3f", total);
  for (char *p = text; *p; p++) *p = toupper(*p);
  return strtod(text, NULL);
}
%(rest)s
"""


def make_files(directory):
    """All that the programs read; made once."""
    if (directory / "made").exists():
        return
    (directory / "text").write_text("\n".join(text_lines(60000)) + "\n")
    (directory / "lines").write_text("\n".join(text_lines(600000)) + "\n")
    for name, content in (("work.js", NODE), ("work.py", PYTHON), ("work.sql", SQL), ("json.cc", CPP), ("Makefile", MAKE)):
        (directory / name).write_text(content)
    for n in range(1, 13):
        others = [f"double work{k}(unsigned);" for k in range(1, 13)]
        rest = "\n".join(others) + "\nint main(void) { double sum = 0; " + " ".join(f"sum += work{k}({k});" for k in range(1, 13)) + ' printf("%.3f\\n", sum); }' if n == 1 else ""
        (directory / f"work{n}.c").write_text(C_FILE % {"n": n, "rest": rest})
    (directory / "made").touch()


def build_cpp(directory):
    if not (directory / "json").exists():
        subprocess.run(["g++", "-std=c++20", "-O3", "-g", "-w", "json.cc", "-o", "json"], cwd=directory, check=True)


def build_lmdb(directory):
    if (directory / "lmdb").is_dir():
        return
    (directory / "lmdb").mkdir()
    chance = random.Random(SEED)
    pairs = "".join(f" k{i:07d}\n {chance.getrandbits(4 * 400):0400x}\n" for i in range(600000))
    dump = f"VERSION=3\nformat=print\ntype=btree\nmapsize=1073741824\nmaxreaders=126\nHEADER=END\n{pairs}DATA=END\n"
    subprocess.run(["mdb_load", "lmdb"], cwd=directory, input=dump.encode(), check=True)


def programs(directory):
    """Those of the table; `directory` is where they run."""
    d = str(directory)
    memcached = ["/usr/bin/memcached", "-u", "root", "-s", f"{d}/memcached", "-P", f"{d}/memcached.pid", "-t", "4"]
    postgres = [*POSTGRES_USER, str(postgres_directory() / "postgres") if pathlib.Path("/usr/lib/postgresql").is_dir() else "postgres",
                "-D", f"{d}/data", "-k", f"{d}/data", "-c", "listen_addresses=", "-c", "fsync=off"]
    return [
        Program("memcached", "a server with threads: four clients, and a second without any", ["memcached"], memcached, drive=drive_memcached),
        Program("node", "JSON, maps, sorting, regular expressions", ["nodejs"], ["node", "--perf-basic-prof", "work.js"]),
        Program("json", "C++ at -O3: the templates of nlohmann-json", ["g++", "nlohmann-json3-dev"], [f"{d}/json"], has_one_thread=True, source="json.cc"),
        Program("ripgrep", "Rust: a regular expression over a text", ["ripgrep"], ["rg", "-j1", "--no-mmap", "-c", r"\w*(ab|cd)\w* \w+x\b", *["lines"] * 8]),
        Program("make", "twelve compilers, assemblers and a linker, one after the other", ["make", "gcc"], ["make", "-B"]),
        Program("sort", "1,200,000 lines by their third word", [], ["sort", "--parallel=1", "-k", "3", "lines", "lines"], has_one_thread=True),
        Program("sqlite3", "inserts, an index, joins and groups", ["sqlite3"], ["sqlite3", ":memory:"], stdin="work.sql", has_one_thread=True),
        Program("postgres", "pgbench, one client: a process a connection", ["postgresql"], postgres, drive=drive_postgres),
        Program("python3", "words of a text, and shortest ways", ["python3"], ["/usr/bin/python3", "-S", "work.py"], has_one_thread=True),
        Program("lmdb", "a memory-mapped database of 300 MB, dumped", ["lmdb-utils"], ["mdb_dump", "-p", "lmdb"], has_one_thread=True),
    ]


def prepare(directory, names):
    """What these programs need to have built or made."""
    make_files(directory)
    for name, make in (("json", build_cpp), ("postgres", make_cluster), ("lmdb", build_lmdb)):
        if name in names:
            make(directory)
