"""The programs of `./dev bench jit`: name → what it needs, and how it is run. Each prints something that is the same in every run."""
import shutil, subprocess

LISP = """
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(print (fib 25))
(let ((h (make-hash-table))) (dotimes (i 100000) (incf (gethash (mod i 997) h 0) i)) (print (gethash 5 h)))
"""
SCHEME = """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display (fib 25)) (newline)
(let loop ((i 0) (l '())) (if (< i 100000) (loop (+ i 1) (cons i l)) (begin (display (apply + l)) (newline))))
"""
ERLANG = """F = fun(G, N) -> if N < 2 -> N; true -> G(G, N - 1) + G(G, N - 2) end end,
io:format("~p ~p~n", [F(F, 15), lists:sum(lists:map(fun(X) -> X * X rem 7 end, lists:seq(1, 100000)))]), halt()."""
LUA = """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t = {} for i = 1, 2000000 do t[i % 1000] = (t[i % 1000] or 0) + i end
print(fib(30), t[7])
"""
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
PAGE = """<html><body><p id=x></p><script>
function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
document.getElementById('x').textContent = 'fib ' + f(22);
for (let i = 0; i < 50; i++) { const e = document.createElement('div'); e.textContent = 'row ' + i; document.body.appendChild(e); }
</script></body></html>
"""
CPP = """
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
int main() {
  std::map<std::string, std::vector<int>> m;
  for (int i = 0; i < 10; i++) m[std::to_string(i % 3)].push_back(i);
  for (auto& [k, v] : m) std::sort(v.rbegin(), v.rend()), std::cout << k << v.front() << std::endl;
}
"""
# Those that the bars are about: when archives are warm, and in a first run.
WARM = ("chromium", "sbcl", "guile", "erlang", "chez", "maxima", "npm", "node", "luajit")
COLD = ("php", "swipl", "numpy", "clang++", "qemu")


def write(path, text):
    with open(path, "w") as out:
        out.write(text)
    return path


def programs(d):
    """name → command, of those that are installed; files are written to directory d."""
    lisp, scheme, lua = write(f"{d}/a.lisp", LISP), write(f"{d}/a.scm", SCHEME), write(f"{d}/a.lua", LUA)
    short, long = (write(f"{d}/{n}.js", NODE.replace("SCALE", str(n))) for n in (1, 8))
    page, cpp = write(f"{d}/page.html", PAGE), write(f"{d}/a.cc", CPP)
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={d}/chromium", "--dump-dom", page]
    result = {
        "chromium": chromium,
        "sbcl": ["sbcl", "--script", lisp],
        "guile": ["guile", "--no-auto-compile", scheme],
        "erlang": ["erl", "-noshell", "-eval", ERLANG],
        "chez": ["chezscheme", "--script", scheme],
        "maxima": ["maxima", "--very-quiet", "--batch-string=integrate(sin(x)^3,x);factor(x^12-1);"],
        "npm": ["npm", "--version"],
        "node": ["node", short],
        "node, long": ["node", long],
        "luajit": ["luajit", lua],
        "php": ["php", "-r", "echo array_sum(array_map(fn($x) => $x * $x, range(1, 1000))), PHP_EOL;"],
        "swipl": ["swipl", "-g", "numlist(1,1000,L),sum_list(L,S),writeln(S)", "-t", "halt"],
        "numpy": ["/usr/bin/python3", "-c", "import numpy as n; print(n.linalg.det(n.eye(50) * 2), n.sort(n.arange(1000)[::-1])[7])"],
        "clang++": ["clang++", "-O1", "-c", "-o", "/dev/null", cpp],
        "qemu": ["qemu-x86_64", "/bin/ls", "/"],
    }
    result = {n: c for n, c in result.items() if shutil.which(c[0])}
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", d, write(f"{d}/Mix.java", JAVA)], check=True)
        result["java"] = ["java", "-cp", d, "Mix", "1"]
        result["java, long"] = ["java", "-cp", d, "Mix", "8"]
    return result
