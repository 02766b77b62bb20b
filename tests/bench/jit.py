#!/usr/bin/env python3
"""Programs that write their own code, node and java: their time under Weir as multiples of native. What they print must be the same."""
import argparse, os, resource, shutil, statistics, subprocess, sys, tempfile, time

NODE = """
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
class Point { constructor(x, y) { this.x = x; this.y = y; } add(o) { return new Point(this.x + o.x, this.y + o.y); } }
let p = new Point(0, 0); for (let i = 0; i < SCALE * 1e6; i++) p = p.add(new Point(i & 7, 1));
const m = new Map(); for (let i = 0; i < SCALE * 2e5; i++) m.set('k' + i % 5003, (m.get('k' + i % 5003) || 0) + i);
const text = JSON.stringify([...m]); let words = 0; for (let i = 0; i < SCALE * 3; i++) words += JSON.parse(text).length + text.replace(/\\d+/g, d => d.length).length;
const a = new Float64Array(100000).map((_, i) => (i * 7919) % 100003); a.sort();
console.log(fib(24 + SCALE), p.x, p.y, m.size, words, a[500]);
"""
JAVA = """
import java.util.*; import java.util.stream.*;
public class Mix {
  interface Shape { double area(); }
  record Square(double a) implements Shape { public double area() { return a * a; } }
  record Circle(double r) implements Shape { public double area() { return 3 * r * r; } }
  static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] args) throws Exception {
    int scale = Integer.parseInt(args[0]); long[] sums = new long[4]; Thread[] threads = new Thread[4];
    for (int t = 0; t < 4; t++) { int k = t; threads[t] = new Thread(() -> { Map<String, Integer> m = new HashMap<>(); for (int i = 0; i < scale * 50000; i++) m.merge("k" + i % 997, i * k, Integer::sum); sums[k] = m.values().stream().mapToLong(v -> v).sum(); }); threads[t].start(); }
    for (Thread t : threads) t.join();
    List<Shape> shapes = IntStream.range(0, 100000).mapToObj(i -> i % 3 == 0 ? (Shape) new Square(i % 10) : new Circle(i % 7)).toList();
    double area = 0; for (int i = 0; i < scale * 20; i++) for (Shape s : shapes) area += s.area();
    StringBuilder b = new StringBuilder(); for (int i = 0; i < scale * 100000; i++) { b.append(i % 10); if (b.length() > 1000) b.setLength(0); }
    System.out.println(fib(28 + scale) + " " + Arrays.toString(sums) + " " + area + " " + b.length());
  }
}
"""


def clock(which):
    if which == "wall":
        return time.monotonic()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds_of(command, which):
    begin = clock(which)
    done = subprocess.run(command, capture_output=True, timeout=900)
    return clock(which) - begin, (done.returncode, done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: of the program and of Weir together, where others use the machine, too")
    options = parser.parse_args()
    weir = os.path.abspath(options.weir)
    with tempfile.TemporaryDirectory(prefix="weir-jit.") as d:
        programs = {}
        if shutil.which("node"):
            for name, scale in (("node, short", 1), ("node, long", 8)):
                with open(f"{d}/{scale}.js", "w") as out:
                    out.write(NODE.replace("SCALE", str(scale)))
                programs[name] = ["node", f"{d}/{scale}.js"]
        if shutil.which("javac"):
            with open(f"{d}/Mix.java", "w") as out:
                out.write(JAVA)
            subprocess.run(["javac", "-d", d, f"{d}/Mix.java"], check=True)
            for name, scale in (("java, short", 1), ("java, long", 8)):
                programs[name] = ["java", "-cp", d, "Mix", str(scale)]
        ways = {"native": [], "weir run": [weir, "run", "-q", "--"], "icount": [weir, "run", "-q", "--tool=icount", "--"],
                "profile": [weir, "profile", "-q", "-o", f"{d}/p.weir", "--"]}
        print("| | native, s | " + " | ".join(w for w in ways if w != "native") + " |\n|---|" + "---|" * len(ways))
        for name, program in programs.items():
            times, outputs = {w: [] for w in ways}, set()
            for _ in range(options.runs):
                for way, prefix in ways.items():
                    seconds, output = seconds_of([*prefix, *program], options.clock)
                    times[way].append(seconds)
                    outputs.add(output)
            if len(outputs) != 1:
                sys.exit(f"{name}: the outputs differ: {outputs}")
            native = statistics.median(times.pop("native"))
            print(f"| {name} | {native:.2f} | " + " | ".join(f"{statistics.median(t) / native:.1f}" for t in times.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
