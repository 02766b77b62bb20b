# Python3: json, re, threads, subprocess, multiprocessing, ctypes, exceptions.
. "$(dirname "$0")/lib.sh"
cat >"$T/all.py" <<'P'
import collections, ctypes, hashlib, json, multiprocessing, os, queue, re, signal, subprocess, sys, threading, zlib
def square(n): return n * n
def main():
    data = {str(i): [i, i / 7, "é" * (i % 5)] for i in range(2000)}
    text = json.dumps(data); assert json.loads(text) == data; print(hashlib.sha256(text.encode()).hexdigest())
    print(len(re.findall(r"\b\w*7\w*\b", text)), zlib.crc32(text.encode()))
    todo, done = queue.Queue(), collections.Counter()
    def worker():
        while (n := todo.get()) is not None: done[n % 3] += 1
    threads = [threading.Thread(target=worker) for _ in range(8)]
    for t in threads: t.start()
    for n in range(3000): todo.put(n)
    for t in threads: todo.put(None)
    for t in threads: t.join()
    print(sorted(done.items()))
    for _ in range(5): print(subprocess.run(["sh", "-c", "read x; echo got $x; exit 3"], input="in\n", capture_output=True, text=True))
    with multiprocessing.Pool(3) as pool: print(sum(pool.map(square, range(500))))
    libc = ctypes.CDLL(None); array = (ctypes.c_int * 5)(5, 3, 1, 4, 2)
    order = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
    libc.qsort(array, 5, 4, order); print(list(array))
    signal.signal(signal.SIGUSR1, lambda *a: print("signal", a[0])); os.kill(os.getpid(), signal.SIGUSR1)
    try: 1 / 0
    except ZeroDivisionError as e: print(e)
    print(sum(i * i for i in range(300000)), 3 ** 200)
    sys.stdout.flush(); raise SystemExit(5)
if __name__ == "__main__": main()
P
STATUS=5 same python3 "$T/all.py"
STATUS=1 same python3 -c 'def f(n): return f(n - 1) if n else undefined
f(3)'
