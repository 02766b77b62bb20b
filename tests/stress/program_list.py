"""The programs of `./dev stress programs`: each a small task whose output is the same in every run.

A line has a name, the Debian packages (the first tells the version), a command for `sh`, and the files that it leaves to be compared.
Standard output and the exit status always are. The command starts in an empty directory; $IN has the inputs that `make_inputs` of programs.py
made, and $DISPLAY an X server where the last field is 'x'."""
import collections

Program = collections.namedtuple('Program', 'name packages command files kind needs', defaults=('', '', ''))


def p(kind, name, packages, command, files='', needs=''):
    return Program(name, packages.split(), command.strip(), files.split(), kind, needs)


FIB_SCHEME = '(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))'
FIB_LISP = '(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))'
LISTS_LISP = '(loop for i below 60 sum (length (sort (loop for j below 3000 collect (mod (* j 7919) 3001)) (function <))))'
SERVE = '''for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do curl -sf http://127.0.0.1:8391/text.txt >got && break; sleep 0.3; done
for i in 1 2 3 4 5 6 7 8 9 10; do curl -s http://127.0.0.1:8391/text.txt | md5sum; done'''

PROGRAMS = [
    # Compilers at run time, and their garbage collectors.
    p('JIT', 'node', 'nodejs', '''node -e '
const m = new Map(); let s = 0;
for (let i = 0; i < 3e5; i++) { m.set("k" + i % 5000, i); s = (s * 31 + i) >>> 0; }
const a = Array.from({length: 2e5}, (_, i) => (i * 7919) % 200003).sort((x, y) => x - y);
console.log(s, m.size, a[777], JSON.stringify([...m].slice(0, 3)), /(\\d+)x\\1/.exec("12x12")[0]);' '''),
    p('JIT', 'node-workers', 'nodejs', '''node -e '
const { Worker, isMainThread, parentPort } = require("worker_threads");
const code = `const {parentPort} = require("worker_threads"); let s = 0; for (let i = 0; i < 2e6; i++) s = (s * 33 + i) | 0; parentPort.postMessage(s)`;
Promise.all([1, 2, 3].map(() => new Promise(r => new Worker(code, {eval: true}).on("message", r)))).then(x => console.log(x.join()));' '''),
    p('JIT', 'java', 'openjdk-17-jdk-headless', '''cp $IN/Work.java . && javac Work.java && java Work'''),
    p('JIT', 'java-serial', 'openjdk-17-jdk-headless', '''java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC $IN/Work.java'''),
    p('JIT', 'luajit', 'luajit', '''luajit -e '
local t, s = {}, 0
for i = 1, 3e6 do s = (s * 31 + i) % 1000003; t[i % 1000] = s end
local words = {}; for i = 1, 2e5 do words[i % 100 + 1] = ("x"):rep(i % 50) .. i end
print(s, t[7], table.concat(words):len())' '''),
    p('JIT', 'pypy3', 'pypy3', '''pypy3 -c '
s, d = 0, {}
for i in range(2000000): s = (s * 31 + i) % 1000003; d[i % 1009] = s
print(s, len(d), sorted(str(x) for x in d.values())[5])' '''),
    p('JIT', 'sbcl', 'sbcl', f'''sbcl --noinform --non-interactive --eval '{FIB_LISP}' --eval '(print (list (fib 30) {LISTS_LISP}))' '''),
    p('JIT', 'guile', 'guile-3.0', f'''guile --no-auto-compile -c '{FIB_SCHEME} (display (fib 27)) (newline)' '''),
    p('JIT', 'chez', 'chezscheme', f'''echo '{FIB_SCHEME} (display (fib 30)) (newline)' >f.ss; scheme --script f.ss'''),
    p('JIT', 'racket', 'racket', f'''racket -e '{FIB_SCHEME} (displayln (fib 28))' '''),
    p('JIT', 'erlang', 'erlang-base', '''erl -noshell -eval '
F = fun G(0) -> 0; G(N) -> N rem 7 + G(N - 1) end,
Me = self(), [spawn(fun() -> Me ! F(3000) end) || _ <- lists:seq(1, 20)],
io:format("~p~n", [lists:sum([receive X -> X end || _ <- lists:seq(1, 20)])]), halt().' '''),
    p('JIT', 'elixir', 'elixir', '''elixir -e 'IO.inspect(Enum.sum(for i <- 1..200000, do: rem(i * i, 7)))' '''),
    p('JIT', 'mono', 'mono-mcs mono-runtime libmono-system-core4.0-cil', '''cp $IN/work.cs . && mcs work.cs && mono work.exe'''),
    p('JIT', 'php-jit', 'php8.2-cli php8.2-opcache', '''php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=tracing -r '
$s = 0; for ($i = 0; $i < 5000000; $i++) $s = ($s * 31 + $i) % 1000003;
$a = range(1, 50000); shuffle($a); sort($a); echo $s, " ", md5(implode(",", $a)), "\\n";' '''),
    p('JIT', 'ruby', 'ruby', '''ruby -e 's = 0; h = Hash.new(0); 300000.times { |i| s = (s * 31 + i) % 1000003; h[s % 997] += 1 }; puts s, h.size, (1..2000).map(&:to_s).sort.join.sum' '''),
    p('JIT', 'ruby-yjit', 'ruby', '''ruby --yjit -e 'def f(n) = n < 2 ? n : f(n - 1) + f(n - 2); puts f(25)' '''),
    p('JIT', 'poly', 'polyml', '''echo 'fun fib n = if n < 2 then n else fib (n - 1) + fib (n - 2); print (Int.toString (fib 32) ^ str (chr 10));' | poly -q'''),
    p('JIT', 'smlnj', 'smlnj', '''echo 'fun fib n = if n < 2 then n else fib (n - 1) + fib (n - 2); print (Int.toString (fib 27) ^ str (chr 10));' | sml | grep -v New'''),
    p('JIT', 'R', 'r-base-core', '''Rscript -e 'f <- function(n) if (n < 2) n else f(n - 1) + f(n - 2); print(f(21)); m <- matrix(1:40000 %% 97, 200); print(sum(m %*% m)); print(summary(lm(dist ~ speed, cars)))' '''),
    p('JIT', 'pcre', 'grep', '''grep -cP '(?:a|e|i)+[b-d]{1,3}(?=\\w)' $IN/text.txt; grep -coP '\\b(\\w)\\w*\\1\\b' $IN/text.txt'''),
    # Interpreters.
    p('interpreter', 'python-numpy', 'python3-numpy', '''python3 -c '
import numpy as n; a = (n.arange(160000) % 997).reshape(400, 400).astype(float)
print((a @ a).sum(), n.sort(a.ravel())[777], n.round(n.linalg.svd(a[:80, :80])[1][:2], 6), n.abs(n.fft.fft(a[0])).sum().round(6))' '''),
    p('interpreter', 'python-processes', 'python3', '''python3 -c '
import multiprocessing as m, concurrent.futures as f, subprocess, zlib
if __name__ == "__main__":
  print(sum(m.Pool(3).map(abs, range(-3000, 0))), sum(f.ThreadPoolExecutor(4).map(lambda x: zlib.crc32(bytes(x)), range(2000))))
  print([subprocess.check_output(["expr", str(i), "+", "1"]) for i in range(10)])' '''),
    p('interpreter', 'perl', 'perl', '''perl -e 'my %h; open F, "$ENV{IN}/text.txt"; while (<F>) { $h{lc $_}++ for /\\w+/g } print "$_ $h{$_}\\n" for (sort { $h{$b} <=> $h{$a} || $a cmp $b } keys %h)[0..9]; fork || exit 3; wait; print $? >> 8, "\\n"' '''),
    p('interpreter', 'octave', 'octave', '''octave-cli --no-gui -qf --eval 'a = mod(reshape(1:40000, 200, 200), 97); disp(sum((a * a)(:))); disp(round(1e6 * norm(inv(a(1:9, 1:9) + eye(9)))))' '''),
    p('interpreter', 'maxima', 'maxima', '''maxima --very-quiet --batch-string='print(factor(x^30-1), integrate(1/(x^4+1), x), factor(2^101-1))$' | tail -3'''),
    p('interpreter', 'gap', 'gap-core', '''echo 'Print(Size(Group((1,2,3,4,5,6,7),(1,2))), " ", Length(ConjugacyClasses(SymmetricGroup(8)))); Display(Factorial(30));' >f.g; gap.sh -A -q -r f.g </dev/null 2>/dev/null || gap -A -q -r f.g </dev/null'''),
    p('interpreter', 'gp', 'pari-gp', '''echo 'print(factor(2^128+1)); print(ellap(ellinit([0,-1,1,-10,-20]), 10007)); print(sum(i=1,10^5,1/i*1.))' | gp -q -f'''),
    p('interpreter', 'swipl', 'swi-prolog-nox', '''swipl -q -g 'numlist(1, 200000, L), foldl([X, A, B]>>(B is (A * 31 + X) mod 1000003), L, 0, S), length(Q, 3), S > 0, print(S-Q), nl, halt.' '''),
    p('interpreter', 'tcl', 'tcl', '''echo 'proc f n {expr {$n < 2 ? $n : [f [expr {$n - 1}]] + [f [expr {$n - 2}]]}}; puts [f 22]; set l {}; for {set i 0} {$i < 50000} {incr i} {lappend l [expr {$i * 7919 % 50021}]}; puts [lindex [lsort -integer $l] 777]' | tclsh'''),
    p('interpreter', 'lua', 'lua5.4', '''lua5.4 -e 'local co = coroutine.wrap(function() for i = 1, 3e5 do coroutine.yield(i * i % 7) end end) local s = 0 for i = 1, 3e5 do s = s + co() end print(s, pcall(error, "x"))' '''),
    p('interpreter', 'clisp', 'clisp', f'''clisp -q -norc -x '(progn {FIB_LISP} (compile (quote fib)) (list (fib 23) {LISTS_LISP}))' '''),
    p('interpreter', 'ecl', 'ecl', f'''ecl --norc --eval '(progn {FIB_LISP} (print (fib 19)) (terpri) (ext:quit 0))' '''),
    p('interpreter', 'gforth', 'gforth', '''gforth -e ': fib dup 2 < if else dup 1- recurse swap 2 - recurse + then ; 31 fib . cr bye' '''),
    p('interpreter', 'gawk', 'gawk', '''gawk '{for (i = 1; i <= NF; i++) c[$i]++} END {n = asorti(c, k); for (i = 1; i <= 5; i++) print k[i], c[k[i]]; print n}' $IN/text.txt'''),
    p('interpreter', 'gambit', 'gambc', f'''gsi -e '{FIB_SCHEME} (display (fib 22)) (newline)' '''),
    p('interpreter', 'chicken', 'chicken-bin', f'''csi -q -e '{FIB_SCHEME} (display (fib 22)) (newline)' '''),
    p('interpreter', 'bash', 'bash', '''bash -c 'for ((i = 0; i < 50000; i++)); do ((s += i * i % 7)); done; echo $s; for i in {1..50}; do x=$(echo $i | tr 0-9 a-j); printf %s $x; done; trap "echo got" USR1; kill -USR1 $$; (exit 7); echo $?' '''),
    p('interpreter', 'jq', 'jq', '''jq -c '[.[] | select(.n % 7 == 3) | .s | ascii_upcase] | group_by(length) | map([.[0], length])' $IN/data.json | md5sum'''),
    p('interpreter', 'bc', 'bc', '''echo 'scale=600; 4*a(1)' | bc -l | md5sum'''),
    # Compilers.
    p('compiler', 'gcc', 'gcc', '''gcc -O2 -g -o work $IN/work.c && ./work''', 'work'),
    p('compiler', 'g++', 'g++', '''g++ -O1 -std=c++20 -o work $IN/work.cc && ./work''', 'work'),
    p('compiler', 'clang', 'clang', '''clang -O2 -o work $IN/work.c && ./work''', 'work'),
    p('compiler', 'rustc', 'rustc', '''rustc -O -C codegen-units=4 -o work $IN/work.rs && ./work''', 'work'),
    p('compiler', 'go', 'golang-go', '''cp $IN/work.go . && GOCACHE=$PWD/c GOFLAGS=-p=2 GO111MODULE=off go vet work.go; GOCACHE=$PWD/c GO111MODULE=off go tool compile -o work.o -p main -complete -importcfg /dev/null $IN/empty.go && echo done'''),
    p('compiler', 'ghc', 'ghc', '''cp $IN/Work.hs . && ghc -v0 -O1 -threaded -rtsopts Work.hs && ./Work +RTS -N2'''),
    p('compiler', 'ghci', 'ghc', '''echo 'print (sum [x * x `mod` 7 | x <- [1 .. 50000 :: Int]])' | ghci -v0'''),
    p('compiler', 'ocaml', 'ocaml-nox', '''echo 'let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2);; print_int (fib 32); print_newline ();;' >w.ml; ocamlfind 2>/dev/null; ocamlopt -o work w.ml && ./work && ocaml w.ml'''),
    p('compiler', 'fpc', 'fp-compiler fp-units-rtl', '''echo 'program w; var i, s: longint; begin s := 0; for i := 1 to 3000000 do s := (s * 31 + i) mod 1000003; writeln(s) end.' >w.pas; fpc -v0 -l- w.pas >/dev/null && ./w'''),
    p('compiler', 'gnat', 'gnat', '''printf 'with Ada.Text_IO; procedure W is S : Long_Integer := 0; begin for I in Long_Integer range 1 .. 3_000_000 loop S := (S * 31 + I) mod 1_000_003; end loop; Ada.Text_IO.Put_Line (S\\047Image); begin raise Program_Error; exception when Program_Error => Ada.Text_IO.Put_Line ("raised"); end; end W;' >w.adb; gnatmake -q w.adb && ./w'''),
    p('compiler', 'ldc', 'ldc', '''printf 'import std.stdio, std.algorithm, std.range; void main() { writeln(iota(1, 3000000).map!(x => x * 7919 %% 1009).sum); try throw new Exception("x"); catch (Exception e) writeln(e.msg); }' >w.d; ldc2 -O w.d && ./w'''),
    p('compiler', 'nim', 'nim', '''printf 'import std/tables\\nvar t = initCountTable[int]()\\nfor i in 1..300000: t.inc(i * i mod 1009)\\necho t.len, " ", t.largest' >w.nim; nim c --hints:off --nimcache:c w.nim 2>/dev/null && ./w'''),
    p('compiler', 'tcc', 'tcc', '''tcc -run $IN/work.c'''),
    p('compiler', 'nasm', 'nasm', '''printf 'global _start\\n_start: mov eax, 60\\n mov edi, 42\\n syscall\\n' >w.asm; nasm -felf64 w.asm && ld -o w w.o && ./w''', 'w'),
    p('compiler', 'yosys', 'yosys', '''yosys -q -p 'read_verilog $IN/work.v; synth -top work; stat' 2>&1 | grep -v '^Time' | md5sum'''.replace('$IN', "'$IN'")),
    p('compiler', 'iverilog', 'iverilog', '''iverilog -o w $IN/bench.v $IN/work.v && vvp w'''),
    p('compiler', 'verilator', 'verilator', '''verilator --lint-only -Wno-fatal $IN/work.v 2>&1 | wc -l'''),
    # Build systems.
    p('build', 'make', 'make gcc', '''cp $IN/work.c . && for i in 1 2 3 4 5 6; do cp work.c w$i.c; done; printf 'all: w1 w2 w3 w4 w5 w6\\nw%%: w%%.c\\n\\t@gcc -O1 -o $@ $<\\n' >Makefile; make -s -j3 && ./w3'''),
    p('build', 'cmake-ninja', 'cmake ninja-build g++', '''cp $IN/work.c . && echo 'cmake_minimum_required(VERSION 3.10)
project(w C)
add_executable(w work.c)' >CMakeLists.txt; cmake -G Ninja -B b >/dev/null && ninja -C b --quiet && b/w'''),
    p('build', 'meson', 'meson ninja-build gcc', '''cp $IN/work.c . && echo "project('w', 'c')
executable('w', 'work.c')" >meson.build; meson setup b >/dev/null && ninja -C b --quiet && b/w'''),
    p('build', 'ant', 'ant', '''cp $IN/Work.java . && echo '<project default="x"><target name="x"><javac srcdir="." destdir="." includeantruntime="false"/></target></project>' >build.xml; ant -q -S && java Work'''),
    # Databases, servers.
    p('database', 'sqlite3', 'sqlite3', '''sqlite3 w.db "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) insert into t select i, hex(i * 7919 % 60013) from n; create index x on t(b); select count(*), max(b) from t where b like '3%'; pragma integrity_check"''', 'w.db'),
    p('database', 'mariadb', 'mariadb-server', '''mysql_install_db --no-defaults --user=$(id -un) --datadir=$PWD/d --auth-root-authentication-method=normal >/dev/null 2>&1
printf 'create database w;\\nuse w;\\ncreate table t(a int primary key, b varchar(20)) engine=innodb;\\ninsert into t select seq, hex(seq * 7919 %% 5003) from seq_1_to_5000;\\nselect count(*), max(b) from t;\\n' >init.sql
mariadbd --no-defaults --user=$(id -un) --datadir=$PWD/d --socket=$PWD/s --skip-networking --innodb-buffer-pool-size=16M >/dev/null 2>log & server=$!
for i in $(seq 100); do mysql --no-defaults -uroot -S $PWD/s -e 'select 1' >/dev/null 2>&1 && break; sleep 0.2; done
mysql --no-defaults -uroot -S $PWD/s <init.sql; mysqladmin --no-defaults -uroot -S $PWD/s shutdown; wait $server; echo $?'''),
    p('database', 'redis', 'redis-server redis-tools', '''redis-server --port 0 --unixsocket $PWD/s --save '' >/dev/null & for i in $(seq 100); do redis-cli -s s ping >/dev/null 2>&1 && break; sleep 0.1; done
redis-cli -s s eval 'for i = 1, 20000 do redis.call("zadd", "z", i * 7919 % 20011, i) end return redis.call("zcard", "z")' 0; redis-cli -s s zrange z 100 104; redis-cli -s s shutdown nosave; wait; echo $?'''),
    p('server', 'nginx', 'nginx-light curl', f'''mkdir l; echo "daemon off; pid $PWD/pid; error_log $PWD/log; worker_processes 2; events {{}} http {{ access_log off; client_body_temp_path l; proxy_temp_path l; fastcgi_temp_path l; uwsgi_temp_path l; scgi_temp_path l; server {{ listen 127.0.0.1:8391; root $IN; autoindex on; }} }}" >c
nginx -e $PWD/log -p $PWD -c $PWD/c & server=$!
{SERVE}
kill -QUIT $server; wait $server; echo $?'''),
    p('server', 'apache', 'apache2 curl', f'''m=/usr/lib/apache2/modules; echo "ServerRoot $PWD
ServerName x
PidFile $PWD/pid
ErrorLog $PWD/log
Listen 127.0.0.1:8391
LoadModule mpm_event_module $m/mod_mpm_event.so
LoadModule authz_core_module $m/mod_authz_core.so
DocumentRoot $IN" >c; /usr/sbin/apache2 -f $PWD/c -X & server=$!
{SERVE}
kill -TERM $server; wait $server; echo $?'''),
    p('server', 'memcached', 'memcached', '''memcached -u $(id -un) -s $PWD/s -t 2 & server=$!; for i in $(seq 50); do [ -S s ] && break; sleep 0.1; done
python3 -c '
import socket; s = socket.socket(socket.AF_UNIX); s.connect("s"); f = s.makefile("rwb")
for i in range(500): f.write(b"set k%d 0 0 %d\\r\\n%s\\r\\n" % (i, len(str(i * i)), str(i * i).encode())); f.flush(); f.readline()
f.write(b"get k7 k499\\r\\n"); f.flush(); print([f.readline() for _ in range(5)])'; kill $server; wait $server; echo $?'''),
    p('server', 'python-http', 'python3 curl', f'''python3 -m http.server -b 127.0.0.1 -d $IN 8391 >/dev/null 2>&1 & server=$!
{SERVE}
kill $server; wait $server; echo $?'''),
    p('server', 'rsync', 'rsync', '''mkdir a; for i in 1 2 3 4 5 6 7 8; do head -c ${i}0000 $IN/text.txt >a/$i; done; rsync -az a/ b && echo x >>a/3 && rsync -azi --checksum --no-times a/ b && diff -r a b'''),
    # Solvers.
    p('solver', 'z3', 'z3', '''z3 -smt2 $IN/work.smt2'''),
    p('solver', 'cvc5', 'cvc5', '''cvc5 --produce-models $IN/work.smt2'''),
    p('solver', 'minisat', 'minisat', '''minisat -verb=0 $IN/work.cnf out >/dev/null; echo $?; cat out'''),
    p('solver', 'glpk', 'glpk-utils', '''glpsol --lp $IN/work.lp -o out >/dev/null; cat out'''),
    p('solver', 'cbc', 'coinor-cbc', '''cbc $IN/work.lp solve solution out >/dev/null; cat out'''),
    p('solver', 'stockfish', 'stockfish', '''echo 'setoption name Threads value 1
position startpos moves e2e4 e7e5
go depth 9' | (cat; sleep 4) | stockfish | grep bestmove'''),
    p('solver', 'ngspice', 'ngspice', '''ngspice -b $IN/work.cir 2>/dev/null | grep -v -i 'time\\|elapsed\\|memory\\|dram\\|seconds\\|size\\|note\\|pages\\|analysis' '''),
    p('solver', 'openscad', 'openscad', '''echo 'difference() { cube(10); for (i = [1:4]) translate([2 * i, 5, 5]) sphere(2, $fn = 16); }' >w.scad; openscad -q -o w.stl w.scad 2>/dev/null; echo $?; sort w.stl | md5sum''', '', 'x'),
    # Media.
    p('media', 'ffmpeg', 'ffmpeg', '''ffmpeg -v error -f lavfi -i testsrc=s=320x240:d=1:r=15 -c:v libx264 -threads 2 -preset veryfast -bitexact w.mp4 && ffmpeg -v error -i w.mp4 -f framemd5 -'''),
    p('media', 'imagemagick', 'imagemagick', '''convert $IN/image.ppm -resize 60% -gaussian-blur 3 -rotate 17 -colorspace HSL w.ppm; identify -format '%w %h %#' w.ppm''', 'w.ppm'),
    p('media', 'blender', 'blender', '''blender -b --factory-startup --python-expr 'import bpy; bpy.ops.mesh.primitive_monkey_add(); o = bpy.context.object; o.modifiers.new("s", "SUBSURF").levels = 3; m = o.evaluated_get(bpy.context.evaluated_depsgraph_get()).to_mesh(); print(len(m.vertices), round(sum(v.co.z for v in m.vertices), 3))' 2>/dev/null | grep -v '^Blender\\|^Read' '''),
    p('media', 'povray', 'povray', '''povray +I$IN/work.pov +O$PWD/w.ppm +FP +W160 +H120 -D +WT2 >/dev/null 2>&1; echo $?; tail -c 57600 w.ppm | md5sum'''),
    p('media', 'sox', 'sox', '''sox $IN/sound.wav w.wav reverb 40 pitch 200 rate 22050 -D 2>/dev/null || sox -D $IN/sound.wav w.wav reverb 40 rate 22050''', 'w.wav'),
    p('media', 'gstreamer', 'gstreamer1.0-tools gstreamer1.0-plugins-base', '''GST_REGISTRY=$PWD/r gst-launch-1.0 -q videotestsrc num-buffers=20 ! video/x-raw,width=160,height=120 ! videoconvert ! videoscale ! filesink location=w.raw''', 'w.raw'),
    p('media', 'flac', 'flac', '''flac -s -8 -o w.flac $IN/sound.wav && flac -s -d -o w.wav w.flac && cmp w.wav $IN/sound.wav && echo same''', 'w.flac'),
    p('media', 'lame', 'lame', '''lame --quiet -b 128 $IN/sound.wav w.mp3''', 'w.mp3'),
    p('media', 'rsvg', 'librsvg2-bin', '''rsvg-convert -w 500 $IN/work.svg -o w.png''', 'w.png'),
    p('media', 'gnuplot', 'gnuplot-nox', '''gnuplot -e 'set term svg; set out "w.svg"; set isosamples 60; splot sin(x) * cos(y)' ''', 'w.svg'),
    p('media', 'graphviz', 'graphviz', '''dot -Tsvg $IN/work.dot -o w.svg; neato -Tplain $IN/work.dot | md5sum''', 'w.svg'),
    p('media', 'tesseract', 'tesseract-ocr tesseract-ocr-eng imagemagick', '''convert -size 400x80 xc:white -pointsize 40 -annotate +20+50 'Hello weir 42' t.png 2>/dev/null; OMP_THREAD_LIMIT=2 tesseract t.png - 2>/dev/null'''),
    p('media', 'vlc', 'vlc-bin vlc-plugin-base', '''cvlc 2>/dev/null --version | head -1; sed s/geteuid/getppid/ /usr/bin/vlc >vlc; chmod +x vlc; ./vlc -I dummy --no-sout-all -q $IN/sound.wav --sout '#transcode{acodec=s16l,ab=128,channels=1,samplerate=22050}:std{access=file,mux=wav,dst=w.wav}' vlc://quit 2>/dev/null; echo $?; wc -c <w.wav'''),
    # Office.
    p('office', 'libreoffice', 'libreoffice-calc libreoffice-writer', '''printf 'a,b\\n1,2\\n3,=A2*7\\n' >w.csv; soffice -env:UserInstallation=file://$PWD/u --headless --convert-to html w.csv >/dev/null 2>&1; echo $?; grep -c sdval w.html'''),
    p('office', 'ssconvert', 'gnumeric', '''printf '1,2,=A1+B1*7\\n3,4,=SUM(A1:B2)\\n' >w.csv; ssconvert --recalc w.csv v.csv 2>/dev/null; cat v.csv'''),
    p('office', 'pandoc', 'pandoc', '''pandoc -f markdown -t html $IN/work.md; pandoc -f markdown -t latex $IN/work.md | md5sum'''),
    p('office', 'pdflatex', 'texlive-latex-base', '''SOURCE_DATE_EPOCH=1 pdflatex -interaction=batchmode $IN/work.tex >/dev/null; echo $?; grep -c . work.log >/dev/null; md5sum <work.aux'''),
    p('office', 'ghostscript', 'ghostscript', '''gs -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r72 -sOutputFile=w.ppm $IN/work.ps''', 'w.ppm'),
    p('office', 'poppler', 'poppler-utils ghostscript', '''gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile=w.pdf $IN/work.ps; pdftotext w.pdf -; pdftoppm -r 50 w.pdf p && md5sum p*'''),
    p('office', 'groff', 'groff', '''zcat -f /usr/share/man/man1/bash.1.gz 2>/dev/null | groff -man -Tutf8 2>/dev/null | md5sum; groff -ms -Tps $IN/work.md | grep -v '^%%' | md5sum'''),
    p('office', 'xsltproc', 'xsltproc libxml2-utils', '''xmllint --xpath 'count(//r[@n mod 7 = 3])' $IN/data.xml; xmllint --format $IN/data.xml | md5sum'''),
    p('office', 'doxygen', 'doxygen', '''cp $IN/work.cc . && printf 'INPUT=work.cc\\nGENERATE_LATEX=NO\\nQUIET=YES\\nEXTRACT_ALL=YES\\nHTML_TIMESTAMP=NO\\nHAVE_DOT=NO\\n' >D; doxygen D 2>/dev/null; ls html | wc -l; cat html/*.html | md5sum'''),
    # Desktop programs and browsers.
    p('desktop', 'xterm', 'xterm', '''timeout 20 xterm -e sh -c 'stty -a | head -1 >out; seq 2000; echo done >>out'; cat out''', '', 'x'),
    p('desktop', 'gnome-calculator', 'gnome-calculator', '''dbus-run-session gnome-calculator --solve '7 * 6 + sqrt(2)' 2>/dev/null''', '', 'x'),
    p('desktop', 'gedit', 'gedit x11-utils dbus', '''dbus-run-session gedit -s $IN/work.md >/dev/null 2>&1 & for i in $(seq 300); do xwininfo -root -tree | grep -o 'work.md[^"]*gedit' && break; sleep 0.2; done; xkill=$(xwininfo -root -tree | grep -m1 gedit | wc -l); echo $xkill''', '', 'x'),
    p('desktop', 'inkscape', 'inkscape', '''inkscape $IN/work.svg -w 200 -o w.png >/dev/null 2>&1; echo $?; python3 -c 'print(len(open("w.png", "rb").read()))' ''', '', 'x'),
    p('desktop', 'gimp', 'gimp', '''gimp -idf -b '(let* ((i (car (gimp-file-load RUN-NONINTERACTIVE "'$IN'/image.ppm" "x"))) (d (car (gimp-image-flatten i)))) (plug-in-gauss RUN-NONINTERACTIVE i d 9 9 0) (gimp-file-save RUN-NONINTERACTIVE i d "w.ppm" "w.ppm") (gimp-quit 0))' >/dev/null 2>&1; echo $?''', 'w.ppm', 'x'),
    p('browser', 'chromium', 'chromium', '''chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$PWD/u --dump-dom file://$IN/page.html 2>/dev/null'''),
    p('browser', 'firefox', 'firefox-esr', '''mkdir u; firefox-esr --headless --no-remote --profile $PWD/u --window-size 300,300 --screenshot $PWD/w.png file://$IN/page.html >/dev/null 2>&1; echo $?; [ -s w.png ] && echo shot'''),
    p('browser', 'webkit', 'gir1.2-webkit2-4.1 python3-gi', '''NO_AT_BRIDGE=1 GTK_USE_PORTAL=0 WEBKIT_DISABLE_COMPOSITING_MODE=1 dbus-run-session python3 $IN/webkit.py 2>/dev/null | grep ' 300 ' ''', '', 'x'),
    # Emulators.
    p('emulator', 'qemu-user', 'qemu-user', '''qemu-x86_64 /usr/bin/md5sum $IN/text.txt; qemu-x86_64 /usr/bin/awk 'BEGIN {for (i = 0; i < 100000; i++) s += i % 7; print s}' '''),
    p('emulator', 'qemu-system', 'qemu-system-x86', '''qemu-system-x86_64 -display none -net none -serial file:out -no-reboot -device isa-debug-exit -drive file=$IN/boot.img,format=raw,readonly=on -m 16; echo $?; cat out'''),
    p('emulator', 'bochs', 'bochs bochsbios vgabios', '''printf 'romimage: file=/usr/share/bochs/BIOS-bochs-latest\\nvgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest\\nmegs: 16\\nboot: disk\\nata0-master: type=disk, path=%s/boot.img, mode=volatile, cylinders=1, heads=16, spt=63\\ncom1: enabled=1, mode=file, dev=out\\nlog: log\\npanic: action=fatal\\nerror: action=ignore\\ndisplay_library: nogui\\n' $IN >c; timeout 20 bochs -q -f c >/dev/null 2>&1 </dev/null; head -2 out'''),
    p('emulator', 'dosbox', 'dosbox', '''SDL_VIDEODRIVER=dummy SDL_AUDIODRIVER=dummy timeout 30 dosbox -noconsole -c "mount c $PWD" -c "c:" -c "dir z: > out.txt" -c "exit" >/dev/null 2>&1; echo $?; grep -ci com OUT.TXT'''),
    p('emulator', 'wine', 'wine64 wine', '''export WINEPREFIX=$IN/wine WINEDEBUG=-all; wine cmd /c echo hi; wine winepath -u 'c:\\windows'; wine regedit /e r.reg 'HKEY_CURRENT_USER\\Environment'; wc -c <r.reg; wineserver -k; wineserver -w'''),
    p('emulator', 'valgrind', 'valgrind', '''valgrind -q --tool=memcheck --error-exitcode=7 echo hi; valgrind -q --tool=none expr 6 '*' 7'''),
    # Debuggers, security, editors, archives, version control.
    p('debugger', 'gdb', 'gdb gcc', '''gcc -g -O0 -o w $IN/work.c && gdb -nx -q -batch -ex 'break main' -ex run -ex 'print 6 * 7' -ex next -ex 'info breakpoints' -ex kill w 2>/dev/null | grep -v Inferior | sed 's/0x[0-9a-f]*/ADDRESS/g' '''),
    p('debugger', 'strace', 'strace', '''strace -f -qq -e trace=write -o out sh -c 'echo hi; ls / >/dev/null'; echo $?'''),
    p('security', 'gpg', 'gpg', '''mkdir -m 700 g; export GNUPGHOME=$PWD/g; echo secret | gpg --batch --pinentry-mode loopback --passphrase x -c -o w.gpg --s2k-count 65536 2>/dev/null; gpg --batch --pinentry-mode loopback --passphrase x -d w.gpg 2>/dev/null; gpg --print-md sha256 <$IN/text.txt; gpgconf --kill all'''),
    p('security', 'openssl', 'openssl', '''openssl dgst -sha512 $IN/text.txt; openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -k x -in $IN/text.txt | md5sum; openssl prime -generate -bits 512 | wc -c; openssl genrsa 2048 2>/dev/null | openssl rsa -check -noout 2>&1'''),
    p('security', 'john', 'john openssl', '''export HOME=$PWD; echo "u:$(openssl passwd -1 -salt abcdefgh password)" >h; printf 'alpha\\nbeta\\npassword\\n' >l; /usr/sbin/john --pot=p --wordlist=l --format=md5crypt h 2>/dev/null | grep -c . ; /usr/sbin/john --pot=p --show h'''),
    p('editor', 'vim', 'vim', '''cp $IN/text.txt . && vim -es -u NONE -N +'%s/\\v(\\w+) (\\w+)/\\2 \\1/g' +'sort u' +wq text.txt; md5sum text.txt'''),
    p('editor', 'emacs', 'emacs-nox', '''emacs -Q --batch --eval '(progn (find-file (concat (getenv "IN") "/text.txt")) (sort-lines nil 1 20000) (princ (secure-hash (quote md5) (current-buffer))) (terpri) (princ (let ((s 0)) (dotimes (i 300000 s) (setq s (% (+ (* s 31) i) 1000003))))))' '''),
    p('archive', '7z', 'p7zip-full', '''7z a -bd -mmt=2 w.7z $IN/text.txt >/dev/null && 7z x -so w.7z | md5sum; md5sum <$IN/text.txt'''),
    p('archive', 'zstd', 'zstd', '''zstd -q -T0 -12 $IN/text.txt -o w.zst && zstd -dc w.zst | md5sum''', 'w.zst'),
    p('archive', 'xz', 'xz-utils', '''xz -T2 -k -c $IN/text.txt >w.xz && xz -dc w.xz | md5sum''', 'w.xz'),
    p('archive', 'bzip2-tar', 'bzip2 tar', '''tar -C $IN --mtime=@0 --sort=name --owner=0 --group=0 -cjf w.tar.bz2 text.txt work.c && tar -tvjf w.tar.bz2''', 'w.tar.bz2'),
    p('version control', 'git', 'git', '''export GIT_AUTHOR_DATE='1 +0000' GIT_COMMITTER_DATE='1 +0000' GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
git init -q -b main . && for i in 1 2 3 4 5; do head -c ${i}0000 $IN/text.txt >f; git add f; git commit -qm $i; done; git gc -q; git clone -q . ../cwd/c; git log --stat --oneline; git blame f | wc -l; git fsck'''),
    p('version control', 'hg', 'mercurial', '''hg init r && cd r && for i in 1 2 3; do head -c ${i}0000 $IN/text.txt >f; hg -q add f 2>/dev/null; hg commit -d '1 0' -u a -m $i; done; hg log; hg verify -q; echo $?'''),
    p('version control', 'svn', 'subversion', '''svnadmin create r && svn -q co file://$PWD/r w && cd w && cp $IN/work.c . && svn -q add work.c && svn -q ci -m x && svn -q up && svn info --show-item revision && svn cat work.c | md5sum'''),
    p('science', 'samtools', 'samtools', '''samtools faidx $IN/work.fa && samtools sort -@2 -O sam $IN/work.sam | grep -v '^@PG' | md5sum''' .replace('samtools faidx $IN/work.fa', 'cp $IN/work.fa . && samtools faidx work.fa')),
    # More languages.
    p('JIT', 'gjs', 'gjs', '''gjs -c 'let s = 0, m = new Map(); for (let i = 0; i < 2e6; i++) { s = (s * 31 + i) % 1000003; m.set(i % 1000, s); } print(s, m.size, [3, 1, 2].sort().join());' '''),
    p('JIT', 'raku', 'rakudo', '''raku -e 'my $s = 0; $s = ($s * 31 + $_) % 1000003 for 1..200000; say $s; say (1..1000).grep(*.is-prime).sum; say "a1b22".comb(/\\d+/)' '''),
    p('JIT', 'clojure', 'clojure', '''clojure -e '(println (reduce (fn [s i] (mod (+ (* s 31) i) 1000003)) 0 (range 300000)) (count (set (pmap #(mod (* % %) 97) (range 500)))))(shutdown-agents)' '''),
    p('JIT', 'groovy', 'groovy', '''groovy -e 'def s = 0; (1..100000).each { s = (s * 31 + it) % 1000003 }; println s; println((1..100).collect { it * it }.sum())' '''),
    p('JIT', 'jruby', 'jruby', '''jruby -e 's = 0; 300000.times { |i| s = (s * 31 + i) % 1000003 }; puts s, (1..2000).map(&:to_s).sort.join.sum' '''),
    p('JIT', 'jython', 'jython', '''jython -Dpython.cachedir=$PWD/j -c 'print(sum(i * i % 7 for i in range(200000)))' '''),
    p('JIT', 'llvmpipe', 'mesa-utils libgl1-mesa-dri', '''LIBGL_ALWAYS_SOFTWARE=1 GALLIUM_DRIVER=llvmpipe glxinfo -B | grep -E 'direct rendering|OpenGL renderer'; LIBGL_ALWAYS_SOFTWARE=1 timeout 3 glxgears -geometry 100x100 >/dev/null 2>&1; echo $?''', '', 'x'),
    p('JIT', 'haxe', 'haxe neko', '''printf 'class W { static function main() { var s = 0; for (i in 0...1000000) s = (s * 31 + i) %% 1000003; trace(s); } }' >W.hx; haxe -main W -neko w.n && neko w.n'''),
    p('interpreter', 'gprolog', 'gprolog', '''echo 'f(0,0):-!. f(N,S):-M is N-1,f(M,T),S is (T*31+N) mod 1000003. :- initialization((f(2000,S),write(S),nl,halt)).' >w.pl; gplc -o w w.pl && ./w'''),
    p('interpreter', 'picolisp', 'picolisp', '''echo '(de fib (N) (if (< N 2) N (+ (fib (- N 1)) (fib (- N 2))))) (println (fib 22)) (bye)' >f.l; picolisp f.l'''),
    p('interpreter', 'newlisp', 'newlisp', '''newlisp -e '(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 20)' '''),
    p('interpreter', 'wabt', 'wabt', '''printf '(module (func (export "f") (result i32) (local $i i32) (local $s i32) (loop $l (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 31)) (local.get $i))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 300000)))) (local.get $s)))' >w.wat; wat2wasm w.wat -o w.wasm && wasm-interp --run-all-exports w.wasm'''),
    p('compiler', 'gfortran', 'gfortran', '''printf 'program w\\n integer(8) :: s, i\\n s = 0\\n do i = 1, 3000000\\n s = mod(s * 31 + i, 1000003_8)\\n end do\\n print *, s\\nend program\\n' >w.f90; gfortran -O2 -o w w.f90 && ./w'''),
    p('compiler', 'cobol', 'gnucobol', '''printf '       IDENTIFICATION DIVISION.\\n       PROGRAM-ID. W.\\n       PROCEDURE DIVISION.\\n           DISPLAY "HELLO".\\n           STOP RUN.\\n' >w.cob; cobc -x w.cob && ./w'''),
    p('compiler', 'vala', 'valac', '''printf 'void main () { int s = 0; for (int i = 1; i < 1000000; i++) s = (s * 31 + i) %% 1000003; print ("%%d\\\\n", s); }' >w.vala; valac w.vala 2>/dev/null && ./w'''),
    p('compiler', 'ghdl', 'ghdl', '''printf 'entity w is end; architecture a of w is begin process variable s : integer := 0; begin for i in 1 to 1000000 loop s := (s * 31 + i) mod 1000003; end loop; report integer\\047image(s); wait; end process; end;' >w.vhd; ghdl -a w.vhd && ghdl -e w && ghdl -r w 2>&1 | sed 's/.*note): //' '''),
    p('compiler', 'coq', 'coq', '''printf 'Theorem t : forall n m : nat, n + m = m + n.\\nProof. induction n; intros; simpl. auto. rewrite IHn. auto. Qed.\\nPrint t.\\nEval compute in (12 * 12).\\n' >w.v; coqc w.v'''),
    p('compiler', 'shellcheck', 'shellcheck', '''printf '#!/bin/sh\\nx=$1\\nrm $x/*\\n[ $x == 1 ] && echo `ls`\\n' >w.sh; shellcheck w.sh'''),
    p('compiler', 'crystal', 'crystal', '''echo 's = 0_i64; 1000000.times { |i| s = (s * 31 + i) % 1000003 }; puts s' >w.cr; CRYSTAL_CACHE_DIR=$PWD/c crystal build --no-color -o w w.cr && ./w'''),
    p('build', 'scons', 'scons', '''cp $IN/work.c . && echo 'Program("work.c")' >SConstruct; scons -Q -j2 && ./work'''),
    p('build', 'cargo', 'cargo', '''CARGO_HOME=$PWD/h cargo -q init --vcs none --name w p && cp $IN/work.rs p/src/main.rs && cd p && CARGO_HOME=$PWD/h cargo -q run --release --offline 2>/dev/null'''),
    p('solver', 'clingo', 'gringo', '''echo '1 { q(X, 1..7) } 1 :- X = 1..7. :- q(X, Y), q(Z, Y), X < Z. :- q(X, Y), q(Z, W), X < Z, |X - Z| == |Y - W|. #show q/2.' >w.lp; clingo -V0 -n 0 w.lp | sort | md5sum'''),
    p('solver', 'eprover', 'eprover', '''printf 'fof(a, axiom, ![X]: (p(X) => q(X))).\\nfof(b, axiom, ![X]: (q(X) => r(f(X)))).\\nfof(c, axiom, p(a)).\\nfof(d, conjecture, ?[Y]: r(Y)).\\n' >w.p; eprover --auto -s --tstp-format w.p | grep -E 'Proof|status' '''),
    p('solver', 'cadical', 'cadical', '''cadical -q $IN/work.cnf; echo $?'''),
    p('solver', 'minizinc', 'minizinc', '''echo 'var 1..50: x; var 1..50: y; constraint x * y == 391; constraint x < y; solve satisfy;' >w.mzn; minizinc -c --output-to-stdout --output-base w w.mzn >/dev/null 2>&1; minizinc --model-interface-only w.mzn'''),
    p('media', 'vips', 'libvips-tools', '''vips resize $IN/image.ppm w.ppm 0.7 && vips gaussblur w.ppm v.ppm 2 && tail -c 20000 v.ppm | md5sum'''),
    p('media', 'graphicsmagick', 'graphicsmagick', '''gm convert $IN/image.ppm -resize 60% -blur 3 -rotate 17 w.ppm && md5sum w.ppm'''),
    p('media', 'exiftool', 'libimage-exiftool-perl', '''exiftool -FileType -ImageSize -MIMEType $IN/image.ppm'''),
    p('media', 'mkvtoolnix', 'mkvtoolnix flac', '''flac -s -o w.flac $IN/sound.wav && mkvmerge -q --deterministic 7 -o w.mka w.flac && mkvinfo w.mka | head -20''', 'w.mka'),
    p('science', 'gdal', 'gdal-bin', '''gdal_translate -q -of GTiff -outsize 50% 50% $IN/image.ppm w.tif && gdalinfo -checksum w.tif | grep Checksum'''),
    p('science', 'tshark', 'tshark', '''printf '0000 45 00 00 1c 00 00 00 00 40 11 00 00 7f 00 00 01 7f 00 00 01 00 35 00 36 00 08 00 00\\n' >w.txt; text2pcap -q -l 101 w.txt w.pcap 2>/dev/null; tshark -n -r w.pcap -T fields -e ip.src -e udp.dstport 2>/dev/null'''),
    p('server', 'promtool', 'prometheus', '''printf 'groups:\\n- name: w\\n  rules:\\n  - record: a\\n    expr: sum(rate(b[5m])) by (c)\\n' >w.yml; promtool check rules w.yml; printf 'x_total 1\\n' | promtool check metrics; echo $?'''),
    p('editor', 'ripgrep', 'ripgrep', '''rg -c '\\w+(ab|cd)\\w*' $IN/text.txt; rg -j2 --sort path -o '\\b[a-c]\\w{3}\\b' $IN/text.txt | sort | uniq -c | sort -rn | head -5'''),
    p('version control', 'darcs', 'darcs', '''export DARCS_EMAIL=a HOME=$PWD; darcs init -q && cp $IN/work.c . && darcs add -q work.c && darcs record -q -a -m x -A a && darcs show files && darcs check -q; echo $?'''),
    p('archive', 'unison', 'unison', '''mkdir a b; cp $IN/work.c a; HOME=$PWD unison -batch -silent a b; ls b; echo $?'''),
]
