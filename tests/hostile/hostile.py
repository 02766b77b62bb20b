"""Hostile programs under Weir: whatever they write into its shared memory, Weir ends, in time, without a crash and without
a word from a sanitizer, in a bounded amount of memory.

    hostile.py --weir build-sanitize/weir [--count N] [--seed S] [--seconds T] [--only WORD]

Each run takes its plans (what the program's threads do, see hostile.cc) and the way that Weir is used from its seed. A program
that has hung itself, or is slow, is killed when its time is over; Weir must end then, as the program did.
"""
import argparse
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PLANS = ['r', 't', 'n', 'b', 'c', 'f', 'k']
WAYS = {
    'run': ['run'],
    'icount': ['run', '--tool=icount'],
    'profile': ['profile', '-q', '-o', 'out.weir'],
    'paths': ['profile', '-q', '--paths=full', '-o', 'out.weir'],
    'attach': ['run', '--tool=icount', '--seconds=1'],
    'attach-profile': ['profile', '-q', '-o', 'out.weir', '--seconds=1'],
}
SANITIZED_STATUS = 99
PATIENCE = 120  # seconds for Weir to end when its program has: the machine may be busy
MOST_MEMORY = 6 << 30
CRASHED = ('was ended by signal', 'AddressSanitizer', 'runtime error', 'CHECK')


def build(directory):
    program = os.path.join(directory, 'hostile')
    subprocess.run(['g++', '-std=c++20', '-O2', '-I', os.path.join(HERE, '../../src'), os.path.join(HERE, 'hostile.cc'),
                    '-o', program, '-pthread'], check=True)
    return program


def processes_of(program):
    """Those that run the program: it is this run's alone."""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.readlink(f'/proc/{pid}/exe') == program:
                yield int(pid)
        except OSError:
            pass


def kill_all(program):
    for pid in processes_of(program):
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass


def environment(directory):
    common = f'log_path={directory}/report:exitcode={SANITIZED_STATUS}:'
    return dict(os.environ, HOME=directory, XDG_CACHE_HOME=directory, UBSAN_OPTIONS=common + 'print_stacktrace=1',
                ASAN_OPTIONS=common + f'detect_leaks=0:hard_rss_limit_mb={MOST_MEMORY >> 20}')


def wait(process, seconds):
    """Its status and its largest memory, or None where it has not ended by then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_maxrss << 10
        time.sleep(0.02)
    return None


def run(weir, program, directory, way, seed, seconds, plans):
    """What is wrong with it (nothing: an empty string), its status, and how much was forged."""
    forged = os.path.join(directory, 'forged')
    with open(forged, 'wb') as file:
        file.write(bytes(4096))
    command = [program, str(seed), str(seconds), plans, forged]
    errors = open(os.path.join(directory, 'errors'), 'wb')
    quiet = dict(cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    native = None
    if way.startswith('attach'):
        native = subprocess.Popen(command, stderr=subprocess.DEVNULL, **quiet)
        command = [weir, *WAYS[way], '--pid', str(native.pid)]
    else:
        command = [weir, *WAYS[way], '--', *command]
    process = subprocess.Popen(command, env=environment(directory), stderr=errors, **quiet)
    ended = wait(process, seconds + 5)
    is_killed = not ended
    if is_killed:
        kill_all(program)
        ended = wait(process, PATIENCE)
    kill_all(program)
    if native:
        native.wait()
    errors.close()
    count = struct.unpack('Q', open(forged, 'rb').read(8))[0]
    said = open(errors.name, errors='replace').read()
    reports = [name for name in os.listdir(directory) if name.startswith('report')]
    wrong = ''
    if not ended:
        process.kill()
        process.wait()
        return 'weir does not end', None, count
    status, memory = ended
    if reports:
        wrong = open(os.path.join(directory, reports[0]), errors='replace').read()
    elif status < 0 and not (is_killed and status == -signal.SIGKILL):
        wrong = f'weir ended with {status}:\n{said}'
    elif status == SANITIZED_STATUS or any(word in said for word in CRASHED):
        wrong = f'weir ended with {status}:\n{said}'
    elif memory > MOST_MEMORY:
        wrong = f'{memory >> 20} MiB'
    elif os.path.exists(os.path.join(directory, 'out.weir')):
        shown = subprocess.run([weir, 'report', 'out.weir', 'functions', '--format=json'], cwd=directory, env=environment(directory),
                               capture_output=True)
        if shown.returncode not in (0, 125):  # (figures that were spoilt may have no sum)
            wrong = f'weir report ended with {shown.returncode}: {shown.stderr.decode()}'
    return wrong, status, count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--weir', required=True)
    parser.add_argument('--count', type=int, default=60)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--only', choices=WAYS)
    options = parser.parse_args()
    weir, ended, forged, failures = os.path.abspath(options.weir), {}, 0, 0
    place = tempfile.TemporaryDirectory()
    built = build(place.name)
    for seed in range(options.seed, options.seed + options.count):
        choose = random.Random(seed)
        way = options.only or choose.choice(list(WAYS))
        plans = 'w' + ''.join(choose.choices(PLANS, k=choose.randint(1, 4)))
        with tempfile.TemporaryDirectory() as directory:
            program = shutil.copy(built, directory)
            wrong, status, count = run(weir, program, directory, way, seed, options.seconds, plans)
        forged += count
        ended[status] = ended.get(status, 0) + 1
        if wrong:
            failures += 1
            print(f'--seed {seed} --count 1 ({way}, plans {plans}): {wrong}', flush=True)
    kinds = ', '.join(f'{status}: {number}' for status, number in sorted(ended.items(), key=str))
    print(f'{options.count} runs, {forged} times something was forged, {failures} failures; exit statuses: {kinds}')
    sys.exit(failures > 0)


main()
