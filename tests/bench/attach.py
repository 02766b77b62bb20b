#!/usr/bin/env python3
"""How long attaching and detaching stop a process, by its number of threads.

  tests/bench/attach.py [WEIR]

A thread of a program reads the clock all the time, and the others compute and sleep in turn; the two longest gaps between two readings, over
one attachment, are those of attaching and detaching. Medians of nine attachments, in milliseconds."""
import os, statistics, subprocess, sys, tempfile

SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile int stop;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec / 1e6; }
static void *work(void *p) { volatile long x = 0; while (!stop) { for (int i = 0; i < 20000; i++) x += i; usleep(20000); } return 0; }
int main(int argc, char **argv) {
  int n = atoi(argv[1]); pthread_t t;
  for (int i = 0; i < n - 1; i++) pthread_create(&t, 0, work, 0);
  puts("ready"), fflush(stdout);
  double last = now(), middle = last + atof(argv[2]), first_gap = 0, second_gap = 0;
  for (double end = last + 2500; last < end;) {
    double t = now(), gap = t - last;
    if (last < middle && gap > first_gap) first_gap = gap;
    if (last >= middle && gap > second_gap) second_gap = gap;
    last = t;
  }
  stop = 1;
  printf("%f %f\n", first_gap, second_gap);
}
"""

def measure(program, weir, threads):
    p = subprocess.Popen([program, str(threads), "700"], stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    subprocess.run([weir, "run", "-q", "--tool=icount", "--pid", str(p.pid), "--seconds", "1"], check=True)
    out, _ = p.communicate()
    return [float(x) for x in out.split()]

weir = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../../build/weir")
with tempfile.TemporaryDirectory() as directory:
    program = os.path.join(directory, "gaps")
    with open(program + ".c", "w") as f: f.write(SOURCE)
    subprocess.run(["gcc", "-O2", "-w", "-pthread", program + ".c", "-o", program], check=True)
    print("| threads | attach, ms | detach, ms |\n|---|---|---|")
    for threads in (1, 10, 100):
        gaps = [measure(program, weir, threads) for _ in range(9)]
        attach, detach = (sorted(g[i] for g in gaps) for i in (0, 1))
        print(f"| {threads} | {statistics.median(attach):.1f} ({attach[0]:.1f}–{attach[-1]:.1f}) | {statistics.median(detach):.1f} ({detach[0]:.1f}–{detach[-1]:.1f}) |")
