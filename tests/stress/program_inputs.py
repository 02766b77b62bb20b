"""The files that the tasks of program_list.py read: made here, the same in every run."""
import json
import math
import random
import struct

FILES = {
    'work.c': r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
struct node { struct node *left, *right; unsigned key; };
static struct node *insert(struct node *n, unsigned key) {
  if (!n) { n = calloc(1, sizeof *n); n->key = key; return n; }
  if (key < n->key) n->left = insert(n->left, key); else if (key > n->key) n->right = insert(n->right, key);
  return n;
}
static unsigned long sum(const struct node *n, int depth) { return n ? n->key * (unsigned long)depth + sum(n->left, depth + 1) + sum(n->right, depth + 1) : 0; }
static double area(int kind, double x) { switch (kind) { case 0: return x; case 1: return x * x; case 2: return 3 * x; case 3: return x / 2; case 4: return x + 1; default: return 0; } }
int main(void) {
  struct node *root = NULL; unsigned seed = 1; double total = 0; char text[64];
  for (int i = 0; i < 20000; i++) seed = seed * 1664525u + 1013904223u, root = insert(root, seed >> 8), total += area(seed >> 29, i);
  snprintf(text, sizeof text, "%lu %.3f", sum(root, 1), total);
  for (char *p = text; *p; p++) *p = toupper(*p);
  puts(text);
}
''',
    'work.cc': r'''
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
/// A shape of some kind.
struct Shape { virtual ~Shape() = default; /** Its area. */ virtual double area() const = 0; };
/// A square.
struct Square : Shape { double side; explicit Square(double s) : side(s) {} double area() const override { return side * side; } };
int main() {
  std::map<std::string, std::vector<std::unique_ptr<Shape>>> shapes;
  for (int i = 0; i < 5000; i++) shapes["s" + std::to_string(i % 100)].push_back(std::make_unique<Square>(i));
  double total = 0;
  for (auto& [name, list] : shapes) for (auto& s : list) total += s->area();
  try { throw std::runtime_error("caught"); } catch (const std::exception& e) { std::cout << e.what() << ' ' << total << '\n'; }
}
''',
    'work.rs': '''
use std::collections::BTreeMap;
fn main() {
    let mut m: BTreeMap<String, u64> = BTreeMap::new();
    for i in 0..50000u64 { *m.entry(format!("k{}", i * 7919 % 1009)).or_insert(0) += i; }
    let handles: Vec<_> = (0..3).map(|n| std::thread::spawn(move || (0..100000u64).fold(n, |a, x| (a * 31 + x) % 1000003))).collect();
    let sums: Vec<u64> = handles.into_iter().map(|h| h.join().unwrap()).collect();
    println!("{:?} {} {:?}", m.iter().next(), m.len(), sums);
    println!("{:?}", std::panic::catch_unwind(|| "x".parse::<i32>().is_err()));
}
''',
    'work.go': '''
package main

import "fmt"

func main() {
	c := make(chan int)
	for i := 0; i < 10; i++ {
		go func(i int) { c <- i * i }(i)
	}
	s := 0
	for i := 0; i < 10; i++ {
		s += <-c
	}
	fmt.Println(s)
}
''',
    'empty.go': 'package main\n\nfunc f(a []int) (s int) {\n\tfor _, x := range a {\n\t\ts += x\n\t}\n\treturn\n}\n\nfunc main() { println(f([]int{1, 2, 3})) }\n',
    'Work.java': '''
import java.util.*;
import java.util.stream.*;
public class Work {
  static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] a) throws Exception {
    Map<String, Integer> m = new TreeMap<>();
    for (int i = 0; i < 200000; i++) m.merge("k" + i % 1009, i % 7, Integer::sum);
    System.out.println(fib(27) + " " + m.get("k7") + " " + IntStream.range(0, 100000).parallel().mapToLong(x -> (long) x * x % 97).sum());
    Thread[] t = new Thread[4]; int[] s = new int[4];
    for (int i = 0; i < 4; i++) { int n = i; t[i] = new Thread(() -> { for (int k = 0; k < 300000; k++) { s[n] = s[n] * 31 + k; if (k % 1000 == 0) new byte[10000].clone(); } }); t[i].start(); }
    for (Thread x : t) x.join();
    System.out.println(Arrays.toString(s));
    try { int[] z = null; System.out.println(z[0]); } catch (NullPointerException e) { System.out.println("null"); }
    try { deep(0); } catch (StackOverflowError e) { System.out.println("deep"); }
  }
  static int deep(int n) { return deep(n + 1) + 1; }
}
''',
    'work.cs': '''
using System; using System.Collections.Generic; using System.Linq; using System.Threading;
class W { static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
  static void Main() {
    var d = new SortedDictionary<string, int>(); for (int i = 0; i < 50000; i++) d["k" + i % 997] = i;
    Console.WriteLine(Fib(27) + " " + d.Count + " " + Enumerable.Range(0, 1000).Where(x => x % 7 == 3).Sum());
    int s = 0; var t = Enumerable.Range(0, 3).Select(n => new Thread(() => { for (int i = 0; i < 100000; i++) Interlocked.Add(ref s, i % 3); })).ToList();
    t.ForEach(x => x.Start()); t.ForEach(x => x.Join()); Console.WriteLine(s);
    try { object o = null; o.ToString(); } catch (NullReferenceException) { Console.WriteLine("null"); } } }
''',
    'Work.hs': '''
import Control.Concurrent
import qualified Data.Map as M
main = do
  v <- newEmptyMVar
  mapM_ (\\n -> forkIO (putMVar v $! sum [x * n `mod` 97 | x <- [1 .. 100000 :: Int]])) [1 .. 4]
  rs <- mapM (const (takeMVar v)) [1 .. 4]
  print (sum rs, M.size (M.fromListWith (+) [(x * x `mod` 1009, 1) | x <- [1 .. 50000 :: Int]]))
''',
    'work.v': '''
module work(input clk, input [15:0] a, input [15:0] b, output reg [31:0] s);
  always @(posedge clk) s <= s * 5 + (a ^ {b[7:0], b[15:8]}) + (a > b ? a - b : b * 3);
endmodule
''',
    'bench.v': '''
module bench; reg clk = 0; reg [15:0] a = 1, b = 2; wire [31:0] s; work w(clk, a, b, s);
  integer i; initial begin w.s = 0; for (i = 0; i < 20000; i = i + 1) begin #1 clk = 1; #1 clk = 0; a = a * 7 + i; b = b + a; end $display("%0d", s); $finish(0); end
endmodule
''',
    'work.smt2': '''
(set-logic QF_BV)
(declare-const x (_ BitVec 24)) (declare-const y (_ BitVec 24))
(assert (= (bvmul x y) #x2f1e6d)) (assert (bvugt x #x000001)) (assert (bvugt y x)) (assert (bvult y #x000fff)) (assert (bvult x #x000fff))
(check-sat)
''',
    'work.cir': '* a filter\nv1 1 0 dc 0 ac 1 pulse(0 1 0 1n 1n 1u 2u)\nr1 1 2 1k\nc1 2 0 1n\nd1 2 0 x\n.model x d\n.tran 10n 4u\n.print tran v(2)\n.end\n',
    'work.pov': 'camera { location <0, 2, -5> look_at 0 } light_source { <5, 9, -9> color rgb 1 } plane { y, -1 pigment { checker rgb 1 rgb 0 } }\n'
                '#declare i = 0; #while (i < 8) sphere { <i - 4, 0, i / 3>, 0.5 pigment { rgb <i / 8, 0.5, 1 - i / 8> } finish { reflection 0.4 phong 1 } } #declare i = i + 1; #end\n',
    'work.tex': '\\documentclass{article}\\begin{document}\\tableofcontents' + ''.join(
        f'\\section{{Part {i}}}\\label{{p{i}}} Text $\\sum_{{k=1}}^{{{i}}} k^2$ and $\\int_0^1 x^{{{i}}} dx$, see \\ref{{p1}}.\\par' for i in range(60)) + '\\end{document}\n',
    'work.md': ''.join(f'# Part {i}\n\nSome *text* with `code {i}`, a [link](http://x/{i}) and\n\n- one\n- two {i}\n\n| a | b |\n|---|---|\n| {i} | $x^{i}$ |\n\n' for i in range(80)),
    'work.ps': '%!\n/Helvetica findfont 20 scalefont setfont 50 50 moveto (Hello weir) show\n0 1 300 { /i exch def i 360 div 0.5 0.5 setrgbcolor 300 400 i 0 i arc stroke } for showpage\n',
    'work.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><defs><linearGradient id="g"><stop offset="0" stop-color="red"/><stop offset="1" stop-color="blue"/></linearGradient></defs>'
                + ''.join(f'<circle cx="{i * 7 % 300}" cy="{i * 13 % 200}" r="{i % 30}" fill="url(#g)" opacity="0.3" transform="rotate({i})"/>' for i in range(200)) + '</svg>',
    'work.dot': 'digraph {' + ''.join(f'n{i} -> n{i * 7 % 60}; n{i} -> n{i // 2};' for i in range(60)) + '}',
    'webkit.py': '''
import os, gi
gi.require_version("Gtk", "3.0"); gi.require_version("WebKit2", "4.1")
from gi.repository import Gtk, WebKit2
view = WebKit2.WebView(); window = Gtk.Window(); window.add(view); window.show_all()
view.connect("notify::title", lambda *a: (print(view.get_title(), flush=True), Gtk.main_quit()) if " " in (view.get_title() or "") else None)
html = open(os.environ["IN"] + "/page.html").read() + "<script>document.title = document.getElementById('a').textContent + ' ' + document.body.innerHTML.length</script>"
view.load_html(html, "file:///"); Gtk.main()
''',
    'page.html': '<!doctype html><title>t</title><body><div id="a"></div><canvas id="c"></canvas><script>let s = 0; for (let i = 0; i < 3e6; i++) s = (s * 31 + i) % 1000003;'
                 'const l = document.createElement("ul"); for (let i = 0; i < 300; i++) { const x = document.createElement("li"); x.textContent = "n" + i * i % 97; l.append(x) }'
                 'document.body.append(l); document.getElementById("a").textContent = s + " " + l.children.length; document.getElementById("c").getContext("2d").fillRect(1, 2, 30, 40)</script>',
}
def boot_sector():
    """Writes to the first serial port, counts, and ends qemu by its debug device."""
    code = bytes([0x31, 0xc0, 0x8e, 0xd8,              # xor ax, ax; mov ds, ax
                  0xbe, 0x30, 0x7c,                    # mov si, 0x7c30
                  0xba, 0xf8, 0x03,                    # mov dx, 0x3f8
                  0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8,  # 1: lodsb; test al, al; jz 2f; out dx, al; jmp 1b
                  0x66, 0xb9, 0x00, 0x00, 0x20, 0x00,  # 2: mov ecx, 0x200000
                  0x66, 0x49, 0x75, 0xfc,              # 3: dec ecx; jnz 3b
                  0xb8, 0x2a, 0x00, 0xba, 0xf4, 0x01, 0xee, 0xba, 0x01, 0x05, 0xee,  # mov ax, 42; mov dx, 0x1f4; out dx, al; …
                  0xf4, 0xeb, 0xfd])                   # hlt; jmp
    sector = code.ljust(0x30, b'\x90') + b'hello from the boot sector\n\0'
    return sector.ljust(510, b'\0') + b'\x55\xaa'


def make_inputs(directory):
    if (directory / 'text.txt').exists():
        return
    r = random.Random(7)
    for name, text in FILES.items():
        (directory / name).write_text(text)
    words = [''.join(r.choices('abcdefghijklmnopqrstuvwxyz', k=r.randint(2, 9))) for _ in range(3000)]
    (directory / 'text.txt').write_text('\n'.join(' '.join(r.choices(words, k=9)) for _ in range(9000)) + '\n')
    (directory / 'data.json').write_text(json.dumps([{'n': i, 's': r.choice(words)} for i in range(20000)]))
    (directory / 'data.xml').write_text('<d>' + ''.join(f'<r n="{i}"><s>{r.choice(words)}</s></r>' for i in range(20000)) + '</d>')
    (directory / 'image.ppm').write_bytes(b'P6\n320 240\n255\n' + bytes((x * y + c * 50 + (x ^ y)) % 256 for y in range(240) for x in range(320) for c in range(3)))
    samples = [int(9000 * math.sin(i / 20) + 5000 * math.sin(i / 7.3)) for i in range(44100)]
    data = struct.pack(f'<{len(samples)}h', *samples)
    (directory / 'sound.wav').write_bytes(b'RIFF' + struct.pack('<I', 36 + len(data)) + b'WAVEfmt ' +
                                          struct.pack('<IHHIIHH', 16, 1, 1, 44100, 88200, 2, 16) + b'data' + struct.pack('<I', len(data)) + data)
    clauses = [[r.choice((-1, 1)) * v for v in r.sample(range(1, 151), 3)] for _ in range(620)]
    (directory / 'work.cnf').write_text(f'p cnf 150 {len(clauses)}\n' + ''.join(' '.join(map(str, c)) + ' 0\n' for c in clauses))
    rows = ''.join(f' c{k}: ' + ' + '.join(f'{r.randint(1, 20)} x{i}' for i in range(25)) + f' <= {r.randint(100, 200)}\n' for k in range(8))
    (directory / 'work.lp').write_text('Maximize\n obj: ' + ' + '.join(f'{r.randint(1, 30)} x{i}' for i in range(25)) + '\nSubject To\n' + rows +
                                       'Bounds\n' + ''.join(f' 0 <= x{i} <= 9\n' for i in range(25)) + 'Generals\n ' + ' '.join(f'x{i}' for i in range(25)) + '\nEnd\n')
    genome = ''.join(r.choices('ACGT', k=5000))
    (directory / 'work.fa').write_text('>chr1\n' + '\n'.join(genome[i:i + 60] for i in range(0, 5000, 60)) + '\n')
    reads = [(i, r.randint(1, 4900)) for i in range(5000)]
    (directory / 'work.sam').write_text('@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:5000\n' +
                                        ''.join(f'r{i}\t0\tchr1\t{at}\t60\t50M\t*\t0\t0\t{genome[at - 1:at + 49]}\t{"I" * 50}\n' for i, at in reads))
    (directory / 'boot.img').write_bytes(boot_sector().ljust(16 * 63 * 512, b'\0'))
